"""Ensembles: the mean of several models' probabilities."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.types import Array, PyTree, StepModel

_Trees: TypeAlias = tuple[PyTree, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnsembleStepModel:
    """A `StepModel` whose next-token probabilities are the mean of several models'.

    The members must share both vocabularies; each keeps its own memory and cache.

    Departs: the paper's own results are of single models, averaged checkpoints aside.
    """

    members: tuple[StepModel, ...]

    @property
    def source_size(self) -> int | None:
        """The size of the source vocabulary; None if the members do not define it."""
        sizes = (getattr(member, "source_size", None) for member in self.members)
        return min((size for size in sizes if size is not None), default=None)

    def restricted(self, ids_C: Array) -> EnsembleStepModel:
        """Returns the ensemble whose members decode these target ids only."""
        members: Any = self.members
        return EnsembleStepModel(tuple(one.restricted(ids_C) for one in members))

    def encode(self, source_BxS: Array) -> _Trees:
        """Encodes the source ([B, S], pad = 0) with every member."""
        return tuple(member.encode(source_BxS) for member in self.members)

    def init_cache(self, memory: _Trees, num_beams: int, length: int) -> _Trees:
        """Initializes the cache of every member, for `length` target positions."""
        pairs = zip(self.members, memory, strict=True)
        return tuple(one.init_cache(own, num_beams, length) for one, own in pairs)

    def step(
        self, tokens_BxW: Array, memory: _Trees, cache: _Trees, position: Array
    ) -> tuple[jax.Array, _Trees]:
        """Computes the next-token distribution.

        Returns:
          logits: [B, W, V] float32, logarithms of the mean probabilities.
          cache: of each member, with this position added.
        """
        found = [
            member.step(tokens_BxW, own, kept, position)
            for member, own, kept in zip(self.members, memory, cache, strict=True)
        ]
        logs = [jax.nn.log_softmax(jnp.asarray(x, jnp.float32)) for x, _ in found]
        return mean_log_probabilities(logs), tuple(kept for _, kept in found)

    def reorder(self, cache: _Trees, parents_BxW: Array) -> _Trees:
        """Reorders the beams of every member by `parents_BxW` [B, W]."""
        pairs = zip(self.members, cache, strict=True)
        return tuple(one.reorder(kept, parents_BxW) for one, kept in pairs)

    def grow(self, cache: _Trees, length: int) -> _Trees:
        """Grows every member's cache to `length` positions."""
        pairs = zip(self.members, cache, strict=True)
        return tuple(one.grow(kept, length) for one, kept in pairs)


def mean_log_probabilities(logs: list[jax.Array]) -> jax.Array:
    """Computes the log of the mean of probabilities from their logs, in float32.

    Example:
      >>> logs = [jnp.log(jnp.array([0.5, 0.25])), jnp.log(jnp.array([0.5, 0.75]))]
      >>> jnp.exp(mean_log_probabilities(logs)).round(6).tolist()
      [0.5, 0.5]
    """
    stacked = jnp.stack([jnp.asarray(x, jnp.float32) for x in logs])
    return jax.nn.logsumexp(stacked, axis=0) - float(np.log(len(logs)))
