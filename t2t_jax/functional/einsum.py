"""Matrix products that sum in float32, in the forward and the backward pass.

With bfloat16 activations, plain autodiff has two problems: the cotangent of a float32
result (logits, attention scores) is float32, and is multiplied as float32, many times
slower on an accelerator; and the gradient of a matrix, a sum over all tokens and
devices, is rounded to bfloat16 before it is summed.
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

    The gradient is custom where dtypes differ: reverse mode only, also twice, but not
    `jax.jvp`. Pure float32 is left to JAX.

    Args:
      equation: of `jnp.einsum`, with its arrow. Every axis occurs in two of its three
        parts, with one size: no broadcasting.
      x: activations; every product, also of the gradients, multiplies in their dtype.
      y: other activations, or parameters, which may be float32 and are cast.
      dtype: of the result; None: that of `x`. Sums are always float32.

    Returns:
      The product. Its gradients have the dtypes of `x` and `y`, so those of float32
      parameters are never rounded.

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
    # XLA:CPU multiplies bfloat16 only where the result is float32; otherwise it widens
    # both first, which takes twice the time on processors with AVX512_BF16. Compilers
    # for accelerators round within the product's kernel.
    factors = (x, y.astype(x.dtype))
    product = jnp.einsum(equation, *factors, preferred_element_type=jnp.float32)
    return product.astype(dtype)


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
    del dtype  # that of the cotangent
    x, y = residuals
    inputs, result_axes = equation.split("->")
    x_axes, y_axes = inputs.split(",")
    cotangent = cotangent.astype(x.dtype)
    return (
        einsum_f32(f"{result_axes},{y_axes}->{x_axes}", cotangent, y),
        einsum_f32(f"{x_axes},{result_axes}->{y_axes}", x, cotangent, dtype=y.dtype),
    )


_product.defvjp(_forward, _backward)
