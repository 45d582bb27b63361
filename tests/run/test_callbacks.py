from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.distributed.gather import Cancelled
from t2t_jax.run.callbacks import RunCallbacks
from t2t_jax.run.time_estimate import RunSize
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import RunProgress

STATE = SimpleNamespace(params={})
SIZE = RunSize(steps=1_000, tokens_per_batch=64, parameters=7, on_cpu=True)


class Listener:
    """Console, reporter, snapshots and evaluator of a run, in one."""

    def __init__(self):
        self.heard, self.is_given_up, self.checks = [], False, 0

    def log(self, text):
        self.heard.append(text)

    begin = log

    def write_samples(self, step, samples):
        self.heard.append(f"TensorBoard {step}: {samples}")

    def say_evaluation(self, record, samples):
        self.heard.append(samples)

    def write(self, record):
        self.heard.append(record)

    show = write

    def evaluate(self, params, step):
        if self.is_given_up:
            raise Cancelled
        return {"step": step, "kind": "eval", "bleu": 17.0}, ["Haus"]

    def samples(self, hypotheses, count):
        return f"{hypotheses[0]} of {count}"

    def save(self, state, progress, *, kinds, bleu):
        self.heard.append((progress.step, kinds, bleu))

    def wait(self):
        self.heard.append("waited")

    def check(self):
        self.checks += 1

    def try_call(self, what, act, *args):
        act(*args)


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def journal(tmp_path, listener):
    return RunCallbacks(
        Config(),
        workdir=Workdir(tmp_path),
        console=listener,
        reporter=listener,
        snapshots=listener,
        evaluator=listener,
        size=SIZE,
    )


def test_an_evaluation_is_said_written_and_sampled(journal, listener, tmp_path):
    record = journal.evaluate(STATE, 7)
    assert record["bleu"] == 17.0
    samples = f"Haus of {Config().evaluation.num_samples}"
    shown = f"TensorBoard 7: {samples}"
    assert listener.heard == ["Evaluating step 7 …", record, shown, samples]
    assert (tmp_path / "samples" / "7.txt").read_text() == f"{samples}\n"


def test_of_an_evaluation_that_is_given_up_nothing_is_left(journal, listener, tmp_path):
    listener.is_given_up = True
    assert journal.evaluate(STATE, 7) is None
    assert listener.heard == ["Evaluating step 7 …"]
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_without_bleu_leaves_the_checkpoint_without_a_score(
    journal, listener
):
    listener.evaluate = lambda params, step: ({"bleu_skipped": "endless"}, ["x"])
    assert journal.evaluate(STATE, 7) == {"bleu_skipped": "endless"}
    journal.save(STATE, RunProgress(7), ("periodic",))
    assert listener.heard[-1] == (7, ("periodic",), None)


def test_the_time_of_the_run_is_estimated_once_without_what_is_not_training(
    journal, listener, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def show(step, seconds):
        now[0] += seconds
        journal.show({"step": step, "skipped": 0, "target_tokens_per_second": 9.0})
        return [x for x in listener.heard if "Estimated" in str(x)]

    def save(*_, **__):
        now[0] += 1_000.0

    listener.save = save
    assert show(1, 5.0) == []
    assert show(10, 9.0) == []
    journal.save(STATE, RunProgress(10), ("periodic",))
    assert show(20, 10.0) == [
        "Estimated time left: 16 min (980 steps of 1 s)."  # 19 s for 19 steps
    ]
    assert len(show(40, 20.0)) == 1


def test_slow_steps_are_estimated_after_a_minute(journal, listener, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    for step in (1, 2, 3):
        now[0] += 50.0
        journal.show({"step": step, "skipped": 0, "target_tokens_per_second": 9.0})
    (told,) = [x for x in listener.heard if "Estimated" in str(x)]
    assert told.startswith("Estimated time left: 13 h 50 min (997 steps of 50 s).")


def test_a_checkpoint_bears_the_score_of_its_own_step_only(journal, listener):
    journal.evaluate(STATE, 7)
    listener.heard.clear()
    journal.save(STATE, RunProgress(7), ("best",))
    journal.save(STATE, RunProgress(8), ("periodic",))
    assert listener.heard == [(7, ("best",), 17.0), (8, ("periodic",), None)]


@pytest.mark.parametrize("kind", ["stopped", "final"])
def test_the_last_checkpoint_of_a_process_is_waited_for(journal, listener, kind):
    journal.save(STATE, RunProgress(8), (kind,))
    assert listener.heard[1] == "waited"
    assert listener.heard[2].startswith("Saved step 8 in ")


def test_a_record_tells_the_rate_of_the_last_update(journal, listener):
    journal.log({"step": 100, "skipped": 0})
    journal.log({"step": 103, "skipped": 3})
    rates = [record["learning_rate"] for record in listener.heard]
    assert rates[0] == rates[1] > 0
