"""Gradients of one's own in reverse mode that leave forward mode to JAX.

`jax.custom_vjp` refuses `jax.jvp`, and with `jax.custom_jvp` JAX chooses what the
backward pass stores and computes. Here the tangent is a primitive, linear in the
tangents of the arguments, whose transpose is the backward pass that was given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from t2t_jax.types import PyTree


def custom_gradient(
    forward: Callable[..., tuple[Any, PyTree]],
    backward: Callable[..., PyTree],
    *,
    static: int = 0,
) -> Callable[..., Any]:
    """Returns a function with a gradient of its own, and JAX's forward mode.

    Args:
      forward: returns the output and the residuals. JAX differentiates the output in
        forward mode, and where it is batched before.
      backward: returns a cotangent for each argument that is an array, None for one of
        integers; of the static arguments, the residuals and the output's cotangent.
      static: number of arguments, the first ones, that are not arrays.

    Example:
      >>> clipped = custom_gradient(
      ...     lambda x: (x**2, x), lambda x, g: (g * jnp.clip(2 * x, -1, 1),)
      ... )
      >>> x = jnp.float32(3)
      >>> float(jax.grad(clipped)(x)), float(jax.jvp(clipped, (x,), (x,))[1])
      (1.0, 18.0)
    """

    def output(*arguments: Any) -> Any:
        return forward(*arguments)[0]

    name = f"tangent_of_{forward.__module__.rpartition('.')[2]}"
    linear = _tangent_primitive(name, output, backward)
    function = jax.custom_jvp(output, nondiff_argnums=tuple(range(static)))

    @function.defjvp
    def rule(*arguments: Any) -> tuple[Any, Any]:
        *args, primals, tangents = arguments
        found, residuals = forward(*args, *primals)
        arrays, tree = jax.tree.flatten((residuals, tuple(primals)))
        given = (*arrays, *_real(tangents))
        return found, _fill(found, linear.bind(*given, args=tuple(args), tree=tree))

    return function


def _tangent_primitive(
    name: str, output: Callable[..., Any], backward: Callable[..., PyTree]
) -> Primitive:
    """Makes (residuals, primals, real tangents) -> real tangents of an output."""
    linear = Primitive(name)
    linear.multiple_results = True

    def tangent(*arrays: Any, args: tuple[Any, ...], tree: Any) -> list[Any]:
        _, primals = jax.tree.unflatten(tree, arrays[: tree.num_leaves])
        tangents = _fill(primals, arrays[tree.num_leaves :])
        return _real(jax.jvp(partial(output, *args), primals, tangents)[1])

    def transpose(given: Any, *arrays: Any, args: tuple[Any, ...], tree: Any) -> Any:
        residuals, primals = jax.tree.unflatten(tree, arrays[: tree.num_leaves])
        shapes = jax.eval_shape(partial(output, *args), *primals)
        cotangent = _fill(shapes, map(ad.instantiate_zeros, given))
        found = backward(*args, residuals, cotangent)
        return [None] * tree.num_leaves + jax.tree.leaves(found)

    def abstract(*arrays: Any, **how: Any) -> list[Any]:
        shapes = jax.eval_shape(partial(tangent, **how), *arrays)
        return [jax.core.ShapedArray(x.shape, x.dtype) for x in shapes]

    def batch(arrays: Any, axes: Any, **how: Any) -> tuple[list[Any], list[int]]:
        found = jax.vmap(partial(tangent, **how), axes)(*arrays)
        return found, [0] * len(found)

    def jvp(primals: Any, tangents: Any, **how: Any) -> Any:
        given = list(map(ad.instantiate_zeros, tangents))
        return jax.jvp(partial(tangent, **how), primals, given)

    linear.def_impl(tangent)
    linear.def_abstract_eval(abstract)
    ad.primitive_transposes[linear] = transpose
    ad.primitive_jvps[linear] = jvp
    batching.primitive_batchers[linear] = batch
    mlir.register_lowering(linear, mlir.lower_fun(tangent, multiple_results=True))
    return linear


def _real(tangents: PyTree) -> list[Any]:
    return [x for x in jax.tree.leaves(tangents) if x.dtype != jax.dtypes.float0]


def _fill(like: PyTree, tangents: Any) -> PyTree:
    """Returns tangents for the arrays of a tree: zeros where they are not real."""
    given = iter(tangents)
    return jax.tree.map(
        lambda x: (
            next(given)
            if jnp.issubdtype(x.dtype, jnp.inexact)
            else np.zeros(x.shape, jax.dtypes.float0)
        ),
        like,
    )
