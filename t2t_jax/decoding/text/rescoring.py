"""A second look at outputs that were found: token by token, and where it looked."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh

from t2t_jax.decoding.engine.device_rows import (
    devices_of,
    gather_rows,
    per_device,
    shard_rows,
)
from t2t_jax.decoding.ensemble import mean_log_probabilities
from t2t_jax.decoding.scoring.teacher_forcing import Apply, token_log_probabilities
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.types import Array, PyTree

Attend: TypeAlias = Callable[[PyTree, Array, Array], jax.Array]
"""(variables, source_BxS, target_inputs_BxT) -> weights_BxTxS; hashable."""

_Floats: TypeAlias = npt.NDArray[np.float32]

# As many bytes of logits and attention as one pass may take on each device, about: of
# the layers' weights, which follow one another, one or two are there at a time.
_MOST_BYTES = 256 * 2**20
_HEADS = 16
_ROUND = 16


class RescoreResult(NamedTuple):
    """What a second look has found.

    Attributes:
      log_probabilities_BxT: [B, T] float32, natural, 0 where there is pad; None if not
        asked for.
      attention_BxTxS: [B, T, S] float32, in the row of a token where the model looked
        when it said it; None if not asked for.
    """

    log_probabilities_BxT: _Floats | None
    attention_BxTxS: _Floats | None


@dataclasses.dataclass(frozen=True)
class Rescorer:
    """Passes over sources and given outputs, all positions of them at once.

    Where several models spoke together, their probabilities and their weights are
    averaged.

    Attributes:
      applies: of each model, such as a Linen module's `apply`.
      variables: of each model; each of their devices holds all of them.
      vocab_size: V, of the outputs.
      attends: of each model, or none for no attention.
      token_scores: whether the tokens' log-probabilities are asked for.
    """

    applies: tuple[Apply, ...]
    variables: tuple[PyTree, ...] = dataclasses.field(repr=False)
    vocab_size: int
    attends: tuple[Attend, ...] = ()
    token_scores: bool = True

    def rescore(
        self, source_BxS: npt.NDArray[np.int32], outputs_BxT: npt.NDArray[np.int32]
    ) -> RescoreResult:
        """Looks at every output, as many at once as memory is meant for.

        Args:
          source_BxS: [B, S] tokens, each sentence with its eos, then pad.
          outputs_BxT: [B, T] tokens, the eos if there is one, then pad.

        Returns:
          On the host; T is as long as the longest output, or some positions longer.
        """
        longest = max(
            1, int((outputs_BxT != DEFAULT_IDS.pad).sum(axis=1).max(initial=0))
        )
        # No more than the search had: a table of positions may hold no more.
        width = min(-(-longest // _ROUND) * _ROUND, outputs_BxT.shape[1])
        outputs_BxT = outputs_BxT[:, :width]
        mesh, (rows, length) = devices_of(self.variables), source_BxS.shape
        numbers = _HEADS * (length + width) * max(length, width)
        numbers += width * self.vocab_size if self.token_scores else 0
        at_once = mesh.size * _rows_at_once(-(-rows // mesh.size), numbers)
        found = [
            self._part(
                _filled(source_BxS[start : start + at_once], at_once),
                _filled(outputs_BxT[start : start + at_once], at_once),
                mesh,
            )
            for start in range(0, rows, at_once)
        ]
        logs, attention = zip(*found, strict=True)
        return RescoreResult(
            np.concatenate(logs)[:rows] if self.token_scores else None,
            np.concatenate(attention)[:rows] if self.attends else None,
        )

    def _part(self, source_BxS: Any, outputs_BxT: Any, mesh: Mesh) -> tuple[Any, Any]:
        looked = _look(
            self.variables,
            (shard_rows(source_BxS, mesh), shard_rows(outputs_BxT, mesh)),
            applies=self.applies if self.token_scores else (),
            attends=self.attends,
            mesh=mesh,
        )
        fetched: tuple[Any, Any] = gather_rows(looked)
        return fetched


def _filled(rows: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int32]:
    """Adds rows of pad."""
    return np.pad(
        rows, ((0, count - len(rows)), (0, 0)), constant_values=DEFAULT_IDS.pad
    ).astype(np.int32)


def _rows_at_once(rows: int, numbers: int) -> int:
    """Chooses a power of two that holds `rows`, or as much of it as memory does."""
    at_once = 1
    while at_once < rows and 2 * at_once * numbers * 4 <= _MOST_BYTES:
        at_once *= 2
    return at_once


@functools.partial(jax.jit, static_argnames=("applies", "attends", "mesh"))
def _look(
    variables: tuple[PyTree, ...],
    sides: tuple[Array, Array],
    *,
    applies: tuple[Apply, ...],
    attends: tuple[Attend, ...],
    mesh: Mesh,
) -> tuple[jax.Array, jax.Array]:
    """Examines each device's rows; what is not asked for comes as a 0 for each."""

    def look(
        variables: tuple[PyTree, ...], sides: tuple[Array, Array]
    ) -> tuple[jax.Array, jax.Array]:
        source_BxS, outputs_BxT = map(jnp.asarray, sides)
        logs = [
            token_log_probabilities(
                apply, own, source_BxS=source_BxS, target_outputs_BxT=outputs_BxT
            )
            for apply, own in zip(applies, variables, strict=False)
        ]
        inputs_BxT = jnp.roll(outputs_BxT, 1, axis=1).at[:, 0].set(DEFAULT_IDS.bos)
        inputs_BxT = jnp.where(
            outputs_BxT == DEFAULT_IDS.pad, DEFAULT_IDS.pad, inputs_BxT
        )
        weights = [
            attend(own, source_BxS, inputs_BxT)
            for attend, own in zip(attends, variables, strict=False)
        ]
        nothing_B = jnp.zeros(outputs_BxT.shape[:1], jnp.float32)
        return (
            mean_log_probabilities(logs) if logs else nothing_B,
            sum(weights[1:], weights[0]) / len(weights) if weights else nothing_B,
        )

    looked: tuple[jax.Array, jax.Array]
    looked = per_device(look, mesh)(variables, sides)
    return looked
