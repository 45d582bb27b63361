"""The loss in chunks of the target, so that not all logits are in memory at once.

The logits of the paper's batch, 24,576 target tokens of 37,000 words, are 3.6 GB of
float32, and their gradient is as much again: by far the largest arrays of a step.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp

from t2t_jax.functional.embedding import logits
from t2t_jax.functional.losses import LossSums, loss_sums
from t2t_jax.functional.scan_sum import scan_sum
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array

_Words: TypeAlias = tuple[jax.Array, jax.Array]
"""The target word of each position, and whether it is real."""


def chunked_loss_sums(
    y_BxTxD: Array,
    table_VxD: Array,
    targets_BxT: Array,
    *,
    real_BxT: Array,
    label_smoothing: float,
    chunks: int,
) -> LossSums:
    """Computes `loss_sums(logits(y, table), …)`, some positions at a time.

    The gradient of a chunk is computed with its loss, and only the small arrays of both
    are kept: no product is computed twice, as with rematerialized logits.

    Args:
      chunks: parts of T, processed one after the other; at least 1. They have equal
        size, so there may be fewer.

    Returns:
      The sums over the batch. Only `loss` has a gradient, for `y` and the table, in
      reverse mode.

    Raises:
      ValueError: the shapes do not agree.

    Paper: §3.4, §5.4.

    Example:
      >>> y, table = jnp.ones((1, 4, 2)), jnp.eye(2)
      >>> targets, real = jnp.zeros((1, 4), int), jnp.ones((1, 4), bool)
      >>> chunked_loss_sums(
      ...     y, table, targets, real_BxT=real, label_smoothing=0.1, chunks=2
      ... ).nll.item()
      2.7725...
    """
    check_axes(
        y=(y_BxTxD, "BxTxD"),
        table=(table_VxD, "VxD"),
        targets=(targets_BxT, "BxT"),
        real=(real_BxT, "BxT"),
    )
    split = functools.partial(_split, size=-(-targets_BxT.shape[1] // chunks))
    words = (split(targets_BxT), split(real_BxT))
    sums: LossSums = _sum_chunks(split(y_BxTxD), table_VxD, words, label_smoothing)
    return sums


def _split(x_BxTx: Array, *, size: int) -> jax.Array:
    """Splits the second axis, zero-padded: [B, T, ...] -> [N, B, size, ...]."""
    # Not the first axis, over which devices share a batch.
    batch, length, *rest = x_BxTx.shape
    fill = [(0, 0), (0, -length % size), *[(0, 0)] * len(rest)]
    x_BxNxCx = jnp.pad(x_BxTx, fill).reshape(batch, -1, size, *rest)
    return jnp.moveaxis(x_BxNxCx, 1, 0)


def _chunk_sums(
    y_BxCxD: jax.Array, table_VxD: Array, words: _Words, label_smoothing: float
) -> tuple[jax.Array, LossSums]:
    targets_BxC, real_BxC = words
    sums = loss_sums(
        logits(y_BxCxD, table_VxD),
        targets_BxC,
        real_x=real_BxC,
        label_smoothing=label_smoothing,
    )
    return sums.loss, sums


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _sum_chunks(
    y_NxBxCxD: jax.Array, table_VxD: Array, words: _Words, label_smoothing: float
) -> LossSums:
    def sums(part: tuple[jax.Array, _Words]) -> tuple[LossSums, None]:
        y_BxCxD, chunk_words = part
        return _chunk_sums(y_BxCxD, table_VxD, chunk_words, label_smoothing)[1], None

    added: LossSums = scan_sum(sums, (y_NxBxCxD, words))[0]
    return added


def _forward(
    y_NxBxCxD: jax.Array, table_VxD: Array, words: _Words, label_smoothing: float
) -> tuple[LossSums, tuple[jax.Array, jax.Array]]:
    with_gradient = jax.value_and_grad(_chunk_sums, argnums=(0, 1), has_aux=True)

    def sums_and_gradient(
        part: tuple[jax.Array, _Words],
    ) -> tuple[tuple[LossSums, jax.Array], jax.Array]:
        y_BxCxD, chunk_words = part
        (_, sums), (dy_BxCxD, dtable_VxD) = with_gradient(
            y_BxCxD, table_VxD, chunk_words, label_smoothing
        )
        return (sums, dtable_VxD), dy_BxCxD

    (sums, dtable_VxD), dy_NxBxCxD = scan_sum(sums_and_gradient, (y_NxBxCxD, words))
    return sums, (dy_NxBxCxD, dtable_VxD)


def _backward(
    label_smoothing: float,
    gradients: tuple[jax.Array, jax.Array],
    cotangents: LossSums,
) -> tuple[jax.Array, jax.Array, None]:
    del label_smoothing  # in the gradients already
    dy, dtable = (
        (cotangents.loss * gradient).astype(gradient.dtype) for gradient in gradients
    )
    return dy, dtable, None


_sum_chunks.defvjp(_forward, _backward)
