"""Declares parameters, with initial values that are traced once for a shape."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

Initializer = Callable[..., jax.Array]


def declare(
    module: nn.Module, name: str, initializer: Initializer, shape: tuple[int, ...]
) -> jax.Array:
    """Declares a float32 parameter of a module, in its `setup`; returns the value.

    As `module.param`, which finds the shape of a value that exists by tracing the
    initializer again: of all the time of tracing a search, an eighth.

    Raises:
      ValueError: the module was given a value of another shape.
    """
    if not module.has_variable("params", name):
        return module.param(name, initializer, shape, jnp.float32)
    value: jax.Array = module.get_variable("params", name)
    if np.shape(value) != shape:
        raise ValueError(
            f"params/{'/'.join([*module.path, name])} must have shape {shape}, and has "
            f"{np.shape(value)}. Pass parameters of the same configuration."
        )
    return value


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
    glorot = nn.initializers.glorot_uniform(
        in_axis=axes[:num_inputs], out_axis=axes[num_inputs:]
    )
    return _traced_once(glorot)


@functools.cache
def normal(deviation: float) -> Initializer:
    """Draws from a normal distribution of this standard deviation."""
    return _traced_once(nn.initializers.normal(deviation))


zeros: Initializer = _traced_once(nn.initializers.zeros)
ones: Initializer = _traced_once(nn.initializers.ones)
