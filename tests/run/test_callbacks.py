from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.devices.distributed.gather import Cancelled
from t2t_jax.run.callbacks import RunCallbacks
from t2t_jax.run.dev_outputs import DevOutputs
from t2t_jax.run.estimates import RunSize
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import RunProgress

STATE = SimpleNamespace(params={}, ema=None)
SIZE = RunSize(steps=1_000, tokens_per_batch=64, parameters=7, on_cpu=True)


class Fake:
    """Fake of console, metrics writer, checkpointer and evaluator."""

    sources, references = ("house",), ("Heim",)

    def __init__(self):
        self.calls, self.is_cancelled, self.checks = [], False, 0

    def log(self, text):
        self.calls.append(text)

    begin = log

    def write_samples(self, step, samples):
        self.calls.append(f"TensorBoard {step}: {samples}")

    def log_evaluation(self, record, samples):
        self.calls.append(samples)

    def write(self, record):
        self.calls.append(record)

    show = write

    def remember(self, record):
        """Plots nothing."""

    def evaluate(self, params, step):
        self.evaluated = params
        if self.is_cancelled:
            raise Cancelled
        return {"step": step, "kind": "eval", "nll": 2.0, "bleu": 17.0}, ["Haus"]

    def samples(self, hypotheses, count):
        return f"{hypotheses[0]} of {count}"

    def save(self, state, progress, *, kinds, scores):
        self.calls.append((progress.step, kinds, scores))

    def wait(self):
        self.calls.append("waited")

    def check_for_errors(self):
        self.checks += 1

    def attempt(self, what, act, *args):
        act(*args)


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def callbacks(tmp_path, fake):
    return RunCallbacks(
        Config(),
        workdir=Workdir(tmp_path),
        console=fake,
        metrics=fake,
        checkpointer=fake,
        evaluator=fake,
        size=SIZE,
    )


def test_an_evaluation_is_logged_written_and_sampled(callbacks, fake, tmp_path):
    record = callbacks.evaluate(STATE, 7)
    assert record["bleu"] == 17.0
    samples = f"Haus of {Config().evaluation.num_samples}"
    shown = f"TensorBoard 7: {samples}"
    assert fake.calls == ["Evaluating step 7 …", record, shown, samples]
    fake.calls.clear()
    callbacks.save(STATE, RunProgress(7), ("best",))
    callbacks.save(STATE, RunProgress(8), ("periodic",))  # It has no score.
    assert fake.calls == [(7, ("best",), {"bleu": 17.0}), (8, ("periodic",), {})]
    assert (tmp_path / "samples" / "7.txt").read_text() == f"{samples}\n"


def test_all_translations_are_written_before_the_report(callbacks, tmp_path):
    seen = []
    callbacks.write_report = lambda: seen.append(DevOutputs(tmp_path).read(7))
    callbacks.evaluate(STATE, 7)
    assert seen == [(7, ["house"], ["Heim"], ["Haus"])]


def test_a_cancelled_evaluation_writes_nothing(callbacks, fake, tmp_path):
    fake.is_cancelled = True
    assert callbacks.evaluate(STATE, 7) is None
    assert fake.calls == ["Evaluating step 7 …"]
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_without_bleu_leaves_the_checkpoint_without_a_score(
    callbacks, fake
):
    record = {"step": 7, "nll": 2.0, "bleu_skipped": "endless"}
    fake.evaluate = lambda params, step: (record, ["x"])
    assert callbacks.evaluate(STATE, 7) == record
    callbacks.save(STATE, RunProgress(7), ("periodic",))
    assert fake.calls[-1] == (7, ("periodic",), {})


def test_the_time_of_the_run_is_estimated_once_without_what_is_not_training(
    callbacks, fake, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def show(step, seconds):
        now[0] += seconds
        callbacks.show({"step": step, "skipped": 0, "target_tokens_per_second": 9.0})
        return [x for x in fake.calls if "Estimated" in str(x)]

    def save(*_, **__):
        now[0] += 1_000.0

    fake.save = save
    assert show(1, 5.0) == []
    assert show(10, 9.0) == []
    callbacks.save(STATE, RunProgress(10), ("periodic",))
    assert show(20, 10.0) == [
        "Estimated time left: 16 min (980 steps of 1 s)."  # 19 s for 19 steps
    ]
    assert len(show(40, 20.0)) == 1
