from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import batch_sharding, replicated
from t2t_jax.errors import ConfigError
from t2t_jax.training import compiled_step
from t2t_jax.training.compiled_step import (
    BatchLayout,
    StepCompiler,
    device_memory_limit,
    memory_of,
)
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput
from t2t_jax.types import Batch


def batch_of(rows, length):
    slots = np.arange(rows * length, dtype=np.int32).reshape(rows, length)
    return Batch(*[slots] * 7, rows=np.arange(rows, dtype=np.int32))


def start():
    return TrainState(jnp.int32(0), {"scale": jnp.zeros(2)}, ())


@pytest.fixture
def make():
    """Makes steps that add up a batch and a key, on 2 devices.

    The numbers of micro-batches that steps were made for are in `made_for`.
    """
    mesh = make_mesh(jax.devices()[:2])

    def step(state, batch, key):
        total = batch.source.sum() + jax.random.key_data(key).sum().astype(jnp.int32)
        return state._replace(step=state.step + 1), StepOutput(total, total)

    def made(*planned):
        shardings = (replicated(mesh), batch_sharding(mesh), replicated(mesh))
        jitted, said, made_for = jax.jit(step, in_shardings=shardings), [], []

        def make_step(micro_batches):
            made_for.append(micro_batches)
            return jitted

        how = {"key": jax.random.key(3), "log": said.append, "about": "a while"}
        layout, shapes = BatchLayout(planned=planned, mesh=mesh), jax.eval_shape(start)
        compiler = StepCompiler(make_step, shapes, layout=layout, **how)
        compiler.said, compiler.made_for = said, made_for
        return compiler

    return made


def test_each_shape_is_compiled_once_and_runs(make):
    steps, state = make((6, 5), (2, 13)), start()
    short, long = batch_of(6, 5), batch_of(2, 13)
    assert not steps.is_ready(short)
    for batch in (short, long, short):
        if not steps.is_ready(batch):
            steps.compile_for_batch(batch)
        state, output = steps(state, batch)
        assert output.gradient_norm == batch.source.sum() + 3
    assert state.step == 3
    first, done, second, _ = steps.said
    assert first == "Compiling the training step for 6 rows of 5 slots, a while …"
    assert done.startswith("Compiled in ")
    assert "2 rows" in second


@pytest.fixture
def fitting(make, monkeypatch):
    """Makes steps that need 70 bytes a row that a device reads at once."""
    steps = make((6, 5))

    def needed(compiled):
        rows = steps.layout.shapes[-1][0] // (2 * steps.layout.micro_batches)
        return SimpleNamespace(total=70 * rows)

    monkeypatch.setattr(compiled_step, "memory_of", needed)
    return steps


@pytest.mark.parametrize(("memory", "wanted"), [(210, 1), (140, 2), (70, 3)])
def test_the_fewest_micro_batches_that_fit_are_found(fitting, memory, wanted):
    fitting.choose_micro_batches(memory)
    assert fitting.made_for == [1, *range(1, wanted + 1)]
    assert fitting.layout.micro_batches == wanted
    # Two devices have three rows each; in two parts there is an empty one.
    rows = 8 if wanted == 2 else 6
    assert fitting.layout.shapes == [(rows, 5)]
    assert fitting.is_ready(batch_of(rows, 5))
    too_large = [line for line in fitting.said if "does not fit: it takes " in line]
    assert len(too_large) == wanted - 1


def test_what_a_compiler_refuses_for_its_size_does_not_fit(fitting, monkeypatch):
    refused = [jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9G of 8G")]
    lower_step = compiled_step.lower_step

    def compile_or_refuse(*arguments, **keys):
        if refused:
            raise refused.pop()
        return lower_step(*arguments, **keys)

    monkeypatch.setattr(compiled_step, "lower_step", compile_or_refuse)
    fitting.choose_micro_batches(210)
    assert fitting.layout.micro_batches == 2


def test_what_does_not_fit_row_by_row_is_refused_with_what_would_help(fitting):
    with pytest.raises(ConfigError, match=r"one row .*config.mesh.fsdp.*model.remat"):
        fitting.choose_micro_batches(69)


def test_what_is_needed_at_once_counts_a_donated_argument_once():
    x = jax.ShapeDtypeStruct((1_000,), jnp.float32)

    def double(x):
        return 2 * x

    plain = jax.jit(double).lower(x).compile()
    donated = jax.jit(double, donate_argnums=0).lower(x).compile()
    assert memory_of(plain).total >= 8_000
    assert 4_000 <= memory_of(donated).total < 8_000


@pytest.mark.parametrize(
    ("statistics", "limit"),
    [
        ([{"bytes_limit": 2_000}, {"bytes_limit": 1_000}], range(900, 1_000)),
        ([None, {"bytes_limit": 5}], range(1)),
    ],
)
def test_the_smallest_device_decides_and_some_of_it_is_kept_free(statistics, limit):
    devices = [SimpleNamespace(memory_stats=lambda s=s: s) for s in statistics]
    assert device_memory_limit(SimpleNamespace(local_devices=devices)) in limit
    assert device_memory_limit(make_mesh()) == 0  # CPUs


def layout_of(*planned, micro_batches=1, **sizes):
    mesh = make_mesh(jax.devices()[:8], **sizes)
    return BatchLayout(planned=planned, mesh=mesh, micro_batches=micro_batches)


def test_a_layout_says_how_batches_are_split_and_which_rows_are_empty():
    # Devices that share rows are no parts of their own.
    text = layout_of((8, 16), fsdp=2, tensor=2).text()
    assert text.endswith("4 parts x 1 micro-batch x 32 = 128 tokens a side")
    # Of length buckets the largest counts.
    split, *empty = layout_of((26, 5), (13, 10)).text().splitlines()
    assert split == "8 devices x 1 micro-batch x 20 = at most 160 tokens a side"
    rows = ["6 of 32 rows x 5", "3 of 16 rows x 10"]
    assert [line.partition(" slots are empty")[0] for line in empty] == rows


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_parts_are_equal(micro_batches):
    layout = layout_of((7, 5), (3, 11), micro_batches=micro_batches, fsdp=2)
    assert all(rows % layout.row_multiple == 0 for rows, _ in layout.shapes)
    assert layout.row_multiple == 8 * micro_batches
