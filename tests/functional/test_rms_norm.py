import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.layer_norm import layer_norm
from t2t_jax.functional.rms_norm import rms_norm


def test_a_vector_is_brought_to_a_mean_square_of_1_and_scaled():
    # the mean square is (4 + 16 + 0 + 16) / 4 = 9
    x, scale = jnp.array([[2.0, -4.0, 0.0, 4.0]]), jnp.array([3.0, 6.0, 1.0, -3.0])
    assert_allclose(rms_norm(x, scale), [[2, -8, 0, -4]], rtol=1e-6)  # float32
    halved = rms_norm(x, scale, epsilon=27.0)  # a root of 36 in place of 9
    assert_allclose(halved, [[1, -4, 0, -2]], rtol=1e-6)


def test_a_vector_of_zeros_stays_one_and_has_a_finite_gradient():
    zero, scale = jnp.zeros(4), jnp.ones(4)
    assert_array_equal(rms_norm(zero, scale), zero)
    assert_allclose(jax.grad(lambda x: rms_norm(x, scale)[0])(zero)[0], 1e3, rtol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_of_centered_vectors_it_is_layer_normalization_and_so_is_its_gradient(dtype):
    # Each vector and its negative side by side have mean 0, in bfloat16 as well; and
    # odd cotangents keep the gradient of layer normalization centered, too.
    half = jax.random.normal(jax.random.key(0), (5, 7)).astype(dtype)
    x = jnp.concatenate([half, -half], axis=-1)
    scale = jnp.tile(jax.random.normal(jax.random.key(1), (7,)), 2)
    weights = jnp.arange(-3.0, 4.0)
    weights = jnp.tile(jnp.concatenate([weights, -weights]), (5, 1))

    def total(norm, x):
        def of(x, scale):
            y = norm(x, scale)
            return (y * weights.astype(y.dtype)).astype(jnp.float32).sum(), y

        return jax.grad(of, argnums=(0, 1), has_aux=True)(x, scale)

    (dx, dscale), y = total(rms_norm, x)
    # float32, of which JAX derives the gradient
    exact, zero = x.astype(jnp.float32), jnp.zeros(14)
    wanted = total(lambda x, scale: layer_norm(x, scale, bias_D=zero), exact)
    assert y.dtype == dx.dtype == dtype
    assert dscale.dtype == jnp.float32
    close = {"rtol": 1e-5, "atol": 1e-5}
    if dtype == jnp.bfloat16:
        close = {"rtol": 2**-7, "atol": 2**-7}
    for found, exact in zip((dx, dscale, y), jax.tree.leaves(wanted), strict=True):
        assert_allclose(found.astype(jnp.float32), exact, **close)
    # and unlike it, where there is a mean
    assert np.abs(rms_norm(x + 1, scale) - rms_norm(x, scale)).max() > 0.1
