import math

import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.errors import UserError
from tests.decoding.models import EOS, PAD, UNK, best, lattice, plain_search, search

A, B, C, D, E = 4, 5, 6, 7, 8
V = 11


def one_sentence(subwords):
    return jnp.asarray([[UNK] * subwords + [EOS]])


# --- drawn truths


GARDEN_PATH = lattice(
    {
        (): {A: 0.6, B: 0.4},
        (A,): {C: 0.55, D: 0.45},
        (B,): {D: 1.0},
        (B, D): {E: 1.0},
        (A, C): {C: 1.0},
        (A, D): {A: 1.0},
    },
    V,
)


def test_a_beam_of_two_finds_what_a_beam_of_one_walks_past():
    one = search(GARDEN_PATH, one_sentence(3), beam_size=1, length_penalty=0.0)
    two = search(GARDEN_PATH, one_sentence(3), beam_size=2, length_penalty=0.0)
    assert best(one) == (A, C, C, EOS)
    np.testing.assert_allclose(one.scores_BxW, [[math.log(0.33)]], rtol=1e-6)
    # The beams change places on the way, so a cache left behind would say C, not E.
    assert best(two) == (B, D, E, EOS)
    np.testing.assert_allclose(two.scores_BxW, [[math.log(0.4)]], rtol=1e-6)


SHORT_OR_LONG = lattice(
    {
        (): {A: 0.5, B: 0.45, UNK: 0.05},
        (B,): {C: 1.0},
        (B, C): {D: 1.0},
    },
    V,
)


@pytest.mark.parametrize(
    ("alpha", "tokens", "score"),
    [
        (0.0, (A, EOS), math.log(0.5)),
        # log 0.45 / (9/6)^0.6 = -0.626 against log 0.5 / (7/6)^0.6 = -0.632. When the
        # short one ends, the long one stands at -0.728: to stop there would be wrong.
        (0.6, (B, C, D, EOS), math.log(0.45) / (9 / 6) ** 0.6),
    ],
)
def test_the_length_penalty_lets_the_longer_output_win(alpha, tokens, score):
    result = search(
        SHORT_OR_LONG, one_sentence(7), beam_size=3, length_penalty=alpha, n_best=1
    )
    assert best(result) == tokens
    np.testing.assert_allclose(result.scores_BxW, [[score]], rtol=1e-6)
    assert result.finished_BxW.tolist() == [[True]]


def test_both_outputs_come_in_the_order_of_their_scores():
    result = search(
        SHORT_OR_LONG, one_sentence(7), beam_size=3, length_penalty=0.6, n_best=2
    )
    assert best(result, rank=0) == (B, C, D, EOS)
    assert best(result, rank=1) == (A, EOS)
    assert result.lengths_BxW.tolist() == [[4, 2]]
    logs = np.log([[0.45, 0.5]])
    np.testing.assert_allclose(result.log_probabilities_BxW, logs, rtol=1e-6)


def test_the_beam_lives_on_when_its_two_best_candidates_end():
    # .30 A eos, .275 B eos, .225 B C, .20 A C: of the best two alone none would live.
    both_end = lattice(
        {(): {A: 0.5, B: 0.5}, (A,): {EOS: 0.6, C: 0.4}, (B,): {EOS: 0.55, C: 0.45}}, V
    )
    result = search(both_end, one_sentence(3), beam_size=2, length_penalty=2.0)
    assert best(result) == (B, C, EOS)
    expected = math.log(0.225) / (8 / 6) ** 2  # -0.839 against -0.885 of A eos
    np.testing.assert_allclose(result.scores_BxW, [[expected]], rtol=1e-6)


def test_an_eos_between_the_best_w_and_the_best_2w_is_finished():
    fan = dict.fromkeys((UNK, A, B, C), 0.25)
    dwindling = lattice({(): {A: 0.4, B: 0.35, EOS: 0.25}, (A,): fan, (B,): fan}, V)
    result = search(dwindling, one_sentence(3), beam_size=2, length_penalty=0.0)
    assert best(result) == (EOS,)
    np.testing.assert_allclose(result.scores_BxW, [[math.log(0.25)]], rtol=1e-6)


