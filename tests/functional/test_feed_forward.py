import jax
import jax.numpy as jnp
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.feed_forward import feed_forward

WEIGHTS = {
    "w1_DxF": jnp.array([[1.0, -1.0, 2.0], [0.0, 1.0, 1.0]]),
    "b1_F": jnp.array([0.0, 1.0, -5.0]),
    "w2_FxD": jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "b2_D": jnp.array([10.0, 20.0]),
}


def test_equation_2_on_a_case_drawn_by_hand_with_dropout_after_the_relu():
    # x W1 + b1 = [1, 2, -1]; the ReLU leaves [1, 2, 0].
    x, inner = jnp.array([[1.0, 2.0]]), []
    found = feed_forward(x, **WEIGHTS, dropout=lambda h: inner.append(h) or h)
    assert_array_equal(found, [[17.0, 30.0]])
    assert_array_equal(inner, [[[1.0, 2.0, 0.0]]])


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("relu", [0.0, 0.0, 1.0, 3.0]),
        # x / (1 + exp(-x))
        ("swish", [-0.238406, 0.0, 0.731059, 2.857722]),
        # x Phi(x), of the tables of the normal distribution
        ("gelu", [-0.045500, 0.0, 0.841345, 2.995950]),
        # x / (1 + exp(-1.702 x))
        ("quick_gelu", [-0.064341, 0.0, 0.845796, 2.981929]),
    ],
)
def test_the_activations_are_those_of_their_formulas(activation, expected):
    x = jnp.array([[-2.0, 0.0, 1.0, 3.0]])
    weights = {"w1_DxF": jnp.eye(4), "b1_F": jnp.zeros(4)}
    weights |= {"w2_FxD": jnp.eye(4), "b2_D": jnp.zeros(4)}
    found = feed_forward(x, **weights, activation=activation)
    assert_allclose(found, [expected], atol=1e-6)  # the digits above


def test_it_computes_in_the_dtype_of_its_input():
    assert feed_forward(jnp.ones((1, 2), jnp.bfloat16), **WEIGHTS).dtype == jnp.bfloat16


def test_the_gradient_of_a_bias_is_summed_beyond_bfloat16():
    # bfloat16 has no 1,009: its neighbours there are 1,008 and 1,012.
    def total(bias):
        weights = WEIGHTS | {"b2_D": bias}
        return feed_forward(jnp.ones((1009, 2), jnp.bfloat16), **weights).sum()

    assert_array_equal(jax.grad(total)(WEIGHTS["b2_D"]), [1009, 1009])
