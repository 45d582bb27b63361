"""The loss in chunks of the target, so that not all logits are in memory at once.

The logits of the paper's batch, 24,576 target tokens of 37,000 words, are 3.6 GB of
float32, and their gradient is as much again: by far the largest arrays of a step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from t2t_jax.functional.embedding import logits
from t2t_jax.functional.losses import LossSums, loss_sums
from t2t_jax.functional.shapes import check_axes
from t2t_jax.types import Array, PyTree

Weights: TypeAlias = tuple[Array, Array | None]
"""The pre-softmax matrix [V, D], and a bias [V] or None."""

Words: TypeAlias = tuple[Array, Array]
"""The target word of each position, and whether it is real."""

ChunkSums: TypeAlias = Callable[[PyTree, Weights, Words], Any]
"""(decoder outputs [B, C, D] of a chunk, weights, words) -> a tuple of sums."""


def chunked_loss_sums(
    y_BxTxD: Array,
    table_VxD: Array,
    targets_BxT: Array,
    *,
    real_BxT: Array,
    label_smoothing: float,
    chunks: int,
    bias_V: Array | None = None,
) -> LossSums:
    """Computes `loss_sums(logits(y, table, bias), …)`, some positions at a time.

    The gradient of a chunk is computed with its loss, and only the small arrays of both
    are kept: no product is computed twice, as with rematerialized logits.

    Args:
      chunks: parts of T, processed one after the other; at least 1. They have equal
        size, so there may be fewer.
      bias_V: [V] added to the logits; None for none.

    Returns:
      The sums over the batch. `loss` has a gradient, for `y`, table and bias, in
      reverse mode; in several chunks nothing else has.

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
        bias=(bias_V, "V"),
    )
    sums = functools.partial(_loss_sums, label_smoothing=label_smoothing)
    weights, words = (table_VxD, bias_V), (targets_BxT, real_BxT)
    if chunks == 1:
        return sums(jnp.asarray(y_BxTxD), weights, words)
    found: LossSums = sums_in_chunks(sums, y_BxTxD, weights, words=words, chunks=chunks)
    return found


def _loss_sums(
    y_BxCxD: jax.Array, weights: Weights, words: Words, *, label_smoothing: float
) -> LossSums:
    # With one axis of tokens compilers lay out logits and their gradient alike.
    targets_L, real_L = (jnp.reshape(x_BxC, -1) for x_BxC in words)
    with jax.named_scope("logits"):
        logits_LxV = logits(y_BxCxD.reshape(-1, y_BxCxD.shape[-1]), *weights)
    return loss_sums(
        logits_LxV, targets_L, real_x=real_L, label_smoothing=label_smoothing
    )


def sums_in_chunks(
    sums: ChunkSums, y: PyTree, weights: Weights, *, words: Words, chunks: int
) -> Any:
    """Sums a function over chunks of the target, one after the other.

    Args:
      sums: computes the sums over one chunk.
      y: one or several decoder outputs [B, T, D], which are split alike.
      words: target words [B, T], and whether they are real [B, T].
      chunks: as of `chunked_loss_sums`.

    Returns:
      The sums over the batch. Only the first has a gradient, for `y` and weights, in
      reverse mode.
    """
    size = -(-words[0].shape[1] // chunks)
    words, y = jax.tree.map(functools.partial(_split, size=size), (words, y))
    return _sum_chunks(sums, y, weights, words)


def scan_sum(
    function: Callable[[PyTree], tuple[PyTree, Any]], parts: PyTree
) -> tuple[PyTree, Any]:
    """Sums a function's results over parts, in a loop on the device.

    Args:
      function: part -> (results to sum, results to stack).
      parts: arrays whose first axis counts the parts.

    Returns:
      The sum, and the stacked results with the axis of the parts first.

    Example:
      >>> total, doubles = scan_sum(lambda x: (x, 2 * x), jnp.array([1, 2, 3]))
      >>> total.item(), doubles.tolist()
      (6, [2, 4, 6])
    """
    shapes, _ = jax.eval_shape(function, jax.tree.map(lambda x: x[0], parts))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def add(total: PyTree, part: PyTree) -> tuple[PyTree, Any]:
        term, stacked = function(part)
        return jax.tree.map(jnp.add, total, term), stacked

    return jax.lax.scan(add, zeros, parts)


def _split(x_BxTx: Array, *, size: int) -> jax.Array:
    """Splits the second axis, zero-padded: [B, T, ...] -> [N, B, size, ...]."""
    # Not the first axis, over which devices share a batch.
    batch, length, *rest = x_BxTx.shape
    fill = [(0, 0), (0, -length % size), *[(0, 0)] * len(rest)]
    x_BxNxCx = jnp.pad(x_BxTx, fill).reshape(batch, -1, size, *rest)
    return jnp.moveaxis(x_BxNxCx, 1, 0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sum_chunks(sums: ChunkSums, y: PyTree, weights: Weights, words: Words) -> Any:
    def chunk_sums(part: tuple[PyTree, Words]) -> tuple[Any, None]:
        chunk_y, chunk_words = part
        return sums(chunk_y, weights, chunk_words), None

    return scan_sum(chunk_sums, (y, words))[0]


def _forward(
    sums: ChunkSums, y: PyTree, weights: Weights, words: Words
) -> tuple[Any, tuple[PyTree, Weights]]:
    def first_and_all(*arguments: Any) -> tuple[jax.Array, Any]:
        found = sums(*arguments)
        return found[0], found

    with_gradient = jax.value_and_grad(first_and_all, argnums=(0, 1), has_aux=True)

    def sums_and_gradient(
        part: tuple[PyTree, Words],
    ) -> tuple[tuple[Any, Weights], PyTree]:
        chunk_y, chunk_words = part
        (_, found), (dy, dweights) = with_gradient(chunk_y, weights, chunk_words)
        return (found, dweights), dy

    (found, dweights), dy = scan_sum(sums_and_gradient, (y, words))
    return found, (dy, dweights)


def _backward(
    sums: ChunkSums, gradients: tuple[PyTree, Weights], cotangents: Any
) -> tuple[PyTree, Weights, None]:
    del sums  # its gradients are computed already

    def scale(gradient: jax.Array) -> jax.Array:
        scaled: jax.Array = (cotangents[0] * gradient).astype(gradient.dtype)
        return scaled

    return *jax.tree.map(scale, gradients), None


_sum_chunks.defvjp(_forward, _backward)
