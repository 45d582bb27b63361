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
    """Adds up what a function makes of each part, in a loop of the device.

    Args:
      function: part -> (what is added up, what is put side by side).
      parts: arrays whose first axis counts the parts.

    Returns:
      The sum, and the others with the axis of the parts first.

    Example:
      >>> total, doubles = scan_sum(lambda x: (x, 2 * x), jnp.array([1, 2, 3]))
      >>> total.item(), doubles.tolist()
      (6, [2, 4, 6])
    """
    shapes, _ = jax.eval_shape(function, jax.tree.map(lambda x: x[0], parts))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def add(total: PyTree, part: PyTree) -> tuple[PyTree, Any]:
        found, apart = function(part)
        return jax.tree.map(jnp.add, total, found), apart

    summed: tuple[PyTree, Any] = jax.lax.scan(add, nothing, parts)
    return summed
