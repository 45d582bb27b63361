"""Cross entropy with label smoothing (§5.4 of the paper)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.types import Array


class LossSums(NamedTuple):
    """Sums over target tokens.

    Attributes:
      loss: smoothed cross entropy, float32, nats.
      nll: cross entropy without smoothing, float32, nats.
      correct: int32, tokens whose logit is the largest.
    """

    loss: jax.Array
    nll: jax.Array
    correct: jax.Array


def loss_sums(
    logits_xV: Array, targets_x: Array, *, real_x: Array, label_smoothing: float
) -> LossSums:
    """Sums the loss over the real target tokens.

    Example:
      >>> loss_sums(
      ...     jnp.eye(3), jnp.arange(3), real_x=jnp.arange(3) > 0, label_smoothing=0.0
      ... ).correct.item()
      2
    """
    _check(logits_xV, targets_x, label_smoothing)
    loss_x, nll_x, is_best_x = _with_gradient(logits_xV, targets_x, label_smoothing)
    return LossSums(
        loss=jnp.sum(loss_x, where=real_x),
        nll=jnp.sum(nll_x, where=real_x),
        correct=jnp.sum(is_best_x, where=real_x, dtype=jnp.int32),
    )


def label_smoothed_nll(
    logits_xV: Array, targets_x: Array, *, label_smoothing: float = 0.0
) -> tuple[jax.Array, jax.Array]:
    r"""Computes the smoothed loss for training, and the unsmoothed one for reports.

    The target distribution puts 1 - eps on the target word and spreads eps evenly over
    all V words. With u = eps / V its cross entropy is

        loss = logsumexp(z) - (1 - eps) z_y - u sum(z),

    so neither probabilities nor one-hot vectors are materialized.

    The gradient is custom: reverse mode only, also twice, but not `jax.jvp`.

    Args:
      targets_x: [...] the target word y. At padding the loss is meaningless, and the
        caller must mask it.
      label_smoothing: eps in [0, 1]; 0.1 in the paper.

    Returns:
      loss: [...] float32, nats, smoothed. Its minimum is not 0 but the entropy of the
        target distribution.
      nll: [...] float32, nats, unsmoothed: exp of its mean is the perplexity.

    Raises:
      ValueError: the shapes do not agree, or `label_smoothing` is not in [0, 1].

    Paper: §5.4, label smoothing, as its reference [36] defines it: uniform over all V.

    Example:
      >>> loss, nll = label_smoothed_nll(
      ...     jnp.zeros((1, 4)), jnp.array([2]), label_smoothing=0.1
      ... )
      >>> loss.round(4).tolist(), nll.round(4).tolist()  # log 4, whatever eps is
      ([1.386...], [1.386...])
    """
    _check(logits_xV, targets_x, label_smoothing)
    return _with_gradient(logits_xV, targets_x, label_smoothing)[:2]


def _check(logits_xV: Array, targets_x: Array, label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise ValueError(
            f"label_smoothing={label_smoothing} must be in [0, 1] (§5.4). "
            "Change config.training.label_smoothing."
        )
    if logits_xV.shape[:-1] != targets_x.shape:
        raise ValueError(
            "targets must have the axes of logits but for V, "
            f"{list(logits_xV.shape[:-1])}; they have the shape "
            f"{list(targets_x.shape)}. Pass one target for each vector of logits."
        )


Smoothed: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]
"""The loss, that without smoothing, and whether the target's logit is the largest."""


def _with_gradient(*arguments: Any) -> Smoothed:
    try:
        return _smoothed(*arguments)
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise TypeError(
            "The loss has derivatives in reverse mode only. Use jax.grad, jax.vjp or "
            "jax.jacrev in place of jax.jvp or jax.jacfwd, or write the loss with "
            "jax.nn.log_softmax."
        ) from error


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _smoothed(logits_xV: Array, targets_x: Array, label_smoothing: float) -> Smoothed:
    return _smoothed_forward(logits_xV, targets_x, label_smoothing)[0]


def _smoothed_forward(
    logits_xV: Array, targets_x: Array, label_smoothing: float
) -> tuple[Smoothed, tuple[Array, Array, jax.Array]]:
    # Sums over V = 37,000 words: in float32, whatever the dtype of the logits.
    z_xV = jnp.asarray(logits_xV, jnp.float32)
    max_x, lse_x, total_x, target_x = _read(z_xV, targets_x)
    loss_x = lse_x - (1 - label_smoothing) * target_x
    if label_smoothing:
        loss_x -= label_smoothing / z_xV.shape[-1] * total_x
    return (loss_x, lse_x - target_x, target_x >= max_x), (logits_xV, targets_x, lse_x)


