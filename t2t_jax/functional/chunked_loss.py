"""The loss of a batch whose logits are never all there at once.

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
"""The right words of each position, and whether it is real."""


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

    The gradient of a chunk is taken together with its loss, and of both only what is
    small is kept: no product is made twice, as it would be if logits were given up and
    computed once more.

    Args:
      y_BxTxD: [B, T, D] output of the decoder.
      table_VxD: [V, D] the pre-softmax matrix.
      targets_BxT: [B, T] the right words.
      real_BxT: [B, T] bool, False where there is padding.
      label_smoothing: mass spread over the vocabulary.
      chunks: parts of T, of which one after the other is read; at least 1. They are
        alike, so there are fewer where T is not to be cut into so many.

    Returns:
      The sums over the batch. Only `loss` has a gradient, by `y` and by the table, in
      reverse mode.

    Raises:
      ValueError: the axes do not agree.

    Paper:
      §3.4, §5.4.

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
    cut = functools.partial(_cut, size=-(-targets_BxT.shape[1] // chunks))
    words = (cut(targets_BxT), cut(real_BxT))
    sums: LossSums = _summed(cut(y_BxTxD), table_VxD, words, label_smoothing)
    return sums


def _cut(x_BxTx: Array, *, size: int) -> jax.Array:
    """Cuts the second axis, filled up with zeros: [B, T, ...] -> [N, B, size, ...].

    That axis, and not the first, over which devices share a batch.
    """
    batch, length, *rest = x_BxTx.shape
    fill = [(0, 0), (0, -length % size), *[(0, 0)] * len(rest)]
    x_BxNxCx = jnp.pad(x_BxTx, fill).reshape(batch, -1, size, *rest)
    return jnp.moveaxis(x_BxNxCx, 1, 0)


def _of_chunk(
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
def _summed(
    y_NxBxCxD: jax.Array, table_VxD: Array, words: _Words, label_smoothing: float
) -> LossSums:
    def sums(part: tuple[jax.Array, _Words]) -> tuple[LossSums, None]:
        y_BxCxD, words_of_chunk = part
        return _of_chunk(y_BxCxD, table_VxD, words_of_chunk, label_smoothing)[1], None

    added: LossSums = scan_sum(sums, (y_NxBxCxD, words))[0]
    return added


def _forward(
    y_NxBxCxD: jax.Array, table_VxD: Array, words: _Words, label_smoothing: float
) -> tuple[LossSums, tuple[jax.Array, jax.Array]]:
    with_gradient = jax.value_and_grad(_of_chunk, argnums=(0, 1), has_aux=True)

    def sums_and_gradient(
        part: tuple[jax.Array, _Words],
    ) -> tuple[tuple[LossSums, jax.Array], jax.Array]:
        y_BxCxD, words_of_chunk = part
        (_, sums), (of_y_BxCxD, of_table_VxD) = with_gradient(
            y_BxCxD, table_VxD, words_of_chunk, label_smoothing
        )
        return (sums, of_table_VxD), of_y_BxCxD

    (sums, of_table_VxD), of_y_NxBxCxD = scan_sum(sums_and_gradient, (y_NxBxCxD, words))
    return sums, (of_y_NxBxCxD, of_table_VxD)


def _backward(
    label_smoothing: float,
    gradients: tuple[jax.Array, jax.Array],
    cotangents: LossSums,
) -> tuple[jax.Array, jax.Array, None]:
    del label_smoothing  # The gradients have it.
    of_y, of_table = (
        (cotangents.loss * gradient).astype(gradient.dtype) for gradient in gradients
    )
    return of_y, of_table, None


_summed.defvjp(_forward, _backward)
