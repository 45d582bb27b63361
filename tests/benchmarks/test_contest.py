"""Contestants are alone in their processes, and compute one at a time.

Seen to fail: without the dup2 in `_serve` (stdout), the environment of `_set`, the
reversal in `take_turns`, and the EOFError in `Contestant._answer` (a death).
"""

import os
from itertools import pairwise

import contest
import pytest
from contest import Contestant, ContestError, Work, take_turns

from t2t_jax.model.config import TransformerConfig


def start(rows=2, **environment):
    work = Work(config=TransformerConfig(), device="cpu", rows=rows, length=3)
    made_by = "tests.benchmarks.fakes:Runner"
    return Contestant("runner", made_by=made_by, work=work, environment=environment)


def test_contestants_are_asked_in_turns_one_at_a_time(monkeypatch):
    monkeypatch.setattr(contest, "PAUSE_SECONDS", 0)
    with start() as one, start() as other:
        both = {"one": one, "other": other}
        naps = take_turns(both, dict.fromkeys(both, ("nap",)), rounds=3)
    spans = sorted((span, name) for name, three in naps.items() for span in three)
    assert [name for _, name in spans] == "one other other one one other".split()
    assert all(before[1] < after[0] for (before, _), (after, _) in pairwise(spans))


def test_an_object_lives_on_in_a_process_and_an_environment_of_its_own(capfd):
    with start(T2T_JAX_TEST_SEEN="yes") as one, start() as other:
        assert [one.ask("calls", 2)[0], one.ask("calls", 3)[0]] == [2, 5]
        (_, first, seen), (calls, second, unseen) = (
            one.ask("calls", 0),
            other.ask("calls", 7),
        )
    assert (seen, unseen, calls) == ("yes", "", 7)
    assert len({first, second, os.getpid()}) == 3
    assert capfd.readouterr() == ("", "a library prints\n" * 4)


def test_one_that_cannot_be_made_or_dies_says_why():
    with pytest.raises(ContestError, match="13 rows cannot be made"):
        start(rows=13)
    died = "runner has died, with exit code 7: memory may have run out"
    with start() as contestant, pytest.raises(ContestError, match=died):
        contestant.ask("die")
