"""Log-probabilities of given outputs, in one pass of the model as in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS, SpecialIds
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array, PyTree

Apply: TypeAlias = Callable[[PyTree, Array, Array], Any]
"""(variables, source_BxS, target_inputs_BxT) -> logits_BxTxV; pad is masked."""


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
      apply: the model, such as a Linen module's `apply`.
      variables: the first argument of `apply`.
      source_BxS: [B, S] int tokens, pad after the end.
      target_outputs_BxT: [B, T] int tokens, usually with eos, pad after the end.
      ids: pad and bos of the model.

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
    real_BxT = target_outputs_BxT != ids.pad
    bos_Bx1 = jnp.full_like(target_outputs_BxT[:, :1], ids.bos)
    shifted_BxT = jnp.concatenate([bos_Bx1, target_outputs_BxT[:, :-1]], axis=1)
    # Without the last eos, which is an output but not an input: as in training.
    target_inputs_BxT = jnp.where(real_BxT, shifted_BxT, ids.pad)
    logits_BxTxV = apply(variables, source_BxS, target_inputs_BxT)
    # A sum over V = 37,000 words: in float32, whatever the dtype of the logits. Gather
    # and log-sum-exp only read them; log_softmax would write as many again.
    logits_BxTxV = jnp.asarray(logits_BxTxV, jnp.float32)
    output_BxTx1 = jnp.take_along_axis(
        logits_BxTxV, target_outputs_BxT[..., None], axis=-1
    )
    logs_BxT = output_BxTx1[..., 0] - jax.nn.logsumexp(logits_BxTxV, axis=-1)
    return jnp.where(real_BxT, logs_BxT, 0.0)
