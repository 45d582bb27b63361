import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.devices.runtime import fault_injection
from t2t_jax.devices.runtime.fault_injection import (
    Fault,
    maybe_inject_fault,
    parse,
    with_injected_nan,
)
from t2t_jax.errors import UserError
from t2t_jax.training.state import TrainState


@pytest.fixture
def request_fault(monkeypatch):
    def ask(value):
        monkeypatch.setenv(fault_injection.VARIABLE, value)
        fault_injection.configured_fault.cache_clear()

    yield ask
    monkeypatch.undo()
    fault_injection.configured_fault.cache_clear()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", Fault()),
        ("kill_saving@3:0", Fault("kill", "saving", 3, 3, 0)),
        ("nan@7-26", Fault("nan", "training", 7, 26, None)),
    ],
)
def test_a_fault_is_what_its_name_says(value, fault):
    assert parse({fault_injection.VARIABLE: value}) == fault


@pytest.mark.parametrize(
    "value", ["kill", "kil@3", "kill@x", "kill_sleeping@3", "kill@3-5", "nan@3:1"]
)
def test_a_misspelt_fault_is_refused(value):
    with pytest.raises(UserError, match=r"T2T_JAX_FAULT=.* must be kind@step"):
        parse({fault_injection.VARIABLE: value})


def test_it_happens_at_its_step_its_place_and_its_rank_only(request_fault):
    request_fault("raise_saving@7:0")
    maybe_inject_fault(6, "saving")
    maybe_inject_fault(7)
    with pytest.raises(RuntimeError, match="at step 7"):
        maybe_inject_fault(7, "saving")
    request_fault("raise_saving@7:1")
    maybe_inject_fault(7, "saving")


def test_all_floats_of_the_configured_steps_are_nan(request_fault):
    request_fault("nan@3-4")
    step = with_injected_nan(lambda state, x: (state.step, {"loss": x, "on": True}))
    outputs = [
        step(TrainState(jnp.int32(number), {}, ()), jnp.float32(2.0))
        for number in range(5)
    ]
    np.testing.assert_array_equal(
        [output["loss"] for _, output in outputs], [2.0, 2.0, np.nan, np.nan, 2.0]
    )
    assert [int(number) for number, _ in outputs] == [*range(5)]
