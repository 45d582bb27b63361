"""Scores and attention of given outputs, in one teacher-forced pass as in training."""

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
from t2t_jax.decoding.search.static_params import DEFAULT_IDS, SpecialIds
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array, PyTree

Apply: TypeAlias = Callable[[PyTree, Array, Array], Any]
"""(variables, source_BxS, target_inputs_BxT) -> logits_BxTxV; pad is masked."""

Attend: TypeAlias = Callable[[PyTree, Array, Array], jax.Array]
"""(variables, source_BxS, target_inputs_BxT) -> weights_BxTxS; hashable."""

# Approximate limit of the logits and attention weights of one pass on a device. The
# weights of one or two layers are in memory at a time.
_MAX_BYTES = 256 * 2**20
_HEADS = 16
_LEAST_WIDTH = 16


def token_log_probabilities(
    apply: Apply,
    variables: PyTree,
    *,
    source_BxS: Array,
    target_outputs_BxT: Array,
    ids: SpecialIds = DEFAULT_IDS,
) -> jax.Array:
    """Computes the log-probability of every output token given those before it.

    One pass of the model instead of T steps; a hypothesis of beam search gets the
    log-probability of the search. Safe under `jax.jit` with `apply` and `ids`
    static, and under `jax.vmap`.

    Args:
      source_BxS: [B, S] int tokens, pad after the end.
      target_outputs_BxT: [B, T] int tokens, usually with eos, pad after the end.

    Returns:
      [B, T] float32, natural logarithms; 0 at pad.

    Raises:
      ValueError: the axes do not agree.

    Paper: §6.1: what beam search compares.

    Example:
      A model with a uniform distribution over 4 words:

      >>> def apply(variables, source_BxS, target_inputs_BxT):
      ...     return jnp.zeros((*target_inputs_BxT.shape, 4))
      >>> found = token_log_probabilities(
      ...     apply,
      ...     {},
      ...     source_BxS=jnp.array([[3, 2]]),
      ...     target_outputs_BxT=jnp.array([[3, 2, 0]]),
      ... )
      >>> jnp.exp(found).round(4).tolist()
      [[0.25, 0.25, 1.0]]
    """
    check_axes(source=(source_BxS, "BxS"), target_outputs=(target_outputs_BxT, "BxT"))
    target_outputs_BxT = jnp.asarray(target_outputs_BxT)
    logits_BxTxV = apply(variables, source_BxS, _target_inputs(target_outputs_BxT, ids))
    # A sum over V = 37,000 words: in float32, whatever the dtype of the logits. Gather
    # and log-sum-exp only read them; log_softmax would write as many again.
    logits_BxTxV = jnp.asarray(logits_BxTxV, jnp.float32)
    output_BxTx1 = jnp.take_along_axis(
        logits_BxTxV, target_outputs_BxT[..., None], axis=-1
    )
    logs_BxT = output_BxTx1[..., 0] - jax.nn.logsumexp(logits_BxTxV, axis=-1)
    return jnp.where(target_outputs_BxT != ids.pad, logs_BxT, 0.0)


def _target_inputs(target_outputs_BxT: jax.Array, ids: SpecialIds) -> jax.Array:
    """Returns what the decoder reads: as in training, without the last eos."""
    bos_Bx1 = jnp.full_like(target_outputs_BxT[:, :1], ids.bos)
    shifted_BxT = jnp.concatenate([bos_Bx1, target_outputs_BxT[:, :-1]], axis=1)
    return jnp.where(target_outputs_BxT != ids.pad, shifted_BxT, ids.pad)


class RescoreResult(NamedTuple):
    """Token log-probabilities and attention of outputs.

    Attributes:
      log_probabilities_BxT: [B, T] float32, natural, 0 at pad; None if not requested.
      attention_BxTxS: [B, T, S] float32, the weights with which each token was
        generated; None if not requested.
    """

    log_probabilities_BxT: npt.NDArray[np.float32] | None
    attention_BxTxS: npt.NDArray[np.float32] | None


