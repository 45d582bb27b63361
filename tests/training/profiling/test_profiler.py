"""Which steps a trace holds, and that nobody's run depends on it.

Seen to fail: without `drain` before starting and before writing; without `paused`
around either; without `annotate` in `run_step`; without `_log_errors` around either;
without the `finally` of `stop_on_exit`; without `barrier`, or with it only where the
trace had begun; without "once"; without `python_tracer_level`.
"""

import contextlib
import math
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.errors import DivergedError
from t2t_jax.training.profiling import profiler as profile
from t2t_jax.training.profiling.profiler import Profiler
from t2t_jax.training.progress import RunProgress
from t2t_jax.types import DataPosition
from tests.training.fake_run import Run

BAD = math.nan


@pytest.fixture
def profiled(monkeypatch, tmp_path):
    """Returns a function that trains with a profile of steps 3 to 5.

    JAX's profiler is a fake that notes what it is asked for in the run's timeline.
    """

    def train(*, failing="", progress=None, steps=7, span=range(3, 6), **how):
        intervals = {k: how.pop(k) for k in ("evaluate", "save_steps") if k in how}
        run = Run(monkeypatch, said=[], traced=[], **how)

        def ask(what, seconds):
            run.clock += seconds
            run.timeline.append(what)
            if what == failing:
                raise OSError("no room")

        def name(name, *, step_num):
            run.traced.append(step_num)
            return nullcontext()

        fakes = {
            "start_trace": lambda folder, **options: ask("start", 300.0),
            "stop_trace": lambda: ask("stop", 70.0),
            "StepTraceAnnotation": name,
        }
        for fake in fakes.items():
            monkeypatch.setattr(jax.profiler, *fake)
        monkeypatch.setattr(profile, "summarize_trace", lambda *_: "In dots.")
        run.profile = Profiler(span, folder=tmp_path, log=run.said.append)
        progress = progress or RunProgress()
        with (
            contextlib.suppress(DivergedError),
            run.profile.stop_on_exit(progress.step),
        ):
            run.progress = run.train(progress, steps=steps, **intervals)
        run.events = ", ".join(event for event in run.timeline if event != "log 1")
        return run

    written = tmp_path / "plugins" / "profile" / "now" / "here.xplane.pb"
    written.parent.mkdir(parents=True)
    written.touch()
    return train


@pytest.mark.parametrize(
    ("how", "events", "traced"),
    [
        (
            {"evaluate": 5, "save_steps": 5},
            "start, stop, evaluate 5, save 5: periodic, log 7, evaluate 7, "
            "save 7: final",
            [3, 4, 5],
        ),
        # A step that is waited for is seen to have made no update.
        (
            {"losses": {2: BAD, 5: BAD}},
            "skip 2, start, skip 5, stop, log 7, evaluate 7, save 7: final",
            [3, 4, 5],
        ),
        # who is to stop saves first
        (
            {"stop_at": {5}, "in_haste": True},
            "start, save 5: stopped, stop",
            [3, 4, 5],
        ),
        # a run that diverges leaves what was traced
        ({"losses": {4: BAD}, "endured": 1}, "start, skip 4, stop", [3, 4, 5]),
        (
            {"progress": RunProgress(step=3, position=DataPosition(0, 3))},
            "start, stop, log 7, evaluate 7, save 7: final",
            [4, 5],
        ),
    ],
    ids=str,
)
def test_a_trace_has_its_steps_and_nothing_around_them(profiled, how, events, traced):
    run = profiled(**how)
    assert run.events == events
    assert run.traced == traced
    if traced:
        assert f"Traced steps {traced[0]} to {traced[-1]}" in run.said[0]
        assert run.said[1] == "In dots."


def test_its_own_time_is_none_of_training_and_has_its_limit(profiled):
    run = profiled()
    assert run.progress.minutes == pytest.approx(7 / 60)
    assert run.pauses[:2] == ["starting a profile", "writing a profile"]


@pytest.mark.parametrize("failing", ["start", "stop", ""])
def test_a_profiler_that_fails_ends_nothing_and_processes_wait_for_one_another(
    profiled, failing, monkeypatch
):
    met = []
    monkeypatch.setattr(profile, "barrier", lambda processes, name: met.append(name))
    run = profiled(failing=failing)
    assert run.progress.step == 7
    assert met == ["profiled from 3"]
    warnings = [line for line in run.said if line.startswith("WARNING: Profiling")]
    assert len(warnings) == bool(failing)
    assert run.timeline.count(failing) == bool(failing)


def test_a_real_trace_has_the_steps_and_what_the_devices_did(tmp_path):
    said = []
    traced = Profiler(range(3, 6), folder=tmp_path, log=said.append)
    square = jax.jit(lambda x: jnp.tanh(x @ x))
    x = square(jnp.ones((128, 128))).block_until_ready()
    program = square.lower(x).compile().as_text()
    with traced.stop_on_exit(0, programs=lambda: [program]):
        for step in range(1, 8):
            if traced.starts_at(step):
                traced.start(step)
            with traced.annotate(step):
                x = square(x).block_until_ready()
            if traced.ends_at(step):
                traced.stop()
    (file,) = tmp_path.rglob("*.xplane.pb")
    assert (file.parent / "perfetto_trace.json.gz").is_file()
    events = [
        event
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes
        for line in plane.lines
        for event in line.events
    ]
    numbers = [dict(e.stats)["step_num"] for e in events if e.name == "train"]
    assert numbers == [3, 4, 5]
    assert not any(event.name.startswith("$") for event in events)  # Python's calls
    assert str(tmp_path) in said[0]
    assert "matrix products" in said[1]
    assert "other programs" not in said[1]
