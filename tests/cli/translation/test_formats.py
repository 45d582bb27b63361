"""How translations are written.

Seen to fail: without the replacement of tabs (a column too many), and without
`_require_room` (five translations of which one is shown).
"""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.cli.translation.formats import make_formatter
from t2t_jax.data.trees.linearization import read_parse
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translation import EMPTY_TRANSLATION, Hypothesis, Translation
from t2t_jax.errors import UserError

BEST = Hypothesis(
    text="b\ta",
    score=-0.123456789123,
    log_probability=-1.5,
    num_tokens=3,
    ended=True,
    tokens=("▁b", "▁a", "</s>"),
    token_log_probabilities=(-0.5, -0.75, -0.25),
    attention_TxS=np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0, 0, 1.0]], np.float32),
)
NEXT = dataclasses.replace(
    BEST,
    text="ü\u2028",
    score=-2.0,
    log_probability=-3.0,
    num_tokens=1,
    tokens=("ü",),
    token_log_probabilities=(-3.0,),
    ended=False,
    attention_TxS=BEST.attention_TxS[:1],
)
FOUND = Translation(
    hypotheses=(BEST, NEXT), source_tokens=("▁A", "▁B", "</s>"), num_parts=2
)


def render(*, form="", found=FOUND, n_best=1, **asked):
    options = SimpleNamespace(
        config=SimpleNamespace(decoding=DecodingConfig(n_best=n_best)),
        format=form,
        **{"token_scores": False, "alignments": False, "terms": "", **asked},
    )
    return make_formatter(options)(6, found)


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ({}, []),
        ({"alignments": True}, ["▁b ▁a </s>", "▁A ▁B </s>", "1-0 0-1"]),
        (
            {"alignments": True, "token_scores": True},
            ["▁b ▁a </s>", "-0.5 -0.75 -0.25", "▁A ▁B </s>", "1-0 0-1"],
        ),
    ],
)
def test_tsv_is_a_row_for_each_of_the_best_with_the_columns_asked_for(asked, columns):
    first, second = render(form="tsv", n_best=2, **asked).split("\n")
    known = ["7", "1", "chunked", "-0.123456789", "-1.5", "3", "b a"]
    assert first.split("\t") == [*known, *columns]
    assert second.startswith("7\t2\tchunked\t-2.0\t-3.0\t1\tü\u2028")


@pytest.mark.parametrize("form", ["", "text"])
def test_text_is_the_best_translation_and_has_no_room_for_more(form):
    assert render(form=form) == BEST.text
    with pytest.raises(UserError, match="does not support --alignments, n_best=4"):
        render(form=form, alignments=True, n_best=4)
    with pytest.raises(UserError, match="does not support --token_scores"):
        render(form=form, token_scores=True)


def test_jsonl_has_what_was_asked_for_of_each_of_the_best():
    row = json.loads(render(form="jsonl", alignments=True, token_scores=True))
    assert (row["line"], row["status"], row["translation"]) == (7, "chunked", "b\ta")
    first, second = row["hypotheses"]
    assert first["token_log_probabilities"] == [-0.5, -0.75, -0.25]
    assert (first["alignment"], second["alignment"]) == ([[1, 0], [0, 1]], [[1, 0]])
    bare = json.loads(render(form="jsonl"))["hypotheses"][0]
    assert not {"alignment", "token_log_probabilities"} & set(bare)


def test_the_row_of_a_parser_has_its_tree_and_whether_it_was_repaired():
    parse = read_parse("A B", "(S XX (NP")
    found = dataclasses.replace(FOUND, parse=parse, num_parts=1)
    row = json.loads(render(form="jsonl", found=found))
    assert row["statuses"] == ["repaired"]
    assert row["tree"] == "(S (XX A) (XX B))"
    assert render(form="tsv", found=found).split("\t")[2] == "repaired"


def test_a_line_of_nothing_has_a_row_too():
    assert render(form="tsv", found=EMPTY_TRANSLATION) == "7\t1\tempty\t0.0\t0.0\t0\t"
    row = json.loads(render(form="jsonl", found=EMPTY_TRANSLATION, alignments=True))
    assert (row["status"], row["source_tokens"]) == ("empty", [])
    assert row["hypotheses"][0]["alignment"] == []


@given(st.text(st.characters(exclude_characters="\n")), st.booleans())
def test_columns_and_objects_hold_whatever_is_said(text, alignments):
    said = dataclasses.replace(BEST, text=text)
    found = Translation(hypotheses=(said, said), source_tokens=("a", "</s>"))
    rows = render(form="tsv", found=found, alignments=alignments).split("\n")
    columns = [row.split("\t") for row in rows]
    assert [len(row) for row in columns] == [10 if alignments else 7] * 2
    assert columns[1][6] == text.replace("\t", " ")
    line = render(form="jsonl", found=found, alignments=alignments)
    assert "\n" not in line
    assert json.loads(line)["translation"] == text
