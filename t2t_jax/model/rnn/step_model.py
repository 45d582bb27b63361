"""The recurrent baseline as decoding sees it: a `t2t_jax.types.StepModel`."""

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
    """Binds a recurrent model to its parameters.

    As `TransformerStepModel`, it is a pytree whose leaves are the parameters. What it
    remembers of a target does not grow with its length.

    Attributes:
      model: the module; static under `jit`.
      params: its parameters.
    """

    model: RNN
    params: Params = dataclasses.field(repr=False)

    @property
    def source_size(self) -> int:
        """The number of tokens that a source may hold."""
        config = self.model.config
        return config.source_vocab_size or config.vocab_size

    def encode(self, source_BxS: Array) -> AttendedMemory:
        """Reads source tokens once, in both directions, up to the attention's keys.

        Args:
          source_BxS: [B, S] tokens; pad = 0. One sentence a row.

        Returns:
          Arrays that start with axis B, none repeated for beams.
        """
        memory: AttendedMemory = self._apply(_read, source_BxS)
        return memory

    def init_cache(self, memory: AttendedMemory, num_beams: int, length: int) -> States:
        """Starts every beam.

        Args:
          memory: from `encode`.
          length: number of target positions; states are alike for all.

        Returns:
          For each layer, two arrays of zeros [B, W, Dh].
        """
        batch = memory.segments.shape[0]
        return self.model.init_states(batch, num_beams=num_beams)

    def step(
        self,
        tokens_BxW: Array,
        memory: AttendedMemory,
        cache: States,
        position: Array,
    ) -> tuple[jax.Array, States]:
        """Reads one token of every beam.

        Args:
          tokens_BxW: [B, W] tokens; bos first.
          memory: from `encode`.
          cache: the state of every beam.
          position: unused: the state knows how much it has read.

        Returns:
          logits: [B, W, V] float32, of the next token.
          cache: the states after it.
        """
        logits_BxWxV, states = self._apply("step", tokens_BxW, memory, cache)
        return logits_BxWxV, states

    def reorder(self, cache: States, parents_BxW: Array) -> States:
        """Gives beam w of sentence b the state of beam `parents_BxW[b, w]`.

        Args:
          cache: the state of every beam.
          parents_BxW: [B, W] beam numbers; W may differ from the cache's.

        Returns:
          The states of the new beams.
        """
        index_BxWx1 = jnp.asarray(parents_BxW)[:, :, None]
        reordered: States = jax.tree.map(
            lambda x_BxWxDh: jnp.take_along_axis(x_BxWxDh, index_BxWx1, axis=1), cache
        )
        return reordered

    def grow(self, cache: States, length: int) -> States:
        """Returns the states as they are: they have room for any length.

        Args:
          cache: the state of every beam.
          length: number of positions in all.
        """
        return cache

    def _apply(self, method: str | Callable[..., Any], *args: PyTree) -> Any:
        return self.model.apply({"params": self.params}, *args, method=method)


def _read(model: RNN, source_BxS: Array) -> AttendedMemory:
    """Encodes, and projects the memory for the decoder, in one pass."""
    segments_BxS = segments_of(source_BxS)
    memory_BxSxDh = model.encode(source_BxS, source_segments=segments_BxS)
    return model.decoder.project_memory(memory_BxSxDh, segments_BxS)
