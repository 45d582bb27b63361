"""Beam search over drawn trees, whose outputs and scores are worked out by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from tests.decoding.models import (
    EOS,
    PAD,
    UNK,
    best,
    lattice,
    outputs,
    search,
)

A, B, C, D, E = 4, 5, 6, 7, 8
V = 11


def one_sentence(subwords):
    return jnp.asarray([[UNK] * subwords + [EOS]])


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
SHORT_OR_LONG = lattice(
    {(): {A: 0.5, B: 0.45, UNK: 0.05}, (B,): {C: 1.0}, (B, C): {D: 1.0}}, V
)
BOTH_END = lattice(
    {(): {A: 0.5, B: 0.5}, (A,): {EOS: 0.6, C: 0.4}, (B,): {EOS: 0.55, C: 0.45}}, V
)
FAN = dict.fromkeys((UNK, A, B, C), 0.25)
DWINDLING = lattice({(): {A: 0.4, B: 0.35, EOS: 0.25}, (A,): FAN, (B,): FAN}, V)
ENDLESS = lattice({(A,) * n: {A: 0.75, B: 0.25} for n in range(9)}, V)
NEVER = lattice({(A,) * n: {A: 1.0} for n in range(9)}, V)
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
LIKELY_UNK = lattice({(): {UNK: 0.6, A: 0.3, B: 0.1}, (A,): {UNK: 0.9, C: 0.1}}, V)
# Pad, bos and unk are the best three; a beam of 1 needs two more.
MASKED = lattice({(): {PAD: 0.2, 1: 0.2, UNK: 0.2, EOS: 0.21, A: 0.19}}, V)

log = math.log
PLAIN = {"length_penalty": 0.0}
TWO = {"beam_size": 2, **PLAIN}
SHRINKING = {"beam_rule": "shrinking", **TWO}
NO_UNK = {"allow_unk": False, "n_best": 2}
LONG, SHORT = (B, C, D, EOS), (A, EOS)
GREEDY = {(A, C, C, EOS): log(0.33)}
OTHERS = {(B, EOS): log(0.1), (A, C, EOS): log(0.03)}


def power(alpha, beam_size=3, **rules):
    kind = {"length_normalization": "power", "length_penalty": alpha}
    return {**kind, "beam_size": beam_size, **rules}


@pytest.mark.parametrize(
    ("model", "subwords", "rules", "found"),
    [
        (GARDEN_PATH, 3, {"beam_size": 1, **PLAIN}, GREEDY),
        (GARDEN_PATH, 3, {**SHRINKING, "beam_size": 1}, GREEDY),
        # The beams change places on the way: a cache left behind would say C, not E.
        (GARDEN_PATH, 3, TWO, {(B, D, E, EOS): log(0.4)}),
        (SHORT_OR_LONG, 7, {"beam_size": 3, **PLAIN}, {SHORT: log(0.5)}),
        # -0.626 against -0.632. When the short one ends, the long one stands at -0.728:
        # to stop there would be wrong.
        (
            *(SHORT_OR_LONG, 7, {"beam_size": 3, "n_best": 2}),
            {LONG: log(0.45) / 1.5**0.6, SHORT: log(0.5) / (7 / 6) ** 0.6},
        ),
        # -0.647 against log 0.45 / 4^0.1 = -0.695
        (SHORT_OR_LONG, 7, power(0.1), {SHORT: log(0.5) / 2**0.1}),
        # -0.527 against log 0.5 / 2^0.3 = -0.563
        (SHORT_OR_LONG, 7, power(0.3), {LONG: log(0.45) / 4**0.3}),
        # What ended early is -0.123, and B C, alive, bounded by -0.004.
        (SHORT_OR_LONG, 7, power(2.5), {LONG: log(0.45) / 4**2.5}),
        # .30 A eos, .275 B eos, .225 B C, .20 A C: of the best two alone none would
        # live. -0.839 against -0.885 of A eos.
        (
            *(BOTH_END, 3, {"beam_size": 2, "length_penalty": 2.0}),
            {(B, C, EOS): log(0.225) / (8 / 6) ** 2},
        ),
        # An eos between the best W and the best 2W is finished.
        (DWINDLING, 3, TWO, {(EOS,): log(0.25)}),
        (NEVER, 2, {"max_extra_tokens": 3}, {(A,) * 5: 0.0}),
        # B eos (.25) is finished while A A A A (.32) still lives, and goes before it;
        # at the limit a shrinking beam ranks both by score.
        (
            *(ENDLESS, 2, {"max_extra_tokens": 2, "n_best": 2, **TWO}),
            {(B, EOS): log(0.25), (A, B, EOS): log(0.1875)},
        ),
        (
            *(ENDLESS, 2, {"max_extra_tokens": 2, "n_best": 2, **SHRINKING}),
            {(A,) * 4: log(0.75**4), (B, EOS): log(0.25)},
        ),
        (
            *(NARROW, 5, {"n_best": 2, **TWO}),
            {(A, EOS): log(0.42), (B, D, EOS): log(0.33 * 0.45)},
        ),
        # Each finished output takes a place of a shrinking beam.
        (
            *(NARROW, 5, {"n_best": 2, **SHRINKING}),
            {(A, EOS): log(0.42), (B, C, EOS): log(0.33 * 0.55 * 0.6)},
        ),
        # What is never generated takes no place: log 0.19 / 2^3 = -0.21, not log 0.21.
        (
            *(MASKED, 3, power(3.0, 1, allow_unk=False)),
            {(A, EOS): log(0.19) / 2**3},
        ),
        # The others' probabilities are those over all V.
        (LIKELY_UNK, 3, {**NO_UNK, **TWO}, OTHERS),
        (LIKELY_UNK, 3, {**NO_UNK, **SHRINKING}, OTHERS),
    ],
)
def test_a_search_finds_what_was_drawn(model, subwords, rules, found):
    result = search(model, one_sentence(subwords), **rules)
    assert outputs(result) == [list(found)]
    np.testing.assert_allclose(result.scores_BxW, [list(found.values())], rtol=1e-6)
    assert result.finished_BxW.tolist() == [[tokens[-1] == EOS for tokens in found]]


def test_places_without_an_output_are_empty():
    certain = lattice({(): {A: 1.0}}, V)
    result = search(certain, one_sentence(2), beam_size=3, n_best=3)
    assert outputs(result) == [[(A, EOS), (), ()]]
    assert result.finished_BxW.tolist() == [[True, False, False]]
    assert np.all(np.asarray(result.tokens_BxWxT[0, 1:]) == PAD)


def test_unk_is_forced_by_a_prefix_even_where_it_is_not_allowed():
    result = search(
        LIKELY_UNK,
        jnp.asarray([[A, EOS, PAD], [A, B, EOS]]),
        beam_size=2,
        allow_unk=False,
        prefixes_BxP=jnp.asarray([[A, UNK], [A, PAD]]),
    )
    assert [best(result, n) for n in (0, 1)] == [(A, UNK, EOS), (A, C, EOS)]
