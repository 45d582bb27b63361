import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.einsum import einsum_f32
from tests.jaxprs import dtypes

EQUATIONS = {
    "bld,dhk->bhlk": ((2, 5, 7), (7, 3, 11)),
    "bhlk,hkd->bld": ((2, 3, 5, 11), (3, 11, 7)),
    "...d,de->...e": ((2, 5, 7), (7, 11)),
    "...qd,...kd->...qk": ((2, 3, 5, 7), (2, 3, 11, 7)),
    "ld,vd->lv": ((5, 7), (11, 7)),
    "...d,d->...": ((2, 5, 7), (7,)),
}


def drawn(equation, dtypes=("float32", "float32")):
    draw = np.random.default_rng(3).normal
    shapes = EQUATIONS[equation]
    return [jnp.asarray(draw(size=s), d) for s, d in zip(shapes, dtypes, strict=True)]


def of_sines(multiply):
    """Makes a number whose gradients depend on every element of the product."""
    return lambda x, y: jnp.sin(multiply(x, y).astype(jnp.float32)).sum()


@pytest.mark.parametrize("equation", EQUATIONS)
def test_in_float32_it_and_its_gradients_are_those_of_einsum(equation):
    x, y = drawn(equation)
    ours = of_sines(lambda x, y: einsum_f32(equation, x, y))
    theirs = of_sines(lambda x, y: jnp.einsum(equation, x, y))
    assert_allclose(einsum_f32(equation, x, y), jnp.einsum(equation, x, y), rtol=1e-5)
    found = jax.grad(ours, argnums=(0, 1))(x, y)
    expected = jax.grad(theirs, argnums=(0, 1))(x, y)
    for gradient, other in zip(found, expected, strict=True):
        # float32 sums of some hundred terms in another order
        assert_allclose(gradient, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_every_product_of_bfloat16_activations_multiplies_bfloat16(equation, dtype):
    x, y = drawn(equation, ("bfloat16", "float32"))
    value = of_sines(lambda x, y: einsum_f32(equation, x, y, dtype=dtype))
    program = jax.make_jaxpr(jax.grad(value, argnums=(0, 1)))(x, y)
    assert set(dtypes(program, "dot_general")) == {("bfloat16", "bfloat16", "float32")}


def test_the_gradient_of_a_parameter_is_summed_beyond_bfloat16():
    # bfloat16 has no 1,009: its neighbours there are 1,008 and 1,012.
    x = jnp.ones((1009, 3), jnp.bfloat16)
    gradient = jax.grad(lambda w: einsum_f32("ld,de->le", x, w).sum())(jnp.ones((3, 2)))
    assert gradient.dtype == jnp.float32
    assert_array_equal(gradient, np.full((3, 2), 1009))


def test_a_float32_result_is_not_rounded():
    ones = jnp.ones((257, 1), jnp.bfloat16)
    assert einsum_f32("ld,le->de", ones, ones, dtype=jnp.float32) == 257
    assert einsum_f32("ld,le->de", ones, ones) == 256


def test_it_can_be_differentiated_twice():
    x, y = drawn("ld,vd->lv")

    def slope(multiply):
        gradient = jax.grad(of_sines(multiply), argnums=1)
        return jax.grad(lambda y: jnp.square(gradient(x, y)).sum())(y)

    ours = slope(lambda x, y: einsum_f32("ld,vd->lv", x, y))
    theirs = slope(lambda x, y: jnp.einsum("ld,vd->lv", x, y))
    # float32 sums of products of gradients
    assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_it_can_be_mapped():
    x, y = drawn("...qd,...kd->...qk")
    mapped = jax.vmap(jax.vmap(lambda x, y: einsum_f32("qd,kd->qk", x, y)))(x, y)
    assert_allclose(mapped, einsum_f32("...qd,...kd->...qk", x, y), rtol=1e-5)
