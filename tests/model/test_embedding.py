import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.embedding import Embedding, Positions
from tests.model.tiny import TINY


def test_the_table_starts_with_a_deviation_of_one_over_root_d_model():
    variables = Embedding(1009, 64, "float32").init(
        jax.random.key(0), jnp.zeros((1, 1), int)
    )
    table = variables["params"]["table"]
    assert table.shape == (1009, 64)
    assert_allclose(table.std(), 1 / 8, rtol=0.02)  # 4 standard errors are 0.011
    vectors = Embedding(1009, 64, "float32").apply(variables, jnp.arange(1009)[None])
    assert_allclose(vectors.std(), 1, rtol=0.02)


def test_one_table_serves_the_input_and_the_output():
    table = jnp.arange(12.0).reshape(3, 4)
    embedding = Embedding(3, 4, "bfloat16")
    vectors = embedding.apply({"params": {"table": table}}, jnp.array([[2]]))
    assert vectors.dtype == jnp.bfloat16
    assert_array_equal(vectors[0, 0], [16, 18, 20, 22])
    scores = embedding.apply({"params": {"table": table}}, vectors, method="logits")
    assert scores.dtype == jnp.float32
    assert_array_equal(scores[0, 0], np.asarray(table) @ [16, 18, 20, 22])


def test_sinusoids_are_added_and_own_nothing():
    positions = jnp.array([[0, 1, 2, 0, 1]])
    x = jnp.ones((1, 5, 14))
    y, variables = Positions(TINY).init_with_output(jax.random.key(0), x, positions)
    assert variables == {}
    assert_allclose(y - 1, sinusoidal_positions(positions, 14), atol=1e-6)


def test_learned_positions_are_looked_up_like_tokens():
    config = dataclasses.replace(TINY, positions="learned", max_positions=3, d_model=4)
    x, table = jnp.ones((1, 4, 4)), jnp.arange(12.0).reshape(3, 4)
    y = Positions(config).apply(
        {"params": {"learned": {"table": table}}}, x, jnp.array([[0, 2, 0, 1]])
    )
    assert_array_equal(y[0], 1 + 2 * table[jnp.array([0, 2, 0, 1])])
