import jax
import jax.numpy as jnp
from numpy.testing import assert_array_equal

from t2t_jax.functional.embedding import embed, logits

TABLE = jnp.array([[0.0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]])


def test_vectors_are_multiplied_by_the_root_of_d_model_or_left_as_they_are():
    tokens = jnp.array([[2, 1]])
    assert_array_equal(embed(tokens, TABLE), [[[10, 12, 14, 16], [2, 4, 6, 8]]])
    assert_array_equal(embed(tokens, TABLE, scaled=False)[0], TABLE[tokens[0]])


def test_an_id_outside_the_table_gives_nan():
    assert jnp.isnan(embed(jnp.array([3, -1, -3, 2**31 - 1, -(2**31)]), TABLE)).all()


def test_logits_are_products_with_every_vector_unscaled_and_the_same_bias_for_all():
    y = jnp.array([[[1.0, 0, 0, 1], [0, 0, 0, 0]]])
    assert_array_equal(logits(y, TABLE), [[[0, 5, 13], [0, 0, 0]]])
    bias = jnp.array([100.0, 0.0, -200.0])
    assert_array_equal(logits(y, TABLE, bias), [[[100, 5, -187], [100, 0, -200]]])


def test_logits_are_float32_sums_of_bfloat16_products():
    # 256 + 1 is not a bfloat16.
    scores = logits(jnp.array([1.0, 1.0], jnp.bfloat16), jnp.array([[256.0, 1.0]]))
    assert scores.dtype == jnp.float32
    assert_array_equal(scores, [257.0])


def test_the_gradient_reaches_only_the_rows_looked_up():
    gradient = jax.grad(lambda table: embed(jnp.array([1, 1]), table).sum())(TABLE)
    assert_array_equal(gradient, [[0] * 4, [4] * 4, [0] * 4])
