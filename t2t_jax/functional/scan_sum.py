"""Sums over parts that are computed one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t2t_jax.types import PyTree


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

    summed: tuple[PyTree, Any] = jax.lax.scan(add, zeros, parts)
    return summed
