"""The Transformer as a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

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
