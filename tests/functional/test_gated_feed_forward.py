import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.gated_feed_forward import gated_feed_forward

W, V = jnp.array([[1.0, -1.0, 2.0], [0.0, 1.0, -2.0]]), jnp.full((2, 3), 2.0)
W2 = jnp.array([[1.0, 0.0], [0.0, 10.0], [100.0, 0.0]])
WEIGHTS = {"w_DxF": W, "v_DxF": V, "w2_FxD": W2}


@pytest.mark.parametrize(
    ("activation", "of_1", "of_minus_2"),
    # x / (1 + exp(-x)); x Phi(x), of the tables of the normal distribution
    [("swiglu", 0.731059, -0.238406), ("geglu", 0.841345, -0.045500)],
)
def test_the_gate_is_what_is_activated(activation, of_1, of_minus_2):
    # x W = [1, 1, -2] and x V = [6, 6, 6]
    x = jnp.array([[[1.0, 2.0]]])
    found = gated_feed_forward(x, **WEIGHTS, activation=activation)
    wanted = [[[6 * of_1 + 600 * of_minus_2, 60 * of_1]]]
    assert_allclose(found, wanted, rtol=1e-5)  # the digits above


def test_dropout_comes_after_the_gate_and_the_dtype_is_that_of_the_input():
    seen = []
    found = gated_feed_forward(
        jnp.ones((1, 2), jnp.bfloat16),
        **WEIGHTS,
        activation="swiglu",
        dropout=lambda product: seen.append(product) or jnp.zeros_like(product),
    )
    assert found.dtype == seen[0].dtype == jnp.bfloat16
    assert np.abs(seen[0][0, 0]) > 2  # 4 swish(1)
    assert_array_equal(found, jnp.zeros((1, 2)))
