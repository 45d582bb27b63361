"""What a comparison counts, and what it lets pass, on outputs written by hand.

Seen to fail: where a gap counts as a tie whatever it is; where differences are not
absolute; where one unequal line of few is too many.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.verification import (
    EXACT,
    FLOAT32,
    INT8,
    Output,
    VerificationText,
    choose_lines,
    compare,
)
from tests.decoding.words import Untagged

SOURCES = ("eins zwei", "drei", "vier fünf", "sechs")
TARGETS = ("a b c d", "b c d e", "c d e f", "d e f g")
SAID = [*zip(TARGETS, [(5, 6, 2), (7, 2), (8, 9, 2), (4, 2)], strict=True)]
TEXT = VerificationText("by hand", SOURCES, TARGETS)


class Words(Untagged):
    """Every word is a subword; its id is its length."""

    def encode(self, lines):
        return [[len(word) for word in line.split()] for line in lines]


class Fake:
    """Says what it is told to, and finds every token as probable as it is told."""

    def __init__(self, outputs, logs=lambda token: -1.0):
        self.outputs, self.logs = outputs, logs

    def search(self, lines, *, greedy):
        assert tuple(lines) == SOURCES
        return [Output(text, tokens) for text, tokens in self.outputs]

    def score(self, pairs):
        return [
            np.array([self.logs(token) for token in [*target, 2]], np.float32)
            for _, target in pairs
        ]


def compared(own, exported):
    own.model = SimpleNamespace(
        vocabularies=VocabularyPair(Words(), Words()), decoding=DecodingConfig()
    )
    return compare(own, exported, TEXT, same_penalty=True)


def test_one_model_is_itself_exactly():
    found = compared(Fake(SAID), Fake(SAID))
    assert (found.lines, found.equal, found.ties, found.beam_equal) == (4, 4, 0, 4)
    assert found.largest_difference == found.mean_difference == found.largest_gap == 0
    assert found.bleu == found.exported_bleu == pytest.approx(100)
    assert found.bleu_signature.startswith("nrefs:1|")
    assert found.problems(EXACT) == []
    found.require(EXACT, advice="")


def test_differences_are_those_of_tokens_whatever_their_sign():
    own, exported = Fake(SAID), Fake(SAID, lambda token: -1.5 if token == 8 else -0.9)
    found = compared(own, exported)
    # Ten scores, six tokens and four ends: one is 0.5 off, the others 0.1.
    assert found.largest_difference == pytest.approx(0.5)
    assert found.mean_difference == pytest.approx((0.5 + 9 * 0.1) / 10, rel=1e-5)
    assert len(found.problems(FLOAT32)) == 2


@pytest.mark.parametrize(("gap", "ties"), [(0.00005, 1), (0.01, 0)])
def test_a_tie_is_judged_where_outputs_begin_to_differ(gap, ties):
    # 9 became 11, and what follows is as far apart as can be.
    other = [*SAID[:2], ("c d e f", (8, 11, 30, 2)), SAID[3]]
    own = Fake(SAID, lambda token: {11: -1 - gap, 30: -50.0}.get(token, -1.0))
    found = compared(own, Fake(other, own.logs))
    assert (found.equal, found.ties) == (3, ties)
    assert found.largest_gap == pytest.approx(gap, rel=1e-2)
    problems = found.problems(FLOAT32)
    assert len(problems) == 1 - ties
    assert all("are not ties" in problem for problem in problems)
    assert "1 outputs of a beam of 4 differ (at most 0)" in found.problems(EXACT)


def test_what_stops_where_the_other_goes_on_is_not_a_tie():
    found = compared(Fake(SAID), Fake([("a b c d", (5,)), *SAID[1:]]))
    assert found.largest_gap == np.inf
    assert len(found.problems(FLOAT32)) == 1


MANY = {"lines": 300, "equal": 297, "ties": 3, "beam_equal": 300}
OTHERS = {"equal": 0, "beam_equal": 0, "mean_difference": 0.02}


# Of a hundred lines one may be a tie, and of few as well. Small numbers may change
# words but not the quality.
@pytest.mark.parametrize(
    ("allowed", "changed", "problems"),
    [
        (FLOAT32, {"equal": 3, "ties": 1}, []),
        (FLOAT32, MANY, []),
        (FLOAT32, {**MANY, "equal": 296, "ties": 4}, ["4 of 300 greedy outputs"]),
        (INT8, OTHERS, []),
        (INT8, {**OTHERS, "exported_beam_bleu": 98.99}, ["BLEU is lower by 1.01"]),
        (INT8, {**OTHERS, "mean_difference": 0.06}, ["log-probabilities differ by 0"]),
    ],
)
def test_what_a_comparison_lets_pass(allowed, changed, problems):
    found = dataclasses.replace(compared(Fake(SAID), Fake(SAID)), **changed)
    for problem, begin in zip(found.problems(allowed), problems, strict=True):
        assert problem.startswith(begin)


def test_lines_that_cannot_be_translated_untruncated_are_left_out():
    pairs = [("", "0"), ("a b", "1"), ("a b c", "2"), ("  ", "3"), ("d", "4")]
    text = choose_lines(
        "x", [*pairs, ("e", "5")], vocabulary=Words(), longest=3, most=2
    )
    assert text == VerificationText("x", ("a b", "d"), ("1", "4"), 3)