ENDLESS = lattice({(A,) * n: {A: 0.75, B: 0.25} for n in range(9)}, V)


def test_what_does_not_end_in_time_is_returned_as_truncated():
    never = lattice({(A,) * n: {A: 1.0} for n in range(9)}, V)
    result = search(never, one_sentence(2), beam_size=2, max_extra_tokens=3)
    assert best(result) == (A,) * 5
    assert result.finished_BxW.tolist() == [[False]]


def test_a_finished_output_goes_before_a_likelier_truncated_one():
    # After B comes eos, so B eos (.25) is finished while A A A A (.32) still lives.
    result = search(ENDLESS, one_sentence(2), beam_size=2, max_extra_tokens=2, n_best=2)
    assert best(result) == (B, EOS)
    assert result.finished_BxW.tolist() == [[True, True]]


def test_places_without_an_output_are_empty():
    certain = lattice({(): {A: 1.0}}, V)
    result = search(certain, one_sentence(2), beam_size=3, n_best=3)
    assert result.lengths_BxW.tolist() == [[2, 0, 0]]
    assert result.finished_BxW.tolist() == [[True, False, False]]
    assert np.all(np.asarray(result.tokens_BxWxT[0, 1:]) == PAD)


def test_a_row_of_pad_alone_says_nothing():
    source = jnp.asarray([[UNK, EOS], [PAD, PAD]])
    result = search(ENDLESS, source, beam_size=2, max_extra_tokens=2)
    assert result.lengths_BxW.tolist() == [[2], [0]]
    assert result.finished_BxW.tolist() == [[True], [False]]


def test_a_model_that_ends_at_once_says_only_eos():
    result = search(lattice({(): {EOS: 1.0}}, V), one_sentence(5))
    assert best(result) == (EOS,)
    np.testing.assert_array_equal(result.scores_BxW, [[0.0]])


# --- other toolkits' rules


@pytest.mark.parametrize(
    ("alpha", "tokens", "score"),
    [
        # log 0.45 / 4^0.1 = -0.695 against log 0.5 / 2^0.1 = -0.647
        (0.1, (A, EOS), math.log(0.5) / 2**0.1),
        # log 0.45 / 4^0.3 = -0.527 against log 0.5 / 2^0.3 = -0.563
        (0.3, (B, C, D, EOS), math.log(0.45) / 4**0.3),
        # alpha above 1: what ended early is -0.123, and B C, alive, bounded by -0.004
        (2.5, (B, C, D, EOS), math.log(0.45) / 4**2.5),
    ],
)
def test_the_power_of_the_length_decides_between_short_and_long(alpha, tokens, score):
    result = search(
        SHORT_OR_LONG,
        one_sentence(7),
        beam_size=3,
        length_penalty=alpha,
        length_normalization="power",
    )
    assert best(result) == tokens
    np.testing.assert_allclose(result.scores_BxW, [[score]], rtol=1e-6)


# A eos .42 is finished first; then B, alone in a beam of 2, goes on to B C, and not to
# B D, whose end would be the better one: .33 * .45 against .33 * .55 * .6.
NARROW = lattice(
    {
        (): {A: 0.42, B: 0.33, C: 0.25},
        (B,): {C: 0.55, D: 0.45},
        (B, C): {EOS: 0.6, A: 0.4},
    },
    V,
)


def test_each_finished_output_takes_a_place_of_a_shrinking_beam():
    rules = {"beam_size": 2, "length_penalty": 0.0, "n_best": 2}
    fixed = search(NARROW, one_sentence(5), **rules)
    assert [best(fixed, rank=rank) for rank in (0, 1)] == [(A, EOS), (B, D, EOS)]
    result = search(NARROW, one_sentence(5), beam_rule="shrinking", **rules)
    assert [best(result, rank=rank) for rank in (0, 1)] == [(A, EOS), (B, C, EOS)]
    logs = np.log([[0.42, 0.33 * 0.55 * 0.6]])
    np.testing.assert_allclose(result.scores_BxW, logs, rtol=1e-6)
    assert result.finished_BxW.tolist() == [[True, True]]


