"""Cross entropy with a consistency term between two passes: SimCut and R-Drop.

Both compute every target's distribution twice, p and q, by passes with dropout masks of
their own, and penalize their divergence, with a gradient through both. Below, CE is the
smoothed cross entropy, and all terms are summed over the same real target tokens.

SimCut minimizes CE(p) + alpha KL(p || q). In the pass of q the token embeddings of the
source and of the decoder's inputs are zeroed with a probability (0.05; alpha is 3),
before positions are added; eos of a source and bos of a target are spared.

R-Drop minimizes CE(p) + CE(q) + alpha (KL(p || q) + KL(q || p)) / 2; alpha is 5 for
translation. Both passes are alike. Here it is all divided by 2, so that the loss and
the gradient's norm compare with those of other runs; Adam's updates do not depend on
such a factor, and alpha is that of its authors.

Paper: Gao et al., 2022, "Bi-SimCut: A Simple Strategy for Boosting Neural Machine
  Translation", and its authors' code, which spares these tokens. Liang et al., 2021,
  "R-Drop: Regularized Dropout for Neural Networks".

Departs: The Transformer's loss is CE(p) alone (§5.4).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from t2t_jax.functional.chunked_loss import Weights, Words, sums_in_chunks
from t2t_jax.functional.embedding import logits
from t2t_jax.functional.losses import label_smoothed_nll, loss_sums
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array


class ConsistencySums(NamedTuple):
    """Sums over target tokens.

    Attributes:
      objective: what is minimized, float32, nats: loss + weight * consistency.
      loss: smoothed cross entropy, float32, nats: of the first pass, or the mean of
        both if they are treated alike.
      nll: cross entropy of the first pass without smoothing, float32, nats.
      correct: int32, tokens whose logit in the first pass is the largest.
      consistency: divergence between the passes, float32, nats.
    """

    objective: jax.Array
    loss: jax.Array
    nll: jax.Array
    correct: jax.Array
    consistency: jax.Array


def consistency_sums(
    logits_xV: Array,
    other_xV: Array,
    targets_x: Array,
    *,
    real_x: Array,
    label_smoothing: float,
    weight: float,
    symmetric: bool,
) -> ConsistencySums:
    """Sums the loss of two passes over the real target tokens.

    Args:
      other_xV: [..., V] logits of the second pass.
      weight: of the divergence: alpha of SimCut, half of R-Drop's.
      symmetric: whether both passes are treated alike, as by R-Drop.

    Example:
      >>> sums = consistency_sums(
      ...     jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.zeros(3, int),
      ...     real_x=jnp.arange(3) > 0, label_smoothing=0.1, weight=3.0, symmetric=False
      ... )
      >>> sums.objective.item(), sums.consistency.item()  # 2 log 2: nothing differs
      (1.386..., 0.0)
    """
    first = loss_sums(
        logits_xV, targets_x, real_x=real_x, label_smoothing=label_smoothing
    )
    loss = first.loss
    if symmetric:
        other_x, _ = label_smoothed_nll(
            other_xV, targets_x, label_smoothing=label_smoothing
        )
        loss = (loss + jnp.sum(other_x, where=real_x)) / 2
    kl_x = divergence(logits_xV, other_xV, symmetric=symmetric)
    consistency = jnp.sum(kl_x, where=real_x)
    return ConsistencySums(
        objective=loss + weight * consistency,
        loss=loss,
        nll=first.nll,
        correct=first.correct,
        consistency=consistency,
    )


def chunked_consistency_sums(
    y_BxTxD: Array,
    other_BxTxD: Array,
    weights: Weights,
    *,
    words: Words,
    label_smoothing: float,
    weight: float,
    symmetric: bool,
    chunks: int,
) -> ConsistencySums:
    """Computes `consistency_sums` of two decoder outputs, some positions at a time.

    The logits of both passes are made for one chunk after the other, side by side.

    Args:
      weights: the pre-softmax matrix [V, D], and a bias [V] or None.
      words: target words [B, T], and whether they are real [B, T].
      chunks: as of `chunked_loss.chunked_loss_sums`.

    Returns:
      The sums over the batch. Only `objective` has a gradient, for both outputs and the
      weights, in reverse mode.

    Raises:
      ValueError: the shapes do not agree.
    """
    (table_VxD, bias_V), (targets_BxT, real_BxT) = weights, words
    check_axes(
        y=(y_BxTxD, "BxTxD"),
        other=(other_BxTxD, "BxTxD"),
        table=(table_VxD, "VxD"),
        targets=(targets_BxT, "BxT"),
        real=(real_BxT, "BxT"),
        bias=(bias_V, "V"),
    )

    def sums(
        y: tuple[jax.Array, jax.Array], matrix: Weights, chunk: Words
    ) -> ConsistencySums:
        return consistency_sums(
            logits(y[0], *matrix),
            logits(y[1], *matrix),
            chunk[0],
            real_x=chunk[1],
            label_smoothing=label_smoothing,
            weight=weight,
            symmetric=symmetric,
        )

    found: ConsistencySums = sums_in_chunks(
        sums, (y_BxTxD, other_BxTxD), weights, words=words, chunks=chunks
    )
    return found


def divergence(
    logits_p_xV: Array, logits_q_xV: Array, *, symmetric: bool = False
) -> jax.Array:
    r"""Computes the Kullback-Leibler divergence of two softmax distributions.

    With d = log p - log q it is KL = sum(p d), and its gradients are

        dKL / dlogits_p = p (d - KL),    dKL / dlogits_q = q - p.

    They are computed in one pass, in reverse mode only.

    Args:
      symmetric: whether to take (KL(p || q) + KL(q || p)) / 2 = sum((p - q) d) / 2.

    Returns:
      [...] float32, nats.

    Raises:
      ValueError: the shapes differ.

    Example:
      >>> p, q = jnp.log(jnp.array([[0.5, 0.5], [0.9, 0.1]]))
      >>> divergence(p, q).round(4).item()  # log(5 / 3)
      0.5108...
      >>> divergence(p, q, symmetric=True) == divergence(q, p, symmetric=True)
      Array(True, dtype=bool)
    """
    if logits_p_xV.shape != logits_q_xV.shape:
        raise ValueError(
            "The logits of both passes must have one shape; they have "
            f"{list(logits_p_xV.shape)} and {list(logits_q_xV.shape)}. Pass the "
            "logits of the same targets."
        )
    return _divergence(logits_p_xV, logits_q_xV, symmetric)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _divergence(logits_p_xV: Array, logits_q_xV: Array, symmetric: bool) -> jax.Array:
    return _forward(logits_p_xV, logits_q_xV, symmetric)[0]


def _forward(
    logits_p_xV: Array, logits_q_xV: Array, symmetric: bool
) -> tuple[jax.Array, tuple[Array, ...]]:
    # Sums over V = 37,000 words: in float32, whatever the dtype of the logits.
    lse_p_x = jax.nn.logsumexp(logits_p_xV.astype(jnp.float32), axis=-1)
    lse_q_x = jax.nn.logsumexp(logits_q_xV.astype(jnp.float32), axis=-1)
    log_p_xV = logits_p_xV - lse_p_x[..., None]
    log_q_xV = logits_q_xV - lse_q_x[..., None]
    d_xV = log_p_xV - log_q_xV
    kl_pq_x = jnp.sum(jnp.exp(log_p_xV) * d_xV, axis=-1)
    residuals = (logits_p_xV, logits_q_xV, lse_p_x, lse_q_x, kl_pq_x)
    if not symmetric:
        return kl_pq_x, residuals
    kl_qp_x = jnp.sum(jnp.exp(log_q_xV) * -d_xV, axis=-1)
    return (kl_pq_x + kl_qp_x) / 2, (*residuals, kl_qp_x)


def _backward(
    symmetric: bool, residuals: tuple[Array, ...], cotangent_x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    logits_p_xV, logits_q_xV, lse_p_x, lse_q_x, kl_pq_x, *kl_qp_x = residuals
    log_p_xV = logits_p_xV - lse_p_x[..., None]
    log_q_xV = logits_q_xV - lse_q_x[..., None]
    p_xV, q_xV, d_xV = jnp.exp(log_p_xV), jnp.exp(log_q_xV), log_p_xV - log_q_xV
    of_p_xV, of_q_xV = p_xV * (d_xV - kl_pq_x[..., None]), q_xV - p_xV
    if symmetric:
        of_p_xV = (of_p_xV + p_xV - q_xV) / 2
        of_q_xV = (of_q_xV + q_xV * (-d_xV - kl_qp_x[0][..., None])) / 2
    scale_x1 = cotangent_x[..., None]
    return (
        (scale_x1 * of_p_xV).astype(logits_p_xV.dtype),
        (scale_x1 * of_q_xV).astype(logits_q_xV.dtype),
    )


_divergence.defvjp(_forward, _backward)
