"""What is said of steps without an update, and when there are too many.

Seen to fail: without either of the two limits of `check_divergence`, and with the
second one for large gradients too. tests/faults/test_nonfinite.py has real runs.
"""

import math

import pytest

from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.step_meter import check_divergence, uniform_guess_warning


@pytest.mark.parametrize(
    ("changed", "settings"),
    [
        ({"loss": None, "in_a_row": 6}, {"max_bad_steps": 7}),
        # Large is finite, and no reason to stop at once.
        ({"gradient_norm": 87.5}, {"on_nonfinite": "stop"}),
    ],
)
def test_a_run_goes_on_below_its_limits(changed, settings):
    record = {"step": 1_017, "kind": "skipped", "loss": 2.0, "gradient_norm": None}
    record |= {"in_a_row": 1, "epoch": 2, "batch": 30}
    check_divergence(record | changed, config=TrainingConfig(**settings))


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
