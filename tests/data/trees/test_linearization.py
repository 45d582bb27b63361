import random

import pytest

from t2t_jax.data.trees.linearization import delinearize, linearize, repair
from t2t_jax.data.trees.tree import MAX_DEPTH, normalize, read_tree, with_words
from tests.data.trees.test_tree import sample_trees


@pytest.mark.parametrize("tags", [False, True])
def test_every_tree_comes_back(tags):
    for tree in map(normalize, sample_trees()):
        words = tree.words()
        symbols = linearize(tree, tags=tags)
        expected = tree if tags else with_words(tree, words, ["XX"] * len(words))
        assert delinearize(symbols, words) == expected
        assert repair(symbols, words) == (expected, False)


def test_tags_stand_for_words():
    tree = read_tree("(S (NP (PRP We)) (VP (VBP sleep)) (. .))")
    found = " ".join(linearize(tree, tags=True))
    assert found == "(S (NP PRP )NP (VP VBP )VP . )S"
    with pytest.raises(ValueError, match="must not begin with a bracket"):
        linearize(normalize(read_tree("(S (NN a))"))._replace(children=(bracket(),)))


def bracket():
    return read_tree("(NN a)")._replace(label="(")


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ("", "0 of 2 words"),
        ("(S XX XX", r"\(S is not closed"),
        ("(S XX XX )NP", r"\)NP closes \(S"),
        ("(S XX )S", "1 of 2 words"),
        ("(S XX XX XX )S", "more than the 2 words"),
        ("(S XX (NP )NP XX )S", r"\(NP is empty"),
        ("(S XX XX )S )S", r"\)S closes nothing"),
        ("(S XX XX )S (S XX )S", r"\(S after the end"),
        ("XX XX", "the word XX is outside"),
    ],
)
def test_what_is_not_one_balanced_tree_is_refused(symbols, message):
    with pytest.raises(ValueError, match=message):
        delinearize(symbols.split(), ["a", "b"])


@pytest.mark.parametrize(
    ("symbols", "mended"),
    [
        ("", "(S (XX a) (XX b))"),
        ("(S XX XX", "(S (XX a) (XX b))"),
        ("(S (NP XX )VP XX )S", "(S (NP (XX a)) (XX b))"),
        ("(S XX )S", "(S (S (XX a)) (XX b))"),
        ("(S XX XX XX NN )S", "(S (XX a) (XX b))"),
        ("(S XX (NP )NP XX )S", "(S (XX a) (XX b))"),
        (")S )S (NP NN )NP XX", "(S (NP (NN a)) (XX b))"),
        ("(NP XX )NP (VP XX )VP", "(S (NP (XX a)) (VP (XX b)))"),
        ("(A (B (C", "(A (B (C (XX a) (XX b))))"),
    ],
)
def test_repair_follows_its_rule(symbols, mended):
    tree, was_mended = repair(symbols.split(), ["a", "b"])
    assert (str(tree), was_mended) == (mended, True)


def test_whatever_the_symbols_the_words_are_kept():
    rng = random.Random(7)
    symbols = ["(S", ")S", "(NP", ")NP", "XX", "NN"]
    for _ in range(500):
        words = [f"w{number}" for number in range(rng.randint(1, 7))]
        tree, _ = repair(rng.choices(symbols, k=rng.randint(0, 30)), words)
        assert tree.words() == words
        assert read_tree(str(tree)) == tree


@pytest.mark.parametrize("closed", [0, 600])
def test_however_many_constituents_are_opened_the_tree_can_be_written_and_read(closed):
    symbols = ["(S", *["(NP"] * 600, "XX", *[")NP"] * closed, *[")S"] * bool(closed)]
    tree, mended = repair(symbols, ["We"])
    assert mended
    assert tree.words() == ["We"]
    assert read_tree(str(tree)) == tree
    assert str(tree).count("(NP") == MAX_DEPTH - 3
