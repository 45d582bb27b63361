import re

import pytest

from t2t_jax.data.trees.tree import draw_tree, normalize, read_tree
from tests.data.trees.sample import GOLD, sample_trees


def test_trees_of_several_lines_are_read():
    trees = sample_trees()
    assert len(trees) == 40
    assert " ".join(trees[3].words()) == "Mara wanted *-1 to paint the shed ."


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("(ROOT (S (VP (VB Go))))", "(S (VP (VB Go)))"),
        ("(TOP (NN a) (NN b))", "(TOP (NN a) (NN b))"),
        ("( (NN a))", "(X (NN a))"),
        ("(S (NP-SBJ-1 (-NONE- *)) (VP-2 (VB Go)))", "(S (VP (VB Go)))"),
        ("(PRN (-LRB- -LRB-) (NP=3 (CD 7)))", "(PRN (-LRB- -LRB-) (NP (CD 7)))"),
        ("(S (NP|X (NN a)) (SYM -NONE-))", "(S (NP (NN a)) (SYM -NONE-))"),
        ("(PRP$ my)", "(PRP$ my)"),
    ],
)
def test_what_parsers_do_not_predict_is_removed(raw, kept):
    assert str(normalize(read_tree(raw))) == kept


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(S (NP (NN a))", "1 brackets are not closed"),
        ("(S (NN a)) )", r"'\)' is outside"),
        ("word", "'word' is outside"),
        ("(S (NP))", r"the bracket \(NP is empty"),
        ("(S (NN a b))", "'b' must have brackets of its own"),
        ("(A " * 201, "deeper than 200"),
        ("(A (B c)) (A (B c))", "must be one tree, and is 2"),
    ],
)
def test_what_is_not_a_tree_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        read_tree(line)


def test_every_constituent_and_word_has_a_line_in_order():
    for tree in GOLD:
        lines = [re.sub("^[ │├└─]*", "", line) for line in draw_tree(tree).split("\n")]
        assert lines == re.findall(r"[^() ]+(?: [^() ]+(?=\)))?", str(tree))
