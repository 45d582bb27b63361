"""Products of matrices that sum in float32, forwards and backwards.

Where activations are bfloat16, autodiff by itself goes wrong in two ways: what goes
into a float32 result (logits, attention scores) comes back as float32, and is then
multiplied as float32, many times as slow on an accelerator; and the gradient of a
matrix, a sum over all tokens and devices, is rounded to bfloat16 before it is summed.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from t2t_jax.types import Array


def einsum_f32(
    equation: str, x: Array, y: Array, *, dtype: DTypeLike | None = None
) -> jax.Array:
    """Multiplies two arrays, in the dtype of the first.

    Args:
      equation: of `jnp.einsum`, with its arrow. Every axis stands in two of its three
        parts, and has one size: none is broadcast.
      x: activations; every product, also of the gradients, multiplies in their dtype.
      y: other activations, or parameters, which may be float32 and are cast.
      dtype: of the result; None: that of `x`. Sums are float32 in any case.

    Returns:
      The product. Its gradients have the dtypes of `x` and `y`, so those of float32
      parameters are never rounded.

    Where dtypes differ its gradient is written out: it can be differentiated in reverse
    mode, also twice, but not by `jax.jvp`. Float32 throughout is left to JAX.

    Example:
      >>> x, w = jnp.ones((3, 2), jnp.bfloat16), jnp.eye(2)
      >>> einsum_f32("ld,de->le", x, w).dtype.name
      'bfloat16'
      >>> jax.grad(lambda w: einsum_f32("ld,de->le", x, w).sum())(w).dtype.name
      'float32'
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    result = jnp.dtype(dtype or x.dtype)
    if x.dtype == y.dtype == result == jnp.float32:
        return jnp.einsum(equation, x, y)
    return _product(equation, result, x, y)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(equation: str, dtype: DTypeLike, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum(equation, x, y.astype(x.dtype), preferred_element_type=dtype)


def _forward(
    equation: str, dtype: DTypeLike, x: jax.Array, y: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _product(equation, dtype, x, y), (x, y)


def _backward(
    equation: str,
    dtype: DTypeLike,
    residuals: tuple[jax.Array, jax.Array],
    cotangent: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    del dtype  # The cotangent has it.
    x, y = residuals
    inputs, of_result = equation.split("->")
    of_x, of_y = inputs.split(",")
    cotangent = cotangent.astype(x.dtype)
    return (
        einsum_f32(f"{of_result},{of_y}->{of_x}", cotangent, y),
        einsum_f32(f"{of_x},{of_result}->{of_y}", x, cotangent, dtype=y.dtype),
    )


_product.defvjp(_forward, _backward)
