from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.errors import ConfigError
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import batch_sharding, replicated
from t2t_jax.training import compiled_step
from t2t_jax.training.batch_layout import BatchLayout
from t2t_jax.training.compiled_step import (
    StepCompiler,
    bytes_needed,
    device_memory_limit,
)
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
def made_for():
    """Numbers of micro-batches for which a step was made."""
    return []


@pytest.fixture
def make(said, made_for):
    """Makes steps that add up a batch and a key, on 2 devices."""
    mesh = make_mesh(jax.devices()[:2])

    def step(state, batch, key):
        total = batch.source.sum() + jax.random.key_data(key).sum().astype(jnp.int32)
        return state._replace(step=state.step + 1), StepOutput(total, total)

    def made(*, name_shapes):
        planned = [(6, 5), (2, 13)] if name_shapes else [(6, 5)]
        shardings = (replicated(mesh), batch_sharding(mesh), replicated(mesh))
        jitted = jax.jit(step, in_shardings=shardings)

        def make_step(micro_batches):
            made_for.append(micro_batches)
            return jitted

        return StepCompiler(
            make_step,
            jax.eval_shape(start),
            layout=BatchLayout(planned=planned, mesh=mesh),
            key=jax.random.key(3),
            log=said.append,
            about="a while",
        )

    return made


def start():
    return TrainState(jnp.int32(0), {"scale": jnp.zeros(2)}, ())


def test_each_shape_is_compiled_once_and_runs(make, said):
    steps, state = make(name_shapes=True), start()
    short, long = batch_of(6, 5), batch_of(2, 13)
    assert not steps.is_ready(short)
    for batch in (short, long, short):
        if not steps.is_ready(batch):
            steps.compile_for_batch(batch)
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


@pytest.fixture
def fitting(make, monkeypatch):
    """Makes steps that need 70 bytes a row that a device reads at once."""
    reads = []

    def needed(compiled):
        layout = steps.layout
        reads.append(layout.micro_batches)
        return 70 * layout.shapes[-1][0] // (2 * layout.micro_batches)

    monkeypatch.setattr(compiled_step, "bytes_needed", needed)
    steps = make(name_shapes=False)
    steps.reads = reads
    return steps


@pytest.mark.parametrize(("memory", "wanted"), [(210, 1), (140, 2), (70, 3)])
def test_the_fewest_micro_batches_that_fit_are_found(
    fitting, made_for, said, memory, wanted
):
    fitting.choose_micro_batches(memory)
    assert made_for[-wanted:] == list(range(1, wanted + 1))
    assert fitting.layout.micro_batches == wanted
    assert fitting.reads == list(range(1, wanted + 1))
    # Two devices have three rows each; in two parts there is an empty one.
    rows = 8 if wanted == 2 else 6
    assert fitting.layout.shapes == [(rows, 5)]
    assert fitting.is_ready(batch_of(rows, 5))
    too_large = [line for line in said if "does not fit: it takes " in line]
    assert len(too_large) == wanted - 1


def test_what_a_compiler_refuses_for_its_size_does_not_fit(fitting, monkeypatch):
    refused = [RuntimeError, jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9G of 8G")]
    lower_step = compiled_step.lower_step

    def compile_or_refuse(*arguments, **keys):
        if len(refused) > 1:
            raise refused.pop()
        return lower_step(*arguments, **keys)

    monkeypatch.setattr(compiled_step, "lower_step", compile_or_refuse)
    fitting.choose_micro_batches(210)
    assert fitting.layout.micro_batches == 2


def test_other_failures_of_the_compiler_are_not_taken_for_it(fitting, monkeypatch):
    def fail(*arguments, **keys):
        raise jax.errors.JaxRuntimeError("INTERNAL: no")

    monkeypatch.setattr(compiled_step, "lower_step", fail)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        fitting.choose_micro_batches(210)


def test_what_does_not_fit_row_by_row_is_refused_with_what_would_help(fitting):
    with pytest.raises(ConfigError, match=r"one row .*config.mesh.fsdp.*model.remat"):
        fitting.choose_micro_batches(69)


def mesh_of(*statistics):
    devices = [SimpleNamespace(memory_stats=lambda s=s: s) for s in statistics]
    return SimpleNamespace(local_devices=devices)


def test_what_is_needed_at_once_counts_a_donated_argument_once():
    x = jax.ShapeDtypeStruct((1_000,), jnp.float32)

    def double(x):
        return 2 * x

    plain = jax.jit(double).lower(x).compile()
    donated = jax.jit(double, donate_argnums=0).lower(x).compile()
    assert bytes_needed(plain) >= 8_000
    assert 4_000 <= bytes_needed(donated) < 8_000


def test_the_smallest_device_decides_and_some_of_it_is_kept_free():
    mesh = mesh_of({"bytes_limit": 2_000}, {"bytes_limit": 1_000})
    assert 900 <= device_memory_limit(mesh) < 1_000


def test_a_device_that_does_not_tell_has_no_limit_that_is_known():
    assert device_memory_limit(mesh_of(None, {"bytes_limit": 5})) == 0
    assert device_memory_limit(make_mesh()) == 0  # CPUs
