from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.journal import Journal
from t2t_jax.parallelism.gathering import GivenUp
from t2t_jax.training.progress import Progress
from t2t_jax.workdir import Workdir

STATE = SimpleNamespace(params={})


class Listener:
    """Console, reporter, snapshots and evaluator of a run, in one."""

    def __init__(self):
        self.heard, self.is_given_up, self.checks = [], False, 0

    def say(self, text):
        self.heard.append(text)

    def say_evaluation(self, record, samples):
        self.heard.append(samples)

    def write(self, record):
        self.heard.append(record)

    show = write

    def evaluate(self, params, step):
        if self.is_given_up:
            raise GivenUp
        return {"step": step, "kind": "eval", "bleu": 17.0}, ["Haus"]

    def samples(self, hypotheses, count):
        return f"{hypotheses[0]} of {count}"

    def save(self, state, progress, *, kinds, bleu):
        self.heard.append((progress.step, kinds, bleu))

    def wait(self):
        self.heard.append("waited")

    def check(self):
        self.checks += 1

    def attempt(self, what, act, *args):
        act(*args)


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def journal(tmp_path, listener):
    return Journal(
        Config(),
        workdir=Workdir(tmp_path),
        console=listener,
        reporter=listener,
        snapshots=listener,
        evaluator=listener,
    )


def test_an_evaluation_is_said_written_and_sampled(journal, listener, tmp_path):
    record = journal.evaluate(STATE, 7)
    assert record["bleu"] == 17.0
    samples = f"Haus of {Config().evaluation.num_samples}"
    assert listener.heard == ["Evaluating step 7 …", record, samples]
    assert (tmp_path / "samples" / "7.txt").read_text() == f"{samples}\n"


def test_of_an_evaluation_that_is_given_up_nothing_is_left(journal, listener, tmp_path):
    listener.is_given_up = True
    assert journal.evaluate(STATE, 7) is None
    assert listener.heard == ["Evaluating step 7 …"]
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_bears_the_score_of_its_own_step_only(journal, listener):
    journal.evaluate(STATE, 7)
    listener.heard.clear()
    journal.save(STATE, Progress(7), ("best",))
    journal.save(STATE, Progress(8), ("periodic",))
    assert listener.heard == [(7, ("best",), 17.0), (8, ("periodic",), None)]


@pytest.mark.parametrize("kind", ["stopped", "final"])
def test_the_last_checkpoint_of_a_process_is_waited_for(journal, listener, kind):
    journal.save(STATE, Progress(8), (kind,))
    assert listener.heard[1] == "waited"
    assert listener.heard[2].startswith("Saved step 8 in ")


def test_a_record_tells_the_rate_of_the_last_update(journal, listener):
    journal.log({"step": 100, "skipped": 0})
    journal.log({"step": 103, "skipped": 3})
    rates = [record["learning_rate"] for record in listener.heard]
    assert rates[0] == rates[1] > 0