Reductions: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""The maximum, log-sum-exp and sum of the logits, and the logit of the target."""


@jax.custom_jvp
def _read(z_xV: jax.Array, targets_x: jax.Array) -> Reductions:
    found: Reductions = jax.lax.platform_dependent(
        z_xV, targets_x, cpu=_reductions, default=_reductions_in_one_read
    )
    return found


@_read.defjvp
def _read_tangents(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, Any]
) -> tuple[Reductions, Reductions]:
    """Differentiates the forward pass, for second derivatives; not of the maximum."""
    (z_xV, targets_x), (dz_xV, _) = primals, tangents
    found = _read(z_xV, targets_x)
    softmax_xV = jnp.exp(z_xV - found[1][..., None])
    _, _, dtotal_x, dtarget_x = _reductions(dz_xV, targets_x)
    dlse_x = (softmax_xV * dz_xV).sum(axis=-1)
    return found, (jnp.zeros_like(dlse_x), dlse_x, dtotal_x, dtarget_x)


def _reductions(z_xV: jax.Array, targets_x: jax.Array) -> Reductions:
    # A gather: a masked sum would write [..., V] numbers once more on a CPU. Not an
    # argmax, which costs XLA:CPU ten times as much as the maximum.
    target_x1 = jnp.take_along_axis(z_xV, targets_x[..., None], axis=-1)
    lse_x = jax.nn.logsumexp(z_xV, axis=-1)
    return z_xV.max(axis=-1), lse_x, z_xV.sum(axis=-1), target_x1[..., 0]


def _reductions_in_one_read(z_xV: jax.Array, targets_x: jax.Array) -> Reductions:
    """Computes the same while the logits, billions of numbers, are read once."""
    zero, lowest = np.float32(0), np.finfo(np.float32).min

    def merge(a: Reductions, b: Reductions) -> Reductions:
        # The sums of exponentials are relative to the maximum so far.
        largest = jnp.maximum(jnp.maximum(a[0], b[0]), lowest)
        exp_a, exp_b = (x[1] * jnp.exp(x[0] - largest) for x in (a, b))
        return largest, exp_a + exp_b, a[2] + b[2], a[3] + b[3]

    ones_xV = jnp.ones_like(z_xV)
    target_xV = jnp.where(_is_target(z_xV, targets_x), z_xV, 0.0)
    operands, initial = (z_xV, ones_xV, z_xV, target_xV), (lowest, zero, zero, zero)
    reduced = jax.lax.reduce(operands, initial, merge, (z_xV.ndim - 1,))
    max_x, exp_x, total_x, target_x = reduced
    return max_x, max_x + jnp.log(exp_x), total_x, target_x


def _smoothed_backward(
    label_smoothing: float,
    residuals: tuple[Array, Array, jax.Array],
    cotangents: Smoothed,
) -> tuple[jax.Array, None]:
    """Computes the gradient in one pass: softmax - smoothed target, scaled."""
    # Autodiff of the forward pass writes each of its terms, [..., V] apiece: 300 ms
    # against 210 here, for 4,096 targets of 10,000 words on two CPU cores.
    logits_xV, targets_x, lse_x = residuals
    loss_x1, nll_x1 = (cotangent[..., None] for cotangent in cotangents[:2])
    uniform = label_smoothing / logits_xV.shape[-1]
    softmax_xV = jnp.exp(logits_xV.astype(jnp.float32) - lse_x[..., None])
    at_target_x1 = (1 - label_smoothing) * loss_x1 + nll_x1
    gradient_xV = (
        (loss_x1 + nll_x1) * softmax_xV
        - uniform * loss_x1
        - jnp.where(_is_target(softmax_xV, targets_x), at_target_x1, 0.0)
    )
    return gradient_xV.astype(logits_xV.dtype), None


_smoothed.defvjp(_smoothed_forward, _smoothed_backward)


def _is_target(z_xV: Array, targets_x: Array) -> jax.Array:
    """Marks the target word: a comparison, which fuses into the gradient."""
    words_xV = jax.lax.broadcasted_iota(jnp.int32, z_xV.shape, z_xV.ndim - 1)
    return words_xV == targets_x[..., None]
