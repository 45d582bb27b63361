"""The Transformer as a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.defaults import check_positions
from t2t_jax.model.past import Cache, CrossKV, Past, empty_past
from t2t_jax.types import Array, Params, PyTree

as_pytree = functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["model"]
)


@dataclasses.dataclass(frozen=True)
class BoundModel:
    """Binds a model to its parameters, for decoding.

    It is a pytree whose leaves are the parameters, so a jitted search takes it as an
    argument and compiles once for all checkpoints.

    Paper: §6.1: what beam search requires of a model.
    """

    model: Any
    params: Params = dataclasses.field(repr=False)

    @property
    def source_size(self) -> int:
        """The size of the source vocabulary."""
        config = self.model.config
        return int(config.source_vocab_size or config.vocab_size)

    def encode(self, source_BxS: Array) -> Any:
        """Encodes the source, and projects the memory once for all steps.

        Args:
          source_BxS: [B, S] tokens; pad = 0. One sentence a row.

        Returns:
          Arrays that start with axis B, not repeated for beams.
        """
        return self._apply(_encode_and_project, source_BxS)

    def _apply(self, method: str | Callable[..., Any], *args: PyTree) -> Any:
        return self.model.apply({"params": self.params}, *args, method=method)


def _encode_and_project(model: Any, source_BxS: Array) -> Any:
    segments_BxS = segments_of(source_BxS)
    memory_BxSxx = model.encode(source_BxS, source_segments=segments_BxS)
    memory = model.decoder.project_memory(memory_BxSxx, segments_BxS)
    return memory.transposed() if isinstance(memory, CrossKV) else memory


@as_pytree
@dataclasses.dataclass(frozen=True)
class TransformerStepModel(BoundModel):
    """The Transformer, bound to its parameters."""

    def init_cache(self, memory: CrossKV, num_beams: int, length: int) -> Past:
        """Allocates the cache of every beam, for `length` target positions."""
        batch = memory.segments.shape[0]
        return empty_past(self.model.config, batch, num_beams=num_beams, length=length)

    def step(
        self, tokens_BxW: Array, memory: CrossKV, cache: Past, position: Array
    ) -> tuple[jax.Array, Past]:
        """Decodes one token of every beam at `position`.

        Args:
          tokens_BxW: [B, W] tokens; bos at position 0.
          position: scalar integer below the cache's length.

        Returns:
          logits: [B, W, V] float32, of the next token.
          cache: with this position added.
        """
        full = Cache(memory, cache)
        logits_BxWxV, full = self._apply("step", tokens_BxW, full, position)
        return logits_BxWxV, full.past

    def reorder(self, cache: Past, parents_BxW: Array) -> Past:
        """Continues the beams `parents_BxW` [B, W] of each sentence."""
        return cache.reorder(parents_BxW)

    def grow(self, cache: Past, length: int) -> Past:
        """Grows the cache to `length` positions, filled with zeros.

        Raises:
          ValueError: `length` is less than the present capacity.
        """
        check_positions(self.model.config, length)
        return cache.grow(length)


@as_pytree
@dataclasses.dataclass(frozen=True)
class RecomputingStepModel:
    """Any module that is called as the Transformer is, bound to its parameters.

    It has no cache of keys and values: a step runs the whole model on the tokens so
    far, so that a search takes as many times longer as its outputs are long.
    """

    model: Any
    params: Params = dataclasses.field(repr=False)

    def encode(self, source_BxS: Array) -> jax.Array:
        """Returns the source itself."""
        return jnp.asarray(source_BxS)

    def init_cache(self, memory: jax.Array, num_beams: int, length: int) -> jax.Array:
        """Allocates the tokens of every beam, [B, W, length]."""
        return jnp.zeros((len(memory), num_beams, length), jnp.int32)

    def step(
        self, tokens_BxW: Array, memory: jax.Array, cache: jax.Array, position: Array
    ) -> tuple[jax.Array, jax.Array]:
        """Decodes one token of every beam at `position`."""
        cache = cache.at[:, :, position].set(tokens_BxW)
        (batch, beams, length), rows = cache.shape, cache.shape[0] * cache.shape[1]
        source = jnp.repeat(memory, beams, axis=0)
        positions = (jnp.arange(size)[None] for size in (source.shape[1], length))
        source_positions, target_positions = (
            jnp.broadcast_to(one, (rows, one.size)) for one in positions
        )
        logits = self.model.apply(
            {"params": self.params},
            source,
            cache.reshape(rows, length),
            source_segments=segments_of(source),
            target_segments=jnp.ones((rows, length), jnp.int32),
            source_positions=source_positions,
            target_positions=target_positions,
        )
        return logits[:, position].reshape(batch, beams, -1), cache

    def reorder(self, cache: jax.Array, parents_BxW: Array) -> jax.Array:
        """Continues the beams `parents_BxW` [B, W] of each sentence."""
        return jnp.take_along_axis(cache, jnp.asarray(parents_BxW)[:, :, None], axis=1)

    def grow(self, cache: jax.Array, length: int) -> jax.Array:
        """Grows the tokens to `length` positions, filled with pad."""
        return jnp.pad(cache, ((0, 0), (0, 0), (0, length - cache.shape[2])))
