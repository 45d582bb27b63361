import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state

CONFIG = TransformerConfig(
    vocab_size=13, num_layers=1, d_model=6, d_ff=11, num_heads=2, d_k=3, d_v=5
)


@pytest.fixture(scope="module")
def draw():
    optimizer = make_optimizer(OptimizerConfig(), d_model=6)
    return jax.jit(lambda key: init_state(Transformer(CONFIG), optimizer, key))


def test_a_run_begins_at_step_0_with_zero_moments(draw):
    state = draw(jax.random.key(0))
    assert int(state.step) == 0
    assert state.step.dtype == jnp.int32
    for leaf in jax.tree.leaves(state.optimizer):
        np.testing.assert_array_equal(leaf, 0)


def test_parameters_are_float32_whatever_computes():
    module = Transformer(
        TransformerConfig(
            vocab_size=13,
            num_layers=1,
            d_model=6,
            d_ff=11,
            num_heads=2,
            d_k=3,
            d_v=5,
            compute_dtype="bfloat16",
        )
    )
    optimizer = make_optimizer(OptimizerConfig(), d_model=6)
    shapes = jax.eval_shape(lambda: init_state(module, optimizer, jax.random.key(0)))
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(shapes.params)} == {"float32"}


def test_the_same_key_draws_the_same_parameters_and_another_key_others(draw):
    first, again, other = (draw(jax.random.key(seed)) for seed in (7, 7, 8))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    pairs = zip(*map(jax.tree.leaves, (first.params, other.params)), strict=True)
    matrices = [(a, b) for a, b in pairs if a.ndim > 1]
    assert matrices
    assert all((a != b).all() for a, b in matrices)


def test_the_state_is_a_pytree_that_names_its_parts(draw):
    state = draw(jax.random.key(0))
    assert state._fields == ("step", "params", "optimizer")
    assert set(state.params) >= {"encoder", "decoder"}
