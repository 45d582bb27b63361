import pytest

from t2t_jax.evaluation.bracketing.parameters import STANDARD, Parameters
from t2t_jax.evaluation.bracketing.scoring import (
    Status,
    score_corpus,
    score_sentence,
    summarize,
)

GOLD = "(S (NP (DT the) (NN cat)) (VP (VBZ eats) (NP (NN fish))) (. .))"
CROSSING = "(S (DT the) (X (NN cat) (VBZ eats)) (NP (NN fish)) (. .))"


def counts(test, gold=GOLD, parameters=STANDARD):
    score = score_sentence(gold, test, parameters)
    assert score.status == Status.VALID, score.error
    brackets = (score.matched, score.gold_brackets, score.test_brackets)
    return (*brackets, score.crossing, score.correct_tags, score.words)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (GOLD, (4, 4, 4, 0, 4, 4)),
        # Another label: its bracket is in neither.
        (GOLD.replace("(VP", "(NP"), (3, 4, 4, 0, 4, 4)),
        # Functions and indices do not count, nor does the root.
        (f"(ROOT {GOLD.replace('(NP (DT', '(NP-SBJ-1 (DT')})", (4, 4, 4, 0, 4, 4)),
        # "cat eats" crosses the subject and the predicate.
        (CROSSING, (2, 4, 3, 1, 4, 4)),
        # A bracket twice matches one of gold.
        (GOLD.replace("(NP (NN fish))", "(NP (NP (NN fish)))"), (4, 4, 5, 0, 4, 4)),
        (GOLD.replace("(VBZ eats)", "(NNS eats)"), (4, 4, 4, 0, 3, 4)),
        # Punctuation counts neither as a word nor for the span.
        (f"(S {GOLD.replace(' (. .)', '')} (. .))", (4, 4, 5, 0, 4, 4)),
        ("(S (DT the) (NN cat) (VBZ eats) (NN fish) (. .))", (1, 4, 1, 0, 4, 4)),
    ],
)
def test_counts_are_those_drawn_by_hand(test, expected):
    assert counts(test) == expected


def test_equal_words():
    parameters = Parameters(equal_words=(("'s", "is"),))
    gold, test = "(S (VBZ 's))", "(S (VBZ is))"
    assert counts(test, gold, parameters)[0] == 1
    assert score_sentence(gold, test).status == Status.ERROR


def test_a_quote_that_one_tree_lost_is_put_back():
    """As a possessive in gold, as a quotation mark, which is deleted, in the parse."""
    gold = "(S (NP (NP (NNS boys) (POS ')) (NN boat)) (VP (VBZ sinks)))"
    test = "(S (NP (NP (NNS boys) ('' ')) (NN boat)) (VP (VBZ sinks)))"
    assert counts(test, gold) == (4, 4, 4, 0, 3, 4)
    assert counts(gold, test) == (4, 4, 4, 0, 3, 4)
    strict = Parameters(deleted=("''",))
    assert score_sentence(gold, test, strict).error == "3 words in place of 4"


@pytest.mark.parametrize(
    ("test", "status", "error"),
    [
        ("", Status.SKIPPED, "the parse has no words"),
        ("(S (NN a))", Status.ERROR, "1 words in place of 4"),
        (GOLD.replace("cat", "dog"), Status.ERROR, "the word 'dog' in place of 'cat'"),
        (GOLD[:-1], Status.ERROR, "1 brackets are not closed"),
        (f"{GOLD} word", Status.ERROR, "'w' is outside of all brackets"),
    ],
)
def test_a_sentence_that_cannot_be_compared_does_not_count(test, status, error):
    score = score_sentence(GOLD, test)
    assert (score.status, score.error) == (status, error)
    found = summarize([score, score_sentence(GOLD, GOLD)])
    assert (found["valid"], found["sentences"], found["f1"]) == (1, 2, 100.0)
    assert found["errors"] + found["skipped"] == 1


def test_a_summary_sums_counts_and_rounds_once():
    found = summarize(score_corpus([GOLD, GOLD, GOLD], [GOLD, CROSSING, CROSSING]))
    # 8 of 12 gold brackets, of 10 in the parses.
    assert (found["recall"], found["precision"]) == (66.67, 80.0)
    assert found["f1"] == 72.73
    assert (found["complete_match"], found["average_crossing"]) == (33.33, 0.67)
    assert (found["no_crossing"], found["two_or_less_crossing"]) == (33.33, 100.0)
    assert found["tagging_accuracy"] == 100.0
