import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.layer_norm import layer_norm

ONE, ZERO = jnp.ones(4), jnp.zeros(4)


def test_a_vector_is_brought_to_mean_0_and_variance_1():
    # mean 5, variance (9 + 1 + 1 + 9) / 4 = 5: the biased one
    x = jnp.array([2.0, 4.0, 6.0, 8.0])
    expected = np.array([-3, -1, 1, 3]) / np.sqrt(5)
    assert_allclose(layer_norm(x, ONE, bias_D=ZERO), expected, rtol=1e-5)  # float32
    scale, bias = jnp.array([1.0, 2, 3, 4]), jnp.array([5.0, 6, 7, 8])
    scaled = expected * np.asarray(scale) + np.asarray(bias)
    assert_allclose(layer_norm(x, scale, bias_D=bias), scaled, rtol=1e-5)


def test_epsilon_is_added_to_the_variance():
    x = jnp.array([-1.0, 1.0])
    y = layer_norm(x, jnp.ones(2), bias_D=jnp.zeros(2), epsilon=3.0)
    assert_allclose(y, [-0.5, 0.5], rtol=1e-6)


def test_a_constant_vector_gives_the_bias_and_a_finite_gradient():
    x = jnp.full(4, 7.0)
    assert_array_equal(layer_norm(x, ONE, bias_D=ONE), ONE)
    assert jnp.isfinite(jax.grad(lambda x: layer_norm(x, ONE, bias_D=ZERO)[0])(x)).all()


def test_statistics_are_float32_even_in_bfloat16():
    # In bfloat16 the mean of 512 values near 100 is off by more than their spread.
    x = (100 + jax.random.normal(jax.random.key(1), (512,))).astype(jnp.bfloat16)
    y = layer_norm(x, jnp.ones(512), bias_D=jnp.zeros(512))
    assert y.dtype == jnp.bfloat16
    exact = np.asarray(x, np.float64)
    exact = (exact - exact.mean()) / exact.std()
    assert_allclose(y.astype(jnp.float32), exact, rtol=2**-7, atol=1e-3)  # bfloat16
