"""The Transformer as a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.defaults import check_positions
from t2t_jax.model.past import Cache, CrossKV, Past, empty_past
from t2t_jax.types import Array, Params, PyTree


@dataclasses.dataclass(frozen=True)
class BoundModel:
    """Binds a model to its parameters, for decoding.

    It is a pytree whose leaves are the parameters, so a jitted search takes it as an
    argument and compiles once for all checkpoints.

    Paper: §6.1: what beam search requires of a model.
    """

    model: Any = dataclasses.field(metadata={"static": True})
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

    def restricted(self, ids_C: Array) -> RestrictedStepModel:
        """Returns the model that decodes these target ids only.

        Args:
          ids_C: [C] int32; pad, bos, eos and unk are first.
        """
        names = self.params.keys() & {"embedding", "target_embedding", "pre_softmax"}
        rows = _gather({name: self.params[name] for name in names}, ids_C)
        config = dataclasses.replace(self.model.config, vocab_size=len(ids_C))
        model = self.model.clone(config=config)
        own = dataclasses.replace(self, model=model, params={**self.params, **rows})
        return RestrictedStepModel(self, own)

    def _apply(self, method: str | Callable[..., Any], *args: PyTree) -> Any:
        return self.model.apply({"params": self.params}, *args, method=method)


@jax.jit
def _gather(matrices: Params, ids_C: Array) -> Params:
    """Gathers the rows of vocabulary matrices, and of their biases."""
    return jax.tree.map(lambda leaf: jnp.take(leaf, ids_C, axis=0), matrices)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RestrictedStepModel:
    """A model that decodes some of its target ids, each sentence some of these.

    Its tokens are indices into these ids, so that a step computes no other logits.

    Attributes:
      full: encodes the source.
      own: decodes; its vocabulary matrices have the rows of the ids.
    """

    full: BoundModel
    own: Any

    def encode(self, source: tuple[Array, Array]) -> tuple[Any, Array]:
        """Encodes [B, S] tokens, and keeps [B, C] which ids a sentence may have."""
        source_BxS, allowed_BxC = source
        return self.full.encode(source_BxS), allowed_BxC

    def init_cache(self, memory: Any, num_beams: int, length: int) -> Any:
        """Allocates the cache of every beam."""
        return self.own.init_cache(memory[0], num_beams, length)

    def step(
        self, tokens_BxW: Array, memory: Any, cache: Any, position: Array
    ) -> tuple[jax.Array, Any]:
        """Decodes one token of every beam: logits [B, W, C], -inf where not allowed."""
        memory, allowed_BxC = memory
        logits_BxWxC, cache = self.own.step(tokens_BxW, memory, cache, position)
        return jnp.where(allowed_BxC[:, None], logits_BxWxC, -jnp.inf), cache

    def reorder(self, cache: Any, parents_BxW: Array) -> Any:
        """Continues the beams `parents_BxW` [B, W] of each sentence."""
        return self.own.reorder(cache, parents_BxW)

    def grow(self, cache: Any, length: int) -> Any:
        """Grows the cache to `length` positions."""
        return self.own.grow(cache, length)


def _encode_and_project(model: Any, source_BxS: Array) -> Any:
    segments_BxS = segments_of(source_BxS)
    memory_BxSxx = model.encode(source_BxS, source_segments=segments_BxS)
    memory = model.decoder.project_memory(memory_BxSxx, segments_BxS)
    return memory.transposed() if isinstance(memory, CrossKV) else memory


@jax.tree_util.register_dataclass
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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RecomputingStepModel:
    """Any module that is called as the Transformer is, bound to its parameters.

    It has no cache of keys and values: a step runs the whole model on the tokens so
    far, so that a search takes as many times longer as its outputs are long.
    """

    model: Any = dataclasses.field(metadata={"static": True})
    params: Params = dataclasses.field(repr=False)

    def encode(self, source_BxS: Array) -> jax.Array:
        """Returns the source itself."""
        self._check_positions(jnp.shape(source_BxS)[1])
        return jnp.asarray(source_BxS)

    def init_cache(self, memory: jax.Array, num_beams: int, length: int) -> jax.Array:
        """Allocates the tokens of every beam, [B, W, length]."""
        self._check_positions(length)
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
        self._check_positions(length)
        return jnp.pad(cache, ((0, 0), (0, 0), (0, length - cache.shape[2])))

    def _check_positions(self, length: int) -> None:
        """Checks learned positions of a subclass: beyond their table they are NaN."""
        config = getattr(self.model, "config", None)
        if isinstance(config, TransformerConfig):
            check_positions(config, length)