@dataclasses.dataclass(frozen=True)
class Rescorer:
    """Rescores outputs with teacher forcing, all positions in parallel.

    Probabilities and attention weights of several models are averaged.

    Attributes:
      attends: of each model; empty for no attention.
    """

    applies: tuple[Apply, ...]
    variables: tuple[PyTree, ...] = dataclasses.field(repr=False)
    vocab_size: int
    attends: tuple[Attend, ...] = ()
    token_scores: bool = True

    def rescore(
        self, source_BxS: npt.NDArray[np.int32], outputs_BxT: npt.NDArray[np.int32]
    ) -> RescoreResult:
        """Rescores every output, as many at once as fit the memory limit.

        Args:
          source_BxS: [B, S] tokens, each sentence with its eos, then pad.
          outputs_BxT: [B, T] tokens, the eos if there is one, then pad.

        Returns:
          On the host; T is the longest output, rounded up.
        """
        longest = int((outputs_BxT != DEFAULT_IDS.pad).sum(axis=1).max(initial=1))
        # Not wider than the search: a table of positions may be no longer.
        rounded = max(_LEAST_WIDTH, 1 << (longest - 1).bit_length())  # few programs
        width = min(rounded, outputs_BxT.shape[1])
        outputs_BxT = outputs_BxT[:, :width]
        mesh, (rows, length) = devices_of(self.variables), source_BxS.shape
        numbers = _HEADS * (length + width) * max(length, width)
        numbers += width * self.vocab_size if self.token_scores else 0
        at_once = mesh.size * _rows_at_once(-(-rows // mesh.size), numbers)
        applies, found = self.applies if self.token_scores else (), []
        for start in range(0, rows, at_once):
            some = (side[start : start + at_once] for side in (source_BxS, outputs_BxT))
            missing = ((0, max(0, start + at_once - rows)), (0, 0))
            sides = (np.pad(s, missing, constant_values=DEFAULT_IDS.pad) for s in some)
            parts = tuple(shard_rows(side, mesh) for side in sides)
            rescored = rescore_rows(
                self.variables, parts, applies=applies, attends=self.attends, mesh=mesh
            )
            found.append(gather_rows(rescored))
        return RescoreResult(
            *jax.tree.map(lambda *parts: np.concatenate(parts)[:rows], *found)
        )


def _rows_at_once(rows: int, numbers: int) -> int:
    """Chooses a power of two that holds `rows`, or the largest that fits the limit."""
    at_once = 1
    while at_once < rows and 2 * at_once * numbers * 4 <= _MAX_BYTES:
        at_once *= 2
    return at_once


@functools.partial(jax.jit, static_argnames=("applies", "attends", "mesh"))
def rescore_rows(
    variables: tuple[PyTree, ...],
    sides: tuple[Array, ...],
    *,
    applies: tuple[Apply, ...],
    attends: tuple[Attend, ...] = (),
    mesh: Mesh,
) -> tuple[jax.Array | None, jax.Array | None]:
    """Rescores each device's rows; None for what is not requested.

    Args:
      sides: sources and outputs; all axes start with `devices`.
    """

    def rescore_device(
        variables: tuple[PyTree, ...], sides: tuple[Array, ...]
    ) -> tuple[jax.Array | None, jax.Array | None]:
        source_BxS, outputs_BxT = map(jnp.asarray, sides)
        logs = [
            token_log_probabilities(
                apply, own, source_BxS=source_BxS, target_outputs_BxT=outputs_BxT
            )
            for apply, own in zip(applies, variables, strict=False)
        ]
        inputs_BxT = _target_inputs(outputs_BxT, DEFAULT_IDS)
        weights = [
            attend(own, source_BxS, inputs_BxT)
            for attend, own in zip(attends, variables, strict=False)
        ]
        return (
            mean_log_probabilities(logs) if logs else None,
            sum(weights[1:], weights[0]) / len(weights) if weights else None,
        )

    return per_device(rescore_device, mesh)(variables, sides)
