"""Initial values of parameters, each function traced once for a shape.

Flax evaluates the shape of an initializer at each use of a parameter, in decoding too.
Compiled functions remember it: until the first translated line, the random numbers of
every parameter were traced three times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
from flax import linen as nn

Initializer = Callable[..., jax.Array]


def _traced_once(initializer: Initializer) -> Initializer:
    return jax.jit(initializer, static_argnums=(1, 2))


@functools.cache
def glorot_uniform(num_inputs: int = 1, num_outputs: int = 1) -> Initializer:
    """Draws from a uniform distribution by the fans of a kernel.

    Args:
      num_inputs: of the first axes, counted together.
      num_outputs: of the last axes, counted together.
    """
    axes = range(num_inputs + num_outputs)
    return _traced_once(
        nn.initializers.glorot_uniform(
            in_axis=axes[:num_inputs], out_axis=axes[num_inputs:]
        )
    )


@functools.cache
def normal(deviation: float) -> Initializer:
    """Draws from a normal distribution of this standard deviation."""
    return _traced_once(nn.initializers.normal(deviation))


zeros: Initializer = _traced_once(nn.initializers.zeros)
ones: Initializer = _traced_once(nn.initializers.ones)
