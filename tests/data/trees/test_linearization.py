import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from t2t_jax.data.corpora.tree_files import TreeCorpus, read_trees
from t2t_jax.data.trees.linearization import delinearize, linearize, read_parse, repair
from t2t_jax.data.trees.tree import MAX_DEPTH, read_tree, with_words
from t2t_jax.evaluation.bracketing.parameters import Parameters
from t2t_jax.evaluation.bracketing.scoring import read_spans
from tests.data.trees.sample import GOLD, SAMPLE

GUM = Path(os.environ.get("T2T_JAX_TEST_DATA", "missing"), "gum")


def treebank(name):
    if name == "sample":
        return SAMPLE, GOLD
    path = GUM / f"{name}.ptb.gz"
    if not path.exists():
        pytest.skip("T2T_JAX_TEST_DATA has no gum")
    return path, read_trees(path)


@pytest.mark.parametrize("symbols", ["XX", "tags", "numbers"])
@pytest.mark.parametrize(
    "name", ["sample", pytest.param("train", marks=pytest.mark.soak), "dev", "test"]
)
def test_every_tree_comes_back_as_it_was(name, symbols):
    """From the text of a corpus, which is what a model reads and is to write."""
    path, trees = treebank(name)
    pairs = TreeCorpus(f"trees:{path}", path, symbols)
    for tree, (source, target) in zip(trees, pairs, strict=True):
        words = tree.words()
        untagged = with_words(tree, words, ["XX"] * len(words))
        expected = tree if symbols == "tags" else untagged
        assert delinearize(target.split(), source.split()) == expected
        assert read_parse(source, target) == (expected, False)
        assert read_tree(str(expected)) == expected


def test_numbers_stand_for_words_and_any_is_read_as_the_next_word():
    tree = read_tree("(S (NP (PRP We)) (VP (VBP sleep)) (. .))")
    found = " ".join(linearize(tree, words="numbers"))
    assert found == "(S (NP 1 )NP (VP 2 )VP 3 )S"
    other = "(S (NP 4 )NP (VP 4 )VP 9 )S"
    assert read_parse("We sleep .", other) == read_parse("We sleep .", found)
    assert str(read_parse("We sleep", "(S 1 (VP").tree) == "(S (XX We) (XX sleep))"


@pytest.mark.parametrize(
    "line", ["(S (NN a\u00a0b))", "(S (NN \u2003a))", "(S (N\u00a0N a))"]
)
def test_a_space_that_is_none_in_brackets_is_refused_in_a_sentence(line):
    tree = read_tree(line)
    words = [(leaf.label, leaf.children[0]) for leaf in tree.leaves()]
    assert read_spans(line, Parameters()).words == words
    with pytest.raises(ValueError, match="must not have a space in it"):
        linearize(tree)


@pytest.mark.parametrize(
    ("symbols", "mended"),
    [
        ("", "(S (XX a) (XX b))"),
        ("XX XX", "(S (XX a) (XX b))"),
        ("(S XX XX", "(S (XX a) (XX b))"),
        ("(S (NP XX )VP XX )S", "(S (NP (XX a)) (XX b))"),
        ("(S XX )S", "(S (S (XX a)) (XX b))"),
        ("(S XX XX )S )S", "(S (XX a) (XX b))"),
        ("(S XX XX XX NN )S", "(S (XX a) (XX b))"),
        ("(S XX (NP )NP XX )S", "(S (XX a) (XX b))"),
        (")S )S (NP NN )NP XX", "(S (NP (NN a)) (XX b))"),
        ("(NP XX )NP (VP XX )VP", "(S (NP (XX a)) (VP (XX b)))"),
        ("(A (B (C", "(S (XX a) (XX b))"),
        ("(A (B XX (C (D )D (E", "(A (B (XX a) (XX b)))"),
        ("(A XX (B NN (C (D", "(A (XX a) (B (NN b)))"),
    ],
)
def test_what_is_not_one_balanced_tree_is_refused_or_repaired_by_rule(symbols, mended):
    with pytest.raises(ValueError, match="is not one balanced tree over 2 words"):
        delinearize(symbols.split(), ["a", "b"])
    tree, was_mended = repair(symbols.split(), ["a", "b"])
    assert (str(tree), was_mended) == (mended, True)


SYMBOLS = st.sampled_from(["(S", ")S", "(NP", ")NP", "(VP", ")VP", "XX", "NN"])


@given(st.lists(SYMBOLS, max_size=40), st.integers(min_value=1, max_value=9))
@example(["(S", "XX", "(NP", "(VP"], 3)
def test_whatever_the_symbols_it_is_one_tree_over_the_words(symbols, count):
    words = [f"w{number}" for number in range(count)]
    tree, was_mended = repair(symbols, words)
    assert tree.words() == words
    assert not tree.is_word
    assert all(constituent.words() for constituent in constituents(tree))
    assert delinearize(linearize(tree, words="tags"), words) == tree
    assert read_tree(str(tree)) == tree
    assert repair(list(symbols), tuple(words)) == (tree, was_mended)
    assert was_mended == (linearize(tree, words="tags") != symbols)


def constituents(tree):
    yield tree
    for child in tree.subtrees():
        yield from constituents(child)


@pytest.mark.parametrize("closed", [0, 600])
def test_however_many_constituents_are_opened_the_tree_can_be_written_and_read(closed):
    symbols = ["(S", *["(NP"] * 600, "XX", *[")NP"] * closed, *[")S"] * bool(closed)]
    tree, mended = repair(symbols, ["We"])
    assert mended
    assert tree.words() == ["We"]
    assert read_tree(str(tree)) == tree
    assert str(tree).count("(NP") == MAX_DEPTH - 3