def test_a_shrinking_beam_of_one_is_greedy():
    one = search(
        GARDEN_PATH,
        one_sentence(3),
        beam_size=1,
        length_penalty=0.0,
        beam_rule="shrinking",
    )
    assert best(one) == (A, C, C, EOS)
    assert one.finished_BxW.tolist() == [[True]]


def test_at_the_limit_a_shrinking_beam_ranks_all_by_score():
    # As above: A A A A (.32) has no eos and goes before B eos (.25).
    result = search(
        ENDLESS,
        one_sentence(2),
        beam_size=2,
        length_penalty=0.0,
        max_extra_tokens=2,
        n_best=2,
        beam_rule="shrinking",
    )
    assert [best(result, rank=rank) for rank in (0, 1)] == [(A,) * 4, (B, EOS)]
    assert result.finished_BxW.tolist() == [[False, True]]


LIKELY_UNK = lattice({(): {UNK: 0.6, A: 0.3, B: 0.1}, (A,): {UNK: 0.9, C: 0.1}}, V)


@pytest.mark.parametrize("beam_rule", ["fixed", "shrinking"])
def test_unk_is_not_generated_where_it_is_not_allowed(beam_rule):
    rules = {"beam_size": 2, "length_penalty": 0.0, "beam_rule": beam_rule}
    assert best(search(LIKELY_UNK, one_sentence(3), **rules)) == (UNK, EOS)
    result = search(LIKELY_UNK, one_sentence(3), allow_unk=False, n_best=2, **rules)
    assert [best(result, rank=rank) for rank in (0, 1)] == [(B, EOS), (A, C, EOS)]
    # The others' probabilities are those over all V.
    np.testing.assert_allclose(result.scores_BxW, np.log([[0.1, 0.03]]), rtol=1e-6)


def test_what_is_never_generated_takes_no_place_among_the_best():
    # Pad, bos and unk are the best three; a beam of 1 needs two more.
    masked = lattice({(): {PAD: 0.2, 1: 0.2, UNK: 0.2, EOS: 0.21, A: 0.19}}, V)
    result = search(
        masked,
        one_sentence(3),
        beam_size=1,
        length_penalty=3.0,
        length_normalization="power",
        allow_unk=False,
    )
    assert best(result) == (A, EOS)  # log 0.19 / 2^3 = -0.21, log 0.21 = -1.56


def test_unk_is_forced_by_a_prefix_even_where_it_is_not_allowed():
    result = plain_search(
        LIKELY_UNK,
        jnp.asarray([[A, EOS, PAD], [A, B, EOS]]),
        beam_size=2,
        allow_unk=False,
        prefixes_BxP=jnp.asarray([[A, UNK], [A, PAD]]),
    )
    assert [best(result, sentence) for sentence in (0, 1)] == [
        (A, UNK, EOS),
        (A, C, EOS),
    ]


def test_no_output_is_longer_than_the_ratio_allows():
    never = lattice({(A,) * n: {A: 1.0} for n in range(9)}, V)
    source = jnp.asarray([[A, EOS, PAD, PAD], [A, A, A, EOS]])
    result = search(never, source, beam_size=2, max_length_ratio=1.5)
    assert result.tokens_BxWxT.shape[2] == 6
    assert result.lengths_BxW.tolist() == [[3], [6]]
    shorter = search(
        never, source, beam_size=2, max_length_ratio=1.5, max_extra_tokens=1
    )
    assert shorter.lengths_BxW.tolist() == [[2], [4]]


@pytest.mark.parametrize(
    ("source", "options", "named"),
    [
        (np.ones((2, 3)), {}, r"\[B, S\] whole numbers"),
        (np.ones(3, int), {}, r"\[B, S\] whole numbers"),
        (one_sentence(2), {"max_extra_tokens": -1}, "max_extra_tokens=-1 must be"),
        (one_sentence(2), {"max_length": 0}, "max_length=0 must be"),
    ],
)
def test_arguments_out_of_range_are_refused(source, options, named):
    with pytest.raises(UserError, match=named):
        plain_search(ENDLESS, source, **options)
