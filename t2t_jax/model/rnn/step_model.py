"""The recurrent baseline as a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.rnn.additive_attention import AttendedMemory
from t2t_jax.model.rnn.decoder import States
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.types import Array, Params, PyTree


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["model"]
)
@dataclasses.dataclass(frozen=True)
class RNNStepModel:
    """Binds a recurrent model to its parameters, for decoding.

    Like `TransformerStepModel`, it is a pytree whose leaves are the parameters. Its
    cache does not grow with the target.
    """

    model: RNN
    params: Params = dataclasses.field(repr=False)

    @property
    def source_size(self) -> int:
        """The size of the source vocabulary."""
        config = self.model.config
        return config.source_vocab_size or config.vocab_size

    def encode(self, source_BxS: Array) -> AttendedMemory:
        """Encodes the source and projects the memory.

        Args:
          source_BxS: [B, S] tokens; pad = 0. One sentence a row.

        Returns:
          Arrays that start with axis B, not repeated for beams.
        """
        memory: AttendedMemory = self._apply(_encode_and_project, source_BxS)
        return memory

    def init_cache(self, memory: AttendedMemory, num_beams: int, length: int) -> States:
        """Returns zeros [B, W, Dh], two for each layer; `length` is unused."""
        batch = memory.segments.shape[0]
        return self.model.init_states(batch, num_beams=num_beams)

    def step(
        self,
        tokens_BxW: Array,
        memory: AttendedMemory,
        cache: States,
        position: Array,
    ) -> tuple[jax.Array, States]:
        """Decodes one token of every beam.

        Returns:
          logits: [B, W, V] float32, of the next token.
          cache: the states after it.
        """
        logits_BxWxV, states = self._apply("step", tokens_BxW, memory, cache)
        return logits_BxWxV, states

    def reorder(self, cache: States, parents_BxW: Array) -> States:
        """Gathers the states of the beams `parents_BxW` of each sentence.

        Args:
          parents_BxW: [B, W] beam numbers; W may differ from the cache's.
        """
        index_BxWx1 = jnp.asarray(parents_BxW)[:, :, None]
        reordered: States = jax.tree.map(
            lambda x_BxWxDh: jnp.take_along_axis(x_BxWxDh, index_BxWx1, axis=1), cache
        )
        return reordered

    def grow(self, cache: States, length: int) -> States:
        """Returns the cache unchanged: its size does not depend on `length`."""
        return cache

    def _apply(self, method: str | Callable[..., Any], *args: PyTree) -> Any:
        return self.model.apply({"params": self.params}, *args, method=method)


def _encode_and_project(model: RNN, source_BxS: Array) -> AttendedMemory:
    """Encodes the source and projects the memory, in one pass."""
    segments_BxS = segments_of(source_BxS)
    memory_BxSxDh = model.encode(source_BxS, source_segments=segments_BxS)
    return model.decoder.project_memory(memory_BxSxDh, segments_BxS)
