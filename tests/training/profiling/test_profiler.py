"""Which steps a trace holds, and that nobody's run depends on it.

Seen to fail: without `drain` before starting and before writing; without `paused`
around either; without `annotate` in `run_step`; without `_log_errors` around either;
without the `finally` of `stop_on_exit`; without `barrier`, or with it only where the
trace had begun; without "once"; without what is said of steps that are past; without
`python_tracer_level`.
"""

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


def events(run):
    """Lists what the loop did, but for the record of the first step."""
    return [event for event in run.timeline if event != "log 1"]


class FakeProfiler:
    """Notes in a run's timeline what JAX's profiler is asked for."""

    def __init__(self, run):
        self._run, self.failing, self.steps, self.said = run, (), [], []

    def start_trace(self, folder, **options):
        self._run.clock += 300.0
        self._run.timeline.append("start")
        if "start" in self.failing:
            raise RuntimeError("there is no profiler")

    def stop_trace(self):
        self._run.clock += 70.0
        self._run.timeline.append("stop")
        if "stop" in self.failing:
            raise OSError("no room")

    def name(self, name, *, step_num):
        self.steps.append(step_num)
        return nullcontext()


@pytest.fixture
def run(monkeypatch):
    return Run(monkeypatch)


@pytest.fixture
def profiler(monkeypatch, tmp_path, run):
    fake = FakeProfiler(run)
    monkeypatch.setattr(jax.profiler, "start_trace", fake.start_trace)
    monkeypatch.setattr(jax.profiler, "stop_trace", fake.stop_trace)
    monkeypatch.setattr(jax.profiler, "StepTraceAnnotation", fake.name)
    monkeypatch.setattr(
        profile, "summarize_trace", lambda file, found: f"In dots: {found}."
    )
    written = tmp_path / "plugins" / "profile" / "now" / "here.xplane.pb"
    written.parent.mkdir(parents=True)
    written.touch()
    run.profile = Profiler(range(3, 6), folder=tmp_path, log=fake.said.append)
    return fake


def watched(run, progress=None, **intervals):
    progress = progress or RunProgress()
    with run.profile.stop_on_exit(progress.step):
        return run.train(progress, **intervals)


def test_a_trace_holds_its_steps_and_no_evaluation_around_them(run, profiler):
    watched(run, steps=7, evaluate=5, save_steps=5)
    assert events(run)[:4] == ["start", "stop", "evaluate 5", "save 5: periodic"]
    assert profiler.steps == [3, 4, 5]
    assert "Traced steps 3 to 5" in profiler.said[0]
    assert profiler.said[1] == "In dots: {}."


def test_it_begins_after_what_follows_the_step_before(run, profiler):
    watched(run, steps=7, evaluate=2)
    assert events(run)[:2] == ["evaluate 2", "start"]


def test_the_devices_have_done_all_before_it_and_all_in_it(run, profiler):
    # Where a step is waited for, it is seen to have made no update.
    run.losses = {2: float("nan"), 5: float("nan")}
    watched(run, steps=9)
    assert events(run)[:4] == ["skip 2", "start", "skip 5", "stop"]


def test_its_own_time_is_none_of_training_and_has_its_limit(run, profiler):
    _, progress = watched(run, steps=6)
    assert progress.minutes == pytest.approx(6 / 60)
    assert run.pauses[:2] == ["starting a profile", "writing a profile"]


def test_who_is_to_stop_at_the_last_of_them_saves_first(run, profiler):
    run.stop_at, run.in_haste = {5}, True
    watched(run, steps=9)
    assert events(run) == ["start", "save 5: stopped", "stop"]
    assert "Traced steps 3 to 5" in profiler.said[0]


def test_a_stop_in_the_middle_is_saved_first_and_then_traced(run, profiler):
    run.stop_at = {4}
    watched(run, steps=9)
    assert events(run) == ["start", "save 4: stopped", "stop"]
    assert "Traced steps 3 to 4" in profiler.said[0]


def test_training_that_ends_before_the_last_of_them_ends_the_trace(run, profiler):
    watched(run, steps=4)
    assert events(run)[-1] == "stop"
    assert "Traced steps 3 to 4" in profiler.said[0]


def test_a_run_that_diverges_leaves_what_was_traced(run, profiler):
    run.losses, run.endured = {4: float("nan")}, 1
    with pytest.raises(DivergedError):
        watched(run, steps=9)
    assert events(run)[-1] == "stop"


def test_a_run_that_goes_on_traces_what_is_left_of_them(run, profiler):
    before = RunProgress(step=3, position=DataPosition(0, 3))
    watched(run, before, steps=7)
    assert profiler.steps == [4, 5]
    assert "Traced steps 4 to 5" in profiler.said[0]


def test_steps_that_are_past_are_not_traced_and_that_is_said_at_once(run, profiler):
    before = RunProgress(step=5, position=DataPosition(1, 0))
    watched(run, before, steps=7)
    assert profiler.said == [
        "profile.steps=3:5: nothing is traced, since this run is at step 5 already."
    ]
    assert "start" not in run.timeline


@pytest.mark.parametrize("failing", ["start", "stop"])
def test_a_profiler_that_fails_is_told_of_and_ends_nothing(run, profiler, failing):
    profiler.failing = (failing,)
    _, progress = watched(run, steps=7)
    assert progress.step == 7
    (said,) = profiler.said
    assert said.startswith("WARNING: Profiling failed (profile.steps=3:5): ")
    assert run.timeline.count(failing) == 1


@pytest.mark.parametrize("failing", ["start", "stop", ""])
def test_the_processes_wait_for_one_another_whatever_fails(
    run, profiler, failing, monkeypatch
):
    met = []
    monkeypatch.setattr(profile, "barrier", lambda processes, name: met.append(name))
    profiler.failing = (failing,)
    watched(run, steps=7)
    assert met == ["profiled from 3"]


def test_nothing_is_asked_of_the_profiler_where_no_steps_are_given(run, profiler):
    run.profile = Profiler(range(0), folder=None, log=profiler.said.append)
    watched(run, steps=7)
    assert events(run) == ["log 7", "evaluate 7", "save 7: final"]
    assert run.pauses[0] == "evaluating step 7"
    assert (profiler.said, profiler.steps) == ([], [])


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
