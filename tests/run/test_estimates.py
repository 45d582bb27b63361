import io

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS
from t2t_jax.evaluation.config import EvaluationConfig
from t2t_jax.run.estimates import EVALUATION_COST, estimate, size_advice
from t2t_jax.run.start import open_shared_run
from tests.integration import tiny


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
    options = parse_argv([f"--config=own_text:{row}", f"--workdir={tmp_path}"])
    published = size_advice(options.config, pairs)
    assert (f"--config=own_text:{advised} suits" in published) == bool(advised)
    assert published.startswith(f"{pairs:,} pairs are" if advised else "")
    assert bool(published) == bool(advised)


SIZE = {"dev_tokens": 26_000, "on_cpu": True}


def estimated(step, *, steps=20_000, every=1_000, pace=(0.5, 13_000.0), **changed):
    evaluation = EvaluationConfig(every_steps=every)
    config = Config(
        steps=steps, evaluation=evaluation, data=DataConfig(tokens_per_batch=8_192)
    )
    seconds, rate = pace
    size = {**SIZE, **changed}
    return estimate(config, step, step_seconds=seconds, tokens_per_second=rate, **size)


def test_the_time_left_is_that_of_steps_and_evaluations():
    # 18,980 x 0.5 s, and 19 x EVALUATION_COST x 2 s
    assert EVALUATION_COST == 1.6
    assert estimated(1_020) == (
        "Estimated time left: 2 h 40 min (18,980 steps of 0.5 s and 19 evaluations of "
        "at least 3 s, more as long as translations reach their length limit)."
    )


def test_the_last_step_is_evaluated_too_and_none_where_evaluation_is_off():
    for step, counted in ((0, "3 evaluations"), (1_000, "2 ev"), (2_400, "1 eva")):
        assert f" and {counted}" in estimated(step, steps=2_500)
    assert "evaluation" not in estimated(20, every=0)
    assert "at least 0 s" in estimated(20, pace=(0.5, 0.0))


def test_more_than_12_hours_on_a_cpu_name_settings_that_take_less():
    published = estimated(0, every=0, pace=(10.0, 700.0))
    assert published.splitlines()[0] == (
        "Estimated time left: 2.3 days (20,000 steps of 10 s)."
    )
    assert "--config.steps=4300 takes about 12 h" in published
    # An accelerator or a short run gets no advice.
    for other, seconds in (({"on_cpu": False}, 10.0), ({}, 2.0)):
        assert "\n" not in estimated(0, pace=(seconds, 4e3), **other)


FALLS = {"schedule": "linear", "warmup_steps": 5}


@pytest.mark.parametrize(
    ("optimizer", "warning"),
    [
        ({"warmup_steps": 7}, "steps=7 is not above optimizer.warmup_steps=7"),
        ({"warmup_steps": 6}, None),
        (FALLS, None),
        ({**FALLS, "decay_steps": 6}, "and steps=7: the rate stays at its end"),
        ({**FALLS, "decay_steps": 8}, "and steps=7: the rate never reaches it"),
    ],
)
def test_steps_that_do_not_suit_the_schedule_are_warned_of(
    tmp_path, optimizer, warning
):
    changed = {f"optimizer.{name}": value for name, value in optimizer.items()}
    changed["steps"] = 7
    options = parse_argv(tiny.arguments(tmp_path / "run", **changed))
    stream = io.StringIO()
    how = {"overrides": {}, "processes": SINGLE_PROCESS, "stream": stream}
    with open_shared_run(options.config, workdir=options.workdir, **how):
        said = stream.getvalue()
    assert ("warning: " in said) == bool(warning)
    assert (warning or "") in said
