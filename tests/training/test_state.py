from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.errors import UserError
from t2t_jax.functional.moving_average import moving_average
from t2t_jax.model.transformer import Transformer
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state
from tests.training.copy_task import CONFIG, require_same


def draw(key, **mesh):
    optimizer = make_optimizer(OptimizerConfig(), d_model=16)
    return init_state(Transformer(CONFIG), optimizer, key, mesh=make_mesh(**mesh))


def test_the_same_key_draws_the_same_parameters_and_another_key_others():
    first, again, other = draw(7), draw(7, fsdp=2, tensor=2), draw(8)
    require_same(first, again)  # on another mesh, too
    pairs = zip(*map(jax.tree.leaves, (first.params, other.params)), strict=True)
    matrices = [(a, b) for a, b in pairs if a.ndim > 1]
    assert matrices
    assert all((a != b).all() for a, b in matrices)


@pytest.mark.parametrize("seed", [np.int64(7), jnp.int32(7)])
def test_a_seed_may_be_of_any_integer_type(seed):
    require_same(draw(seed), draw(7))


def test_parameters_of_another_type_are_not_trained():
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), draw(7).params)
    with pytest.raises(UserError, match=r"is bfloat16\[\S+, not float32\["):
        init_state(Transformer(CONFIG), optax.sgd(0.1), 0, params=half)


def test_the_moving_average_follows_its_definition():
    values = np.random.default_rng(3).normal(size=(25, 2, 3))
    average, ours = values[0], {"kernel": jnp.asarray(values[0], jnp.float32)}
    for n, value in enumerate(values[1:]):
        decay = min(0.6, (1 + n) / (10 + n))
        average = decay * average + (1 - decay) * value
        new = {"kernel": jnp.asarray(value, jnp.float32)}
        ours = moving_average(ours, new, decay=0.6, count=n)
        # atol: float32 sums of about 1
        np.testing.assert_allclose(ours["kernel"], average, atol=1e-6)
    assert decay == 0.6  # the warm-up of the decay is over: (1 + 13) / (10 + 13)


def test_the_average_of_what_does_not_change_does_not_change():
    values = {"kernel": jnp.asarray(np.random.default_rng(5).normal(size=997))}
    average = values
    for n in range(7):
        average = moving_average(average, values, decay=0.999, count=n)
    np.testing.assert_array_equal(average["kernel"], values["kernel"])


def test_the_average_begins_with_the_parameters_in_arrays_of_its_own():
    optimizer = make_optimizer(OptimizerConfig(name="schedule_free"), d_model=16)
    mesh = make_mesh(jax.devices()[:1])
    init = partial(init_state, Transformer(CONFIG), optimizer, 0, mesh=mesh)
    params = init().params
    state = init(params=params, ema=True)
    require_same(state.ema, params)
    arrays = [params, state.params, state.ema, state.optimizer.z]
    pointers = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(arrays)]
    assert len(set(pointers)) == len(pointers)
