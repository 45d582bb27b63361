import dataclasses
from typing import get_args

import numpy as np
import pytest

from t2t_jax.data.trees.linearization import read_parse
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translation import (
    EMPTY_TRANSLATION,
    Hypothesis,
    Status,
    Translation,
    merge_parts,
)

CONFIG = DecodingConfig()


def hypothesis(text, *, log_probability=-2.0, ended=True, width=3):
    tokens = (*text.split(), *(["</s>"] if ended else []))
    rows = len(tokens)
    weights = np.arange(1, rows * width + 1, dtype=np.float32).reshape(rows, width)
    return Hypothesis(
        text=text,
        score=0.0,
        log_probability=log_probability,
        num_tokens=rows,
        ended=ended,
        tokens=tokens,
        token_log_probabilities=tuple(-0.5 for _ in tokens),
        attention_TxS=weights,
    )


def translation(*hypotheses, source=("x", "y", "</s>"), **changes):
    return Translation(hypotheses=hypotheses, source_tokens=source, **changes)


def test_joined_parts_are_one_translation_with_one_end():
    parts = [
        translation(hypothesis("a b"), hypothesis("c")),
        translation(hypothesis("d", log_probability=-3.0)),
    ]
    joined = merge_parts(parts, ["", " "], CONFIG)
    assert [h.text for h in joined.hypotheses] == ["a b d", "c d"]
    best = joined.hypotheses[0]
    assert best.tokens == ("a", "b", "d", "</s>")
    assert len(best.token_log_probabilities) == 4
    assert (best.log_probability, best.num_tokens) == (-5.0, 5)
    assert best.score == pytest.approx(-5.0 / (10 / 6) ** 0.6)
    assert joined.source_tokens == ("x", "y", "x", "y", "</s>")
    assert (joined.num_parts, joined.status) == (2, "chunked")
    power = merge_parts(parts, ["", " "], DecodingConfig(length_normalization="power"))
    assert power.score == pytest.approx(-5.0 / 5**0.6)


def test_nothing_stands_beside_a_part_that_says_nothing():
    parts = [translation(hypothesis(text)) for text in ("", "a", "", "b", "")]
    assert merge_parts(parts, ["", " ", " ", " ", " "], CONFIG).text == "a b"


def test_joined_parts_have_looked_at_their_own_source_only():
    parts = [translation(hypothesis("a b")), translation(hypothesis("d"))]
    weights = merge_parts(parts, ["", ""], CONFIG).hypotheses[0].attention_TxS
    first, second = (
        [[1, 2, 0, 0, 0], [4, 5, 0, 0, 0]],
        [[0, 0, 1, 2, 3], [0, 0, 4, 5, 6]],
    )
    np.testing.assert_array_equal(weights, [*first, *second])


def test_a_part_that_did_not_end_keeps_all_its_tokens():
    parts = [translation(hypothesis("a b", ended=False)), translation(hypothesis("d"))]
    joined = merge_parts(parts, ["", " "], CONFIG)
    assert joined.hypotheses[0].tokens == ("a", "b", "d", "</s>")
    assert joined.truncated
    assert joined.status == "no_eos"


def test_an_unmet_term_comes_first_and_hides_nothing():
    every = dataclasses.replace(
        translation(hypothesis(" ", ended=False)),
        short=True,
        invalid_utf8=True,
        num_parts=2,
        parse=read_parse("a b", "(S XX"),
        source_cut=True,
        unseen_words=1.0,
        unmet_terms=("b",),
    )
    assert every.status == "unmet_terms"
    assert every.statuses[1:] == (
        *("invalid_utf8", "no_output", "no_eos", "repaired", "truncated", "short"),
        *("unfamiliar", "chunked"),
    )
    assert {*every.statuses, "ok", "empty"} == {*get_args(Status)}
    blank = dataclasses.replace(EMPTY_TRANSLATION, unmet_terms=("b",))
    assert blank.statuses == ("unmet_terms", "empty")


def test_an_alignment_leaves_the_ends_and_what_looked_nowhere_out():
    weights = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
    found = dataclasses.replace(hypothesis("a b"), attention_TxS=weights)
    assert found.alignment() == [(1, 0)]
    assert EMPTY_TRANSLATION.hypotheses[0].alignment() == []
