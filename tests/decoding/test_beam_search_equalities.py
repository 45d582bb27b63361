import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.search.static_params import SpecialIds
from tests.decoding.models import (
    BOS,
    EOS,
    PAD,
    UNK,
    lattice,
    outputs,
    plain_search,
    recurrent,
    require_exhaustive,
    score_of,
    search,
    slow_beam_search,
    slow_shrinking_search,
)
from tests.reference.greedy import greedy_search

A, V = 4, 11
SOURCE_S = (7, 4, 9, EOS)
SOURCE_1xS = jnp.asarray([SOURCE_S])


@pytest.mark.parametrize(
    ("alpha", "normalization"), [(0.0, "paper"), (1.7, "paper"), (0.6, "power")]
)
def test_with_enough_beams_the_search_is_exhaustive(alpha, normalization):
    for seed in range(8):
        model = recurrent(seed, 6, eos_bias=(seed % 4) - 2.0)
        rules = {"alpha": alpha, "normalization": normalization}
        require_exhaustive(model, limit=4, beams=6**3, **rules)


def require_outputs(model, truth, **rules):
    """The best outputs are those of `truth`: [(tokens, score, ended)], best first."""
    result = search(model, SOURCE_1xS, n_best=len(truth), **rules)
    tokens, scores, ended = zip(*truth, strict=True)
    assert outputs(result)[0] == list(tokens)
    # float32 sums of at most 7 logarithms, some near 0
    np.testing.assert_allclose(result.scores_BxW[0], scores, rtol=1e-5, atol=5e-6)
    assert result.finished_BxW[0].tolist() == list(ended)
    return {(len(one), is_ended) for one, is_ended in zip(tokens, ended, strict=True)}


@pytest.mark.parametrize(
    ("vocabulary", "eos_bias", "normalization"),
    [(11, -1.0, "paper"), (1409, 6.0, "paper"), (11, -1.0, "power")],
)
def test_the_search_follows_its_rules_step_by_step(vocabulary, eos_bias, normalization):
    """1409 is more blocks than the top-k looks into, the last of them ragged."""
    outcomes = set()
    for seed, alpha in zip(range(12), 4 * (0.0, 0.6, 1.3), strict=True):
        model = recurrent(seed, vocabulary, eos_bias=eos_bias + seed % 4)
        rules = {"alpha": alpha, "normalization": normalization}
        truth = slow_beam_search(model, SOURCE_S, beams=3, limit=7, **rules)
        rules = {"length_penalty": alpha, "length_normalization": normalization}
        sizes = {"beam_size": 3, "max_extra_tokens": 4}
        outcomes |= require_outputs(model, [truth], **rules, **sizes)
    assert len(outcomes) > 3, "the models are too much alike to prove anything"


@pytest.mark.parametrize(("beams", "n_best"), [(1, 1), (3, 1), (4, 4)])
def test_a_shrinking_beam_follows_marians_rules_step_by_step(beams, n_best):
    marians = {"beam_rule": "shrinking", "length_normalization": "power"}
    marians |= {"allow_unk": False, "max_extra_tokens": 50, "max_length_ratio": 1.6}
    outcomes = set()
    for seed, alpha in zip(range(12), 4 * (0.0, 0.6, 1.3), strict=True):
        model = recurrent(seed, V, eos_bias=seed % 5 - 1.0)
        model = model.replace(bias=model.bias.at[UNK].set(1.0))
        rules = {"beams": beams, "limit": 7, "alpha": alpha}
        truth = slow_shrinking_search(model, SOURCE_S, never=(PAD, BOS, UNK), **rules)
        assert len(truth) == beams
        rules = {"beam_size": beams, "length_penalty": alpha, **marians}
        outcomes |= require_outputs(model, truth[:n_best], **rules)
    lengths, endings = map(set, zip(*outcomes, strict=True))
    assert len(lengths) > 2, "the models are too much alike to prove anything"
    assert endings == {True, False}


def test_a_score_is_the_models_own_probability_of_the_tokens():
    # Normalised over all V, although pad and bos, here likely, are never said.
    model = recurrent(3, V)
    model = model.replace(bias=model.bias.at[PAD].set(1.5).at[BOS].set(2.5))
    source = jnp.asarray([[4, 9, 8, EOS], [7, 5, EOS, PAD], [6, EOS, PAD, PAD]])
    result = search(model, source, beam_size=3, n_best=3, max_extra_tokens=3)
    for sentence, several in enumerate(outputs(result)):
        read = source[sentence].tolist()
        for alpha, found in (
            (0.0, result.log_probabilities_BxW[sentence]),
            (0.6, result.scores_BxW[sentence]),
        ):
            wanted = [score_of(model, read, one, alpha=alpha) for one in several]
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        assert not {PAD, BOS} & {token for tokens in several for token in tokens}


def test_another_models_special_ids_are_honoured():
    ids = SpecialIds(pad=9, bos=0, eos=1)
    spelled = lattice({(): {A: 1.0}, (A,): {1: 1.0}}, V)
    result = plain_search(spelled, jnp.asarray([[5, 6, 9]]), beam_size=2, ids=ids)
    assert result.tokens_BxWxT[0, 0, :4].tolist() == [A, 1, 9, 9]
    assert result.lengths_BxW.tolist() == [[2]]


@pytest.mark.parametrize("beam_rule", ["fixed", "shrinking"])
def test_a_sentence_does_not_notice_its_neighbours(beam_rule):
    model = recurrent(8, V, eos_bias=1.0)
    source = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [9, 6, EOS, PAD]])
    rules = {"beam_size": 3, "n_best": 3, "beam_rule": beam_rule}
    together = search(model, source, **rules)
    for sentence in range(3):
        alone = search(model, source[sentence : sentence + 1], **rules)
        assert outputs(together)[sentence] == outputs(alone)[0]
        np.testing.assert_allclose(
            together.scores_BxW[sentence], alone.scores_BxW[0], rtol=1e-5
        )


def test_a_beam_of_one_without_penalty_is_greedy():
    source = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [PAD] * 4])
    greedy = jax.jit(lambda model: greedy_search(model, source, max_extra_tokens=9))
    endings = set()
    for seed in range(10):
        model = recurrent(seed, 13, eos_bias=seed % 5 - 1.0)
        one = greedy(model)
        two = search(model, source, beam_size=1, length_penalty=0.0, max_extra_tokens=9)
        np.testing.assert_array_equal(one.tokens_BxT, two.tokens_BxWxT[:, 0])
        np.testing.assert_array_equal(one.finished_B, two.finished_BxW[:, 0])
        np.testing.assert_allclose(
            one.log_probabilities_B,
            two.log_probabilities_BxW[:, 0],
            rtol=1e-5,  # float32 sums of 12 logarithms
            atol=1e-6,
        )
        endings |= set(one.finished_B.tolist())
    assert endings == {True, False}
