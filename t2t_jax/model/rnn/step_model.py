"""The recurrent baseline as a `t2t_jax.types.StepModel`."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from t2t_jax.model.rnn.decoder import AttendedMemory, States
from t2t_jax.model.step_model import BoundModel, as_pytree
from t2t_jax.types import Array


@as_pytree
@dataclasses.dataclass(frozen=True)
class RNNStepModel(BoundModel):
    """The recurrent model, bound to its parameters; its cache does not grow."""

    def init_cache(self, memory: AttendedMemory, num_beams: int, length: int) -> States:
        """Returns zeros [B, W, Dh], two for each layer; `length` is unused."""
        batch = memory.segments.shape[0]
        states: States = self.model.init_states(batch, num_beams=num_beams)
        return states

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
