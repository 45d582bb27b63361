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
    best,
    exhaustive_search,
    lattice,
    next_log_probabilities,
    outputs,
    penalty,
    plain_search,
    recurrent,
    search,
    slow_beam_search,
    slow_shrinking_search,
)
from tests.reference.greedy import greedy_search

A, B, C, D, E = 4, 5, 6, 7, 8
V = 11


@pytest.mark.parametrize(
    ("alpha", "normalization"),
    [
        *[(0.0, "paper"), (0.6, "paper"), (1.7, "paper")],
        *[(0.6, "power"), (1.0, "power"), (1.7, "power")],
    ],
)
def test_with_enough_beams_the_search_is_exhaustive(alpha, normalization):
    vocabulary, limit, asked = 6, 4, 3
    beams = vocabulary ** (limit - 1)
    for seed in range(8):
        model = recurrent(seed, vocabulary, eos_bias=(seed % 4) - 2.0)
        source = (4, 5, EOS)
        result = search(
            model,
            jnp.asarray([source]),
            beam_size=beams,
            length_penalty=alpha,
            length_normalization=normalization,
            max_extra_tokens=limit - 2,
            n_best=asked,
        )
        truth = exhaustive_search(
            model,
            source,
            vocabulary=vocabulary,
            limit=limit,
            alpha=alpha,
            normalization=normalization,
        )
        expected = list(truth.items())[:asked]
        found = [best(result, rank=rank) for rank in range(asked)]
        assert found == [tokens for tokens, _ in expected]
        # float32 sums of 4 logarithms
        scores = [score for _, score in expected]
        np.testing.assert_allclose(result.scores_BxW[0], scores, rtol=1e-5)


@pytest.mark.parametrize(
    ("vocabulary", "eos_bias", "normalization"),
    [(11, -1.0, "paper"), (1409, 6.0, "paper"), (11, -1.0, "power")],
)
def test_the_search_follows_its_rules_step_by_step(vocabulary, eos_bias, normalization):
    """1409 is more blocks than the top-k looks into, the last of them ragged."""
    outcomes = set()
    for seed in range(12):
        alpha = (0.0, 0.6, 1.3)[seed % 3]
        model = recurrent(seed, vocabulary, eos_bias=eos_bias + seed % 4)
        source = (7, 4, 9, EOS)
        result = search(
            model,
            jnp.asarray([source]),
            beam_size=3,
            length_penalty=alpha,
            length_normalization=normalization,
            max_extra_tokens=4,
        )
        tokens, score, finished = slow_beam_search(
            model, source, beams=3, limit=7, alpha=alpha, normalization=normalization
        )
        assert best(result) == tokens
        np.testing.assert_allclose(result.scores_BxW[0, 0], score, rtol=1e-5)
        assert bool(result.finished_BxW[0, 0]) is finished
        outcomes.add((len(tokens), finished))
    assert len(outcomes) > 3, "the models are too much alike to prove anything"


@pytest.mark.parametrize(("beams", "n_best"), [(1, 1), (3, 1), (4, 4)])
def test_a_shrinking_beam_follows_marians_rules_step_by_step(beams, n_best):
    lengths, num_ended = set(), 0
    for seed in range(12):
        alpha = (0.0, 0.6, 1.3)[seed % 3]
        model = recurrent(seed, V, eos_bias=seed % 5 - 1.0)
        model = model.replace(bias=model.bias.at[UNK].set(1.0))
        source = (7, 4, 9, EOS)
        result = search(
            model,
            jnp.asarray([source]),
            beam_size=beams,
            beam_rule="shrinking",
            length_penalty=alpha,
            length_normalization="power",
            max_extra_tokens=50,
            max_length_ratio=1.6,
            allow_unk=False,
            n_best=n_best,
        )
        truth = slow_shrinking_search(
            model, source, beams=beams, limit=7, alpha=alpha, never=(PAD, BOS, UNK)
        )
        assert len(truth) == beams
        for rank, (tokens, score, ended) in enumerate(truth[:n_best]):
            assert best(result, rank=rank) == tokens
            # float32 sums of at most 7 logarithms, some near 0
            np.testing.assert_allclose(
                result.scores_BxW[0, rank], score, rtol=1e-5, atol=5e-6
            )
            assert bool(result.finished_BxW[0, rank]) is ended
            lengths.add(len(tokens))
            num_ended += ended
    assert len(lengths) > 2, "the models are too much alike to prove anything"
    assert 0 < num_ended < 12 * n_best


def test_a_score_is_the_models_own_probability_of_the_tokens():
    # Normalised over all V, although pad and bos, here likely, are never said.
    model = recurrent(3, V)
    model = model.replace(bias=model.bias.at[PAD].set(1.5).at[BOS].set(2.5))
    source = jnp.asarray([[4, 9, 8, EOS], [7, 5, EOS, PAD], [6, EOS, PAD, PAD]])
    result = search(model, source, beam_size=3, n_best=3, max_extra_tokens=3)
    for sentence in range(3):
        for rank in range(3):
            tokens = best(result, sentence, rank)
            assert not {PAD, BOS} & set(tokens)
            read = source[sentence].tolist()
            total = sum(
                next_log_probabilities(model, read, [tokens[:n]])[0, token]
                for n, token in enumerate(tokens)
            )
            found = result.log_probabilities_BxW[sentence, rank]
            np.testing.assert_allclose(found, total, rtol=1e-5)
            score = total / penalty(len(tokens), 0.6)
            np.testing.assert_allclose(
                result.scores_BxW[sentence, rank], score, rtol=1e-5
            )


def test_vmap_and_jit_change_nothing():
    model = recurrent(5, V, eos_bias=1.0)
    source_GxBxS = jnp.asarray(np.random.default_rng(2).integers(3, V, (2, 3, 5)))

    def plain(source_BxS):
        return plain_search(model, source_BxS, beam_size=3, max_extra_tokens=2)

    mapped = jax.vmap(plain)(source_GxBxS)
    compiled = jax.jit(plain)
    for group in range(2):
        alone = compiled(source_GxBxS[group])
        in_group = jax.tree.map(lambda leaf, group=group: leaf[group], mapped)
        np.testing.assert_array_equal(in_group.tokens_BxWxT, alone.tokens_BxWxT)
        # float32 sums in another order
        np.testing.assert_allclose(in_group.scores_BxW, alone.scores_BxW, rtol=1e-5)
    as_it_comes = plain(source_GxBxS[1])
    np.testing.assert_array_equal(as_it_comes.tokens_BxWxT, alone.tokens_BxWxT)
    np.testing.assert_allclose(as_it_comes.scores_BxW, alone.scores_BxW, rtol=1e-5)


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


def test_an_eos_that_is_second_best_ends_nothing_in_a_beam_of_one():
    # Half of .6 is less than .4: a search with two beams would say eos at once.
    tempting = lattice({(): {4: 0.6, EOS: 0.4}, (4,): {5: 0.5, 6: 0.3, UNK: 0.2}}, V)
    result = greedy_search(tempting, jnp.asarray([[UNK, EOS]]))
    assert result.tokens_BxT[0, :4].tolist() == [4, 5, EOS, PAD]
