import jax
import numpy as np
import pytest

from t2t_jax.checkpointing.averaging import (
    CheckpointInfo,
    average,
    info_from_meta,
    select,
    sliding_windows,
    spacing_units,
)
from t2t_jax.checkpointing.config import CheckpointConfig
from tests.checkpointing.small_states import params_of


@pytest.mark.parametrize("k", [1, 20])
def test_each_leaf_is_the_plain_mean(k):
    trees = [params_of(seed) for seed in range(k)]
    mean = jax.tree.map(lambda *leaves: np.mean(leaves, axis=0, dtype="f8"), *trees)
    mean = jax.tree.map(np.float32, mean)
    jax.tree.map(np.testing.assert_array_equal, average(iter(trees)), mean)


def test_the_sum_is_in_float64_and_the_mean_in_the_leaf_s_own_dtype():
    # In float32 the ones would be lost beside 2^24, and the mean be 2^23.
    values = [2.0**24, 1.0, 1.0, 0.0]
    mean = average([{"a": np.array([v], np.float32)} for v in values])
    assert mean["a"].dtype == np.float32
    assert mean["a"].tolist() == [np.float32((2**24 + 2) / 4)]


def marks(*steps, minutes=None, epochs=None, kinds=("periodic",)):
    """Places checkpoints; where nothing is logged of a unit, they are uneven in it."""
    minutes = minutes or [step**2 for step in steps]
    epochs = epochs or [0] * len(steps)
    places = zip(steps, minutes, epochs, strict=True)
    return [CheckpointInfo(*place, kinds=kinds) for place in places]


@pytest.mark.parametrize(
    ("steps", "is_even"),
    [
        ([7], True),
        ([100, 200, 300, 420], True),  # 120 of 100: just within a fifth
        ([100, 200, 300, 421], False),
        ([100, 210, 300], True),  # 110 and 90, of a median of 100
        ([100, 200, 400, 500, 600], False),  # 300 was not kept
    ],
)
def test_gaps_are_even_within_a_fifth_of_their_median(steps, is_even):
    selection = select(marks(*steps), ["steps"])
    assert selection.spacing.unit == "steps"
    assert selection.spacing.is_even == is_even
    assert bool(selection.faults) != is_even


def test_minutes_are_judged_where_the_run_saves_by_minutes():
    # The same steps take longer while a neighbour uses the machine.
    slow = marks(100, 200, 250, minutes=[10.0, 20.01, 30.03])
    assert select(slow, ["minutes"]).faults == ()
    assert select(slow, ["minutes"]).spacing.gaps == pytest.approx([10.01, 10.02])
    (fault,) = select(slow, ["steps"]).faults
    assert fault == "the gaps are 100, 50 steps, which is not even"
    assert select(marks(1, 2, 3, 4, minutes=[10, 20, 30, 42.1]), ["minutes"]).faults


def test_one_unit_of_several_is_enough():
    both = marks(150, 50, 100, minutes=[11, 3, 5])
    assert select(both, ["minutes", "steps"]).spacing.unit == "steps"
    assert select(both, ["minutes", "steps"]).faults == ()
    assert select(both, ["steps", "minutes"]).faults == ()
    assert select(both, ["steps"]).steps == (50, 100, 150)


@pytest.mark.parametrize(
    ("every", "units"),
    [
        ({}, ("minutes",)),
        ({"every_steps": 5, "every_minutes": 0}, ("steps",)),
        ({"every_epochs": 1}, ("minutes", "epochs")),
        ({"every_minutes": 0}, ("steps",)),
    ],
)
def test_the_units_are_those_of_the_intervals_that_are_on(every, units):
    assert spacing_units(CheckpointConfig(**every)) == units


def test_windows_pass_over_what_is_not_periodic():
    run = [*marks(10, 20, 30, 50), *marks(33, 60, kinds=("best",))]
    found = sliding_windows(run, ["steps"], last=3)
    assert [window.steps for window in found] == [(10, 20, 30), (20, 30, 50)]
    assert [bool(window.faults) for window in found] == [False, True]


def test_a_mark_is_read_from_what_a_run_saves():
    # As JSON has it: a position is the epoch and the batch in it.
    meta = {
        "kinds": ["periodic", "best"],
        "progress": {"step": 70, "minutes": 1.5, "position": [2, 13], "window": []},
    }
    assert info_from_meta(meta) == CheckpointInfo(70, 1.5, 2, ("periodic", "best"))
