import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.parallelism.mesh import make_mesh
from t2t_jax.training.compiled_steps import CompiledSteps
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput
from t2t_jax.types import Batch


def batch_of(rows, length):
    slots = np.arange(rows * length, dtype=np.int32).reshape(rows, length)
    return Batch(*[slots] * 7, rows=np.arange(rows, dtype=np.int32))


@pytest.fixture
def said():
    return []


@pytest.fixture
def make(said):
    """Makes steps that add up a batch and a key, on 2 devices."""

    def step(state, batch, key):
        total = batch.source.sum() + jax.random.key_data(key).sum().astype(jnp.int32)
        return state._replace(step=state.step + 1), StepOutput(total, total)

    def made(*, name_shapes):
        return CompiledSteps(
            step,
            jax.eval_shape(start),
            mesh=make_mesh(jax.devices()[:2]),
            key=jax.random.key(3),
            say=said.append,
            about="a while",
            name_shapes=name_shapes,
        )

    return made


def start():
    return TrainState(jnp.int32(0), {"w": jnp.zeros(2)}, ())


def test_each_shape_is_compiled_once_and_runs(make, said):
    steps, state = make(name_shapes=True), start()
    short, long = batch_of(6, 5), batch_of(2, 13)
    assert not steps.is_ready(short)
    for batch in (short, long, short):
        if not steps.is_ready(batch):
            steps.make_ready(batch)
        state, output = steps(state, batch)
        assert output.gradient_norm == batch.source.sum() + 3
    assert ["6 rows" in said[0], "2 rows" in said[2], len(said)] == [True, True, 4]
    assert state.step == 3


def test_what_was_compiled_ahead_is_ready(make):
    steps = make(name_shapes=False)
    steps.compile_for((6, 5))
    assert steps.is_ready(batch_of(6, 5))
    assert not steps.is_ready(batch_of(6, 7))


def test_people_are_told_and_of_several_shapes_which(make, said):
    make(name_shapes=False).compile_for((6, 5))
    make(name_shapes=True).compile_for((6, 5))
    assert said[0] == "Compiling the training step, a while …"
    assert said[1].startswith("Compiled in ")
    assert said[2] == "Compiling the training step for 6 rows of 5 slots, a while …"
