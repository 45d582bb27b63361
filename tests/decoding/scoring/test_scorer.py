import dataclasses
import logging
import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring.scorer import Scorer
from t2t_jax.errors import DataError, UserError
from t2t_jax.model.transformer import Transformer
from tests.decoding.words import Numbers, numbers
from tests.model.tiny import TINY, tiny_params
from tests.reference import paper

CONFIG = DecodingConfig(max_source_length=16, max_extra_tokens=5, tokens_per_batch=84)
V = 29


VOCABULARIES = VocabularyPair(Numbers(), Numbers())


@pytest.fixture(scope="module")
def scorer():
    return Scorer(
        Transformer(TINY).apply, {"params": tiny_params()}, VOCABULARIES, CONFIG
    )


def by_hand(source, target):
    """Section 3 in NumPy: the log-probability of each token of one pair."""
    source, target = Numbers().encode([source, target])
    logits_TxV = paper.transformer([*source, 2], [1, *target], tiny_params())
    return [
        math.log(paper.softmax(logits)[token])
        for logits, token in zip(logits_TxV, [*target, 2], strict=True)
    ]


# --- what a score is


def test_a_pair_is_scored_as_section_3_written_in_numpy_says(scorer):
    (found,) = scorer.scores(["5 7 11"], ["8 9 28 10"])
    expected = by_hand("5 7 11", "8 9 28 10")
    assert found.tokens == ("<8>", "<9>", "<28>", "<10>", "</s>")
    # float32 logits of about 10
    assert_allclose(found.token_log_probabilities, expected, atol=1e-5)
    assert found.num_tokens == 5
    assert math.isclose(found.log_probability, sum(expected), abs_tol=5e-5)
    assert math.isclose(found.per_token, found.log_probability / 5)
    for how, penalty in (("paper", (10 / 6) ** 0.6), ("power", 5**0.6)):
        config = dataclasses.replace(CONFIG, length_normalization=how)
        again = dataclasses.replace(scorer, config=config)
        (same,) = again.scores(["5 7 11"], ["8 9 28 10"])
        assert math.isclose(same.score, found.log_probability / penalty, rel_tol=1e-6)


@pytest.mark.parametrize(("source", "target"), [("5 7", ""), ("", "8 9"), ("", "")])
def test_an_empty_side_is_its_eos_alone(scorer, source, target):
    (found,) = scorer.scores([source], [target])
    assert found.tokens[-1] == "</s>"
    assert_allclose(found.token_log_probabilities, by_hand(source, target), atol=1e-5)


# --- any number of pairs


def test_every_pair_is_scored_in_its_place_whatever_is_around_it(scorer):
    sources, targets = numbers(23), numbers(23, seed=1)
    together = scorer.scores(sources, targets)
    assert len(together) == 23
    order = np.random.default_rng(3).permutation(23)[:19]
    shuffled = scorer.scores([sources[n] for n in order], [targets[n] for n in order])
    for place, number in enumerate(order):
        found, other = together[number], shuffled[place]
        words = Numbers().encode([targets[number]])[0]
        assert found.tokens == other.tokens == tuple(Numbers().pieces([*words, 2]))
        # float32 in batches of other shapes
        assert math.isclose(found.log_probability, other.log_probability, rel_tol=1e-5)
    assert len({score.log_probability for score in together}) > 20


def test_batches_and_new_weights_compile_nothing_new():
    shapes = []

    def apply(weight, source_BxS, target_inputs_BxT):
        shapes.append(source_BxS.shape)
        return jnp.broadcast_to(weight, (*target_inputs_BxT.shape, V))

    for seed in range(4):
        scorer = Scorer(apply, jnp.full((1, 1, V), float(seed)), VOCABULARIES, CONFIG)
        found = scorer.scores(numbers(31, seed=seed), numbers(31, seed=seed))
        assert_allclose(found[0].per_token, -math.log(V), rtol=1e-6)
    assert shapes == [(5, 16)]


# --- length


def test_long_sources_are_cut_as_in_translating_and_one_warning_counts(scorer, caplog):
    sources = ["5 " * 15, "7 " * 16, "11", "13 " * 40]
    with caplog.at_level(logging.WARNING):
        found = scorer.scores(sources, ["8 9"] * 4)
    assert [score.source_cut for score in found] == [False, True, False, True]
    (cut,) = scorer.scores(["13 " * 15], ["8 9"])
    assert math.isclose(cut.log_probability, found[3].log_probability, rel_tol=1e-5)
    (record,) = caplog.records
    assert "2 of 4 sources that were longer than 15" in record.getMessage()


def test_a_target_is_never_cut(scorer):
    long = " ".join(["8 9 10"] * 50)
    short, whole = scorer.scores(["5", "5"], ["8 9 10 8 9", long])
    assert whole.num_tokens == 151
    # A token depends on those before it alone.
    assert_allclose(
        whole.token_log_probabilities[:5],
        short.token_log_probabilities[:5],
        atol=1e-5,  # float32 in batches of other shapes
    )


def test_what_is_longer_than_the_learned_positions_is_named_all_at_once():
    config = dataclasses.replace(TINY, positions="learned", max_positions=13)
    module, params = Transformer(config), tiny_params(config)
    scorer = Scorer(
        module.apply, {"params": params}, VOCABULARIES, CONFIG, max_length=13
    )
    (found,) = scorer.scores(["5 " * 12], ["7 " * 12])
    assert math.isfinite(found.score)
    with pytest.raises(DataError) as caught:
        scorer.scores(["5", "5", "5 " * 14], ["7", "7 " * 13, "7"])
    target, source = caught.value.problems
    assert "Line 2: the target must have at most 13 tokens" in target
    assert "Line 3: the source" in source


# --- mistakes


def test_as_many_sources_as_targets_are_needed(scorer):
    with pytest.raises(UserError, match="there are 2 sources and 1 targets"):
        scorer.scores(["5", "5"], ["7"])


@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_scores_that_are_no_numbers_are_an_error_that_names_the_line(broken):
    def apply(variables, source_BxS, target_inputs_BxT):
        damaged_Bx1x1 = (source_BxS == 9).any(axis=1)[:, None, None]
        here = damaged_Bx1x1 & (jnp.arange(V)[None, None] == 2)
        return jnp.where(here, broken, jnp.zeros((*target_inputs_BxT.shape, V)))

    scorer = Scorer(apply, {}, VOCABULARIES, CONFIG)
    with pytest.raises(DataError, match=f"line 2 must be a finite .* is {broken}"):
        scorer.scores(["5 6 7", "9", "5"], ["5 6 7", "8", "5"])


def test_an_id_beyond_the_model_is_no_silent_number(scorer):
    # A vocabulary that is not the model's.
    with pytest.raises(DataError, match="line 1 must be a finite number"):
        scorer.scores(["5"], [f"{V}"])
