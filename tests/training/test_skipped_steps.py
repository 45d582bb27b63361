"""What is said of steps without an update, and when there are too many.

Seen to fail: without either of the two limits of `check_divergence`, with the second
one for large gradients too, and without the quotes around the workdir.
"""

import math
import shlex
from pathlib import Path

import pytest

from t2t_jax.errors import DivergedError
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.skipped_steps import (
    check_divergence,
    skip_message,
    uniform_guess_warning,
)


def record_of(step=1_017, *, loss=None, norm=None, in_a_row=1, batch=30):
    return {
        "step": step,
        "kind": "skipped",
        "loss": loss,
        "gradient_norm": norm,
        "in_a_row": in_a_row,
        "epoch": 2,
        "batch": batch,
    }


def test_a_warning_is_one_line_that_ends_in_flags_for_the_shell():
    line = skip_message(record_of(), workdir=Path("runs/zweiter Lauf"))
    assert (
        "Skipped the update of step 1,017 (loss not finite, gradient norm not" in line
    )
    assert "; epoch 2, batch 30)" in line
    assert "\n" not in line
    assert shlex.split(line.partition("To print its text: ")[2]) == [
        "--mode=show_batch",
        "--workdir=runs/zweiter Lauf",
        "--step=1017",
    ]


def test_a_gradient_that_is_only_large_is_told_as_such():
    line = skip_message(record_of(loss=2.25, norm=87.5), workdir=Path("run"))
    assert "loss 2.25, gradient norm 87.5 (above training.skip_gradient_norm)" in line
    half = skip_message(record_of(loss=2.25), workdir=Path("run"))
    assert "loss 2.25, gradient norm not finite; epoch" in half


@pytest.mark.parametrize(
    ("record", "settings"),
    [
        (record_of(in_a_row=6), {"max_bad_steps": 7}),
        (record_of(in_a_row=9), {}),
        # Large is finite, and no reason to stop at once.
        (record_of(loss=2.0, norm=87.5), {"on_nonfinite": "stop"}),
    ],
)
def test_a_run_goes_on_below_its_limits(record, settings):
    check_divergence(record, config=TrainingConfig(**settings))


def test_too_many_in_a_row_end_the_run_and_are_named_with_their_batches():
    with pytest.raises(DivergedError) as info:
        check_divergence(record_of(in_a_row=7), config=TrainingConfig(max_bad_steps=7))
    (told,) = info.value.problems
    assert told.startswith(
        "Training diverged: skipped the updates of steps 1,011 to 1,017 "
        "(training.max_bad_steps=7; epoch 2, batches 24 to 30). Step 1,017 had loss "
    )
    assert "All checkpoints are valid" in told
    assert "--mode=show_batch --step=1017" in told
    assert "config.optimizer.peak_learning_rate" in told
    assert told.count("\n") == 2
    assert info.value.exit_code == 76


def test_batches_on_both_sides_of_an_epoch_s_end_are_told_up_to_the_last():
    record = record_of(in_a_row=7, batch=5)
    with pytest.raises(DivergedError, match="up to epoch 2, batch 5"):
        check_divergence(record, config=TrainingConfig(max_bad_steps=7))


def test_a_limit_of_one_is_the_first_of_them():
    with pytest.raises(
        DivergedError, match=r"skipped the update of step 1,017 .*=1; epoch"
    ):
        check_divergence(record_of(), config=TrainingConfig(max_bad_steps=1))


@pytest.mark.parametrize("figures", [{"loss": 2.0}, {"norm": 0.5}, {}])
def test_one_that_is_not_finite_ends_the_run_where_that_is_wanted(figures):
    config = TrainingConfig(on_nonfinite="stop")
    with pytest.raises(DivergedError, match=r"on_nonfinite=stop; epoch 2, batch 30\)"):
        check_divergence(record_of(**figures), config=config)


@pytest.mark.parametrize(
    ("step", "nll", "warns"),
    [
        *((100, 4.6, False), (100, 4.7, True), (99, 4.7, False), (99, 9.3, True)),
        *((100, math.inf, True), (1, 9.2, False)),
    ],
)
def test_a_loss_worse_than_guessing_is_warned_of(step, nll, warns):
    record = {"step": step, "nll": nll}
    warning = uniform_guess_warning(record, vocab_size=100, warmup_steps=100)
    assert warning.startswith("WARNING") == warns  # log(100) = 4.605
