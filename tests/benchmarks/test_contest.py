"""Contestants are alone in their processes, and compute one at a time.

Seen to fail: without the dup2 in `_serve` (stdout), the setting of affinity there, the
environment of `_set`, the reversal in `take_turns`, and the EOFError in
`Contestant._answer` (the test of a death).
"""

import os
from itertools import pairwise

import contest
import pytest
from contest import Contestant, ContestError, Work, take_turns

from t2t_jax.model.config import TransformerConfig

WORK = Work(config=TransformerConfig(), device="cpu", rows=2, length=3)


def start(work=WORK, **environment):
    return Contestant(
        "runner",
        made_by="tests.benchmarks.fakes:Runner",
        work=work,
        environment=environment,
    )


class Scribe:
    """Answers at once, and notes that it was asked."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def ask(self, question, *arguments):
        self.notes.append(self.name)
        return question, *arguments


def test_every_other_round_goes_in_the_opposite_order(monkeypatch):
    monkeypatch.setattr(contest, "PAUSE_SECONDS", 0)
    notes = []
    scribes = {name: Scribe(name, notes) for name in "abc"}
    questions = {name: ("seconds", number) for number, name in enumerate("abc")}
    answers = take_turns(scribes, questions, rounds=3)
    assert "".join(notes) == "abccbaabc"
    assert answers == {
        "a": [("seconds", 0)] * 3,
        "b": [("seconds", 1)] * 3,
        "c": [("seconds", 2)] * 3,
    }


def test_an_object_lives_on_in_its_process_from_question_to_question():
    with start() as one, start() as other:
        assert [one.ask("calls", 2), one.ask("calls", 3)] == [2, 5]
        assert other.ask("calls", 7) == 7
        pids = {contestant.ask("surroundings")[0] for contestant in (one, other)}
    assert len(pids | {os.getpid()}) == 3


def test_nobody_computes_while_another_does():
    with start() as one, start() as other:
        contestants = {"one": one, "other": other}
        naps = take_turns(contestants, dict.fromkeys(contestants, ("nap",)), rounds=3)
    spans = sorted(naps["one"] + naps["other"])
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_the_environment_is_there_before_the_module_is_imported():
    with start(T2T_JAX_TEST_SEEN="yes") as contestant:
        assert contestant.ask("surroundings")[1] == "yes"
    assert "T2T_JAX_TEST_SEEN" not in os.environ


def test_what_a_library_prints_does_not_reach_stdout(capfd):
    with start() as contestant:
        contestant.ask("chatter")
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err == "a library prints\nso does Python\n"


def test_one_that_cannot_be_made_says_why():
    work = Work(config=WORK.config, device="cpu", rows=13, length=3)
    with pytest.raises(ContestError, match="13 rows cannot be made"):
        start(work)


def test_a_process_that_dies_is_named_with_its_exit_code():
    message = "runner has died, with exit code 7: memory may have run out"
    with start() as contestant, pytest.raises(ContestError, match=message):
        contestant.ask("die")
