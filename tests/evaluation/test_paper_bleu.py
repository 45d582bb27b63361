from operator import methodcaller

import pytest
import sacrebleu

from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.evaluation.tokenized_bleu import (
    moses_tokenizer,
    paper_bleu,
    split_compounds,
)

REFERENCES = [
    "Der rot-weiße Hund sitzt auf der A-Z-Straße, sagt er.",
    "Ein Mann im T-Shirt liest – wie immer - eine Zeitung.",
]
HYPOTHESES = [
    "Der rot-weiße Hund saß auf der A-Z-Straße, sagt er.",
    "Ein Mann im Shirt liest – wie immer - die Zeitung.",
]


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("a-b", "a ##AT##-##AT## b"),
        # Left to right without overlap: b is used up when the second hyphen comes.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-bc-d", "a ##AT##-##AT## bc ##AT##-##AT## d"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("Nord- und Süd-", "Nord- und Süd-"),
        ("a–b", "a–b"),  # a dash is no hyphen
        ("", ""),
    ],
)
def test_compounds_are_split_as_drawn(line, split):
    assert split_compounds(line) == split


def test_tokens_come_before_compounds_and_on_both_sides():
    at = "##AT##-##AT##"
    one = f"Der rot {at} weiße Hund {{}} auf der A {at} Z-Straße , sagt er."
    two = "Ein Mann im {} liest – wie immer - {} Zeitung."
    ours = [one.format("saß"), two.format("Shirt", "die")]
    theirs = [one.format("sitzt"), two.format(f"T {at} Shirt", "eine")]
    tokenize = methodcaller("replace", ",", " ,")
    found = paper_bleu(HYPOTHESES, REFERENCES, tokenize=tokenize)
    wanted = sacrebleu.corpus_bleu(ours, [theirs], tokenize="none", force=True).score
    assert found["score"] == wanted
    assert 0 < wanted < 100


def test_the_paper_s_figure_is_above_sacrebleu_s_where_compounds_are():
    pytest.importorskip("sacremoses", reason="the extra `paper` is not installed")
    found = paper_bleu(HYPOTHESES, REFERENCES, tokenize=moses_tokenizer("de"))
    assert found["score"] > corpus_scores(HYPOTHESES, REFERENCES)["bleu"] + 1
