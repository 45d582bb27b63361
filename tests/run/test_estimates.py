import io

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.run.estimates import EVALUATION_COST, RunSize, estimate, size_advice
from t2t_jax.run.start import make_console, open_run
from tests.integration import tiny
from tests.integration.tiny import ROOT


def config_of(row, tmp_path):
    config = f"--config={ROOT / 'configs' / 'own_text.py'}:{row}"
    return parse_argv([config, f"--workdir={tmp_path}"]).config


@pytest.mark.parametrize(
    ("row", "pairs", "advised"),
    [
        ("small", 110_000, "medium"),
        ("medium", 24_000, "small"),
        ("large", 20_000, "small"),
        ("large", 40_000_000, ""),
    ],
)
def test_the_row_that_fits_is_named_where_the_size_is_far_off(
    row, pairs, advised, tmp_path
):
    published = size_advice(config_of(row, tmp_path), pairs)
    assert (f"--config=own_text:{advised} suits" in published) == bool(advised)
    assert published.startswith(f"{pairs:,} pairs are" if advised else "")
    assert bool(published) == bool(advised)


SIZE = {
    "steps": 20_000,
    "evaluate_every": 1_000,
    "dev_tokens": 26_000,
    "tokens_per_batch": 8_192,
    "parameters": 7_000_000,
    "on_cpu": True,
}


def test_the_time_left_is_that_of_steps_and_evaluations():
    size = RunSize(**SIZE)
    pace = {"step_seconds": 0.5, "tokens_per_second": 13_000.0}
    evaluation = EVALUATION_COST * 2  # seconds
    left = size.seconds_left(1_020, **pace)
    assert left == pytest.approx(18_980 * 0.5 + 19 * evaluation)
    assert estimate(size, 1_020, **pace) == (
        "Estimated time left: 2 h 40 min (18,980 steps of 0.5 s and 19 evaluations of "
        "at least 3 s, more as long as translations reach their length limit)."
    )


def test_the_last_step_is_evaluated_too_and_none_where_evaluation_is_off():
    size = RunSize(**{**SIZE, "steps": 2_500})
    counted = [size.evaluations_after(n) for n in (0, 1_000, 2_400, 2_500)]
    assert counted == [3, 2, 1, 0]
    off = RunSize(**{**SIZE, "evaluate_every": 0})
    assert off.evaluations_after(0) == 0
    published = estimate(off, 20, step_seconds=0.5, tokens_per_second=9.0)
    assert "evaluation" not in published


def test_more_than_12_hours_on_a_cpu_name_settings_that_take_less():
    size = RunSize(**{**SIZE, "evaluate_every": 0})
    pace = {"step_seconds": 10.0, "tokens_per_second": 700.0}
    published = estimate(size, 0, **pace)
    assert published.splitlines()[0] == (
        "Estimated time left: 2.3 days (20,000 steps of 10 s)."
    )
    assert "--config.steps=4300 takes about 12 h" in published
    # An accelerator or a short run gets no advice.
    for other, seconds in (({"on_cpu": False}, 10.0), ({}, 2.0)):
        size = RunSize(**{**SIZE, **other})
        pace = {"step_seconds": seconds, "tokens_per_second": 4e3}
        assert "\n" not in estimate(size, 0, **pace)


@pytest.mark.parametrize("steps", [7, 8])
def test_steps_within_the_warm_up_are_warned_of(tmp_path, steps):
    changed = {"steps": steps, "optimizer.warmup_steps": 7}
    options = parse_argv(tiny.arguments(tmp_path / "run", **changed))
    stream = io.StringIO()
    console = make_console(options.config, stream=stream)
    with open_run(
        options.config, workdir=options.workdir, overrides={}, console=console
    ):
        said = stream.getvalue()
    assert ("warning: steps=7 is not above optimizer.warmup_steps=7" in said) == (
        steps == 7
    )
