import pytest

from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.data.trees.linearization import WORD_SYMBOLS, Parse, linearize, read_parse
from t2t_jax.data.trees.tree import read_tree, with_words
from t2t_jax.evaluation.bracketing import right_branching
from t2t_jax.evaluation.bracketing.parameters import STANDARD
from t2t_jax.evaluation.bracketing.parses import (
    bracket_intervals,
    development_scores,
    parsing_scores,
    score_parses,
)
from t2t_jax.evaluation.bracketing.scoring import (
    score_corpus,
    score_sentence,
    summarize,
)
from tests.data.trees.sample import GOLD

SOURCES = [" ".join(tree.words()) for tree in GOLD]


def outputs(words, trees=GOLD):
    return [" ".join(linearize(tree, words=words)) for tree in trees]


def branching():
    return [right_branching.right_branching(list(tree.leaves())) for tree in GOLD]


@pytest.mark.parametrize("words", WORD_SYMBOLS)
def test_the_gold_trees_have_100(words):
    parses = [read_parse(*pair) for pair in zip(SOURCES, outputs(words), strict=True)]
    found = parsing_scores(GOLD, parses)
    assert found["f1"] == found["complete_match"] == found["short"]["f1"] == 100
    assert found["tagging_accuracy"] == (100 if words == "tags" else None)
    assert (found["repaired"], found["errors"], found["valid"]) == (0, 0, 40)
    assert found["intervals"]["f1"] == {"mean": 100, "half_width": 0}
    wrong = score_sentence("(S (NN a) (NN b))", "(S (NN a))")
    of_valid = [bracket_intervals(some) for some in ([wrong], [])]
    assert of_valid[0] == of_valid[1]


def test_with_gold_tags_the_scores_are_those_of_evalbs_rules_on_the_lines():
    trees = branching()
    lines = score_corpus(map(str, GOLD), map(str, trees))
    assert summarize(lines) == summarize(score_parses(GOLD, trees))
    found = parsing_scores(GOLD, [Parse(tree, False) for tree in trees])
    assert summarize(lines).items() <= found.items()
    assert 0 < found["f1"] < 100


def test_wrong_tags_of_punctuation_make_no_errors_and_count_as_tags():
    wrong = [with_words(t, t.words(), ["NN"] * len(t.words())) for t in GOLD]
    assert summarize(score_corpus(map(str, GOLD), map(str, wrong)))["errors"] > 20
    found = parsing_scores(GOLD, [Parse(tree, False) for tree in wrong])
    tags = [leaf.label for tree in GOLD for leaf in tree.leaves()]
    counted = [tag for tag in tags if tag not in STANDARD.deleted]
    assert (found["errors"], found["f1"], found["words"]) == (0, 100, len(counted))
    assert found["correct_tags"] == counted.count("NN")


def test_a_development_set_is_scored_from_its_lines():
    gold = outputs("tags")
    found = development_scores(SOURCES, outputs("tags", branching()), gold)
    scores = summarize(score_parses(GOLD, branching()))
    expected = {name: scores[name] for name in ("f1", "precision", "recall")}
    assert found == {**expected, "repaired": 0}
    assert development_scores(SOURCES, [""] * 40, gold)["repaired"] == 40


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", False),
        ("trees:a.mrg[:9]", True),
        ("2*trees:a,b#tags++trees:c", True),
        ("trees:a++text:a,b", False),
    ],
)
def test_a_corpus_of_trees_is_known_by_its_spec(spec, expected):
    assert reads_trees(spec) == expected


@pytest.mark.parametrize(
    ("sentence", "tree"),
    [
        ("a", "(S (XX a))"),
        ("a .", "(S (XX a) (XX .))"),
        ("a b c d !", "(S (XX a) (NP (XX b) (NP (XX c) (XX d))) (XX !))"),
        (".", "(S (XX .))"),
    ],
)
def test_right_branching_trees(sentence, tree):
    flat = read_tree(f"(X {' '.join(f'(XX {word})' for word in sentence.split())})")
    found = right_branching.right_branching(list(flat.leaves()), label="NP")
    assert str(found) == tree
