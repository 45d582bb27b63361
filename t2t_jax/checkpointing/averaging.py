"""The mean of several checkpoints' parameters.

Paper: §6.1: the last 5 checkpoints of a base model, the last 20 of a big one.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import numpy as np

from t2t_jax.types import Params


def average(checkpoints: Iterable[Params]) -> Params:
    """Averages parameter trees, one in memory at a time.

    Args:
      checkpoints: trees of equal structure and shapes; at least one.

    Returns:
      The plain mean of each leaf, summed in float64, in the leaf's own dtype.

    Raises:
      ValueError: there is no checkpoint.

    Paper: §6.1.

    Example:
      >>> average([{"a": np.zeros(2)}, {"a": np.ones(2)}])
      {'a': array([0.5, 0.5])}
    """
    total: Params = None
    count = 0
    for params in checkpoints:
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
        total = wide if total is None else jax.tree.map(np.add, total, wide)
        count, last = count + 1, params
    if not count:
        raise ValueError(
            "An average needs at least one checkpoint, and none came. "
            "Name some with --average_steps, or keep more with checkpoint.keep."
        )
    return jax.tree.map(lambda t, x: (t / count).astype(x.dtype), total, last)
