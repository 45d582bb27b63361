"""The protocol of constraints, with constraints of the tests' own."""

import functools
import itertools

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search import beam_search as module
from t2t_jax.decoding.search.constraint import Constraint
from t2t_jax.decoding.search.static_params import BeamParams
from tests.decoding.models import (
    EOS,
    PAD,
    outputs,
    plain_search,
    recurrent,
    require_exhaustive,
    search,
    search_program,
)
from tests.reference import unconstrained_search

V = 11
SOURCE = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [9, 6, EOS, PAD]])
STATIC = (
    *("beam_size", "n_best", "max_extra_tokens", "beam_rule", "length_penalty"),
    *("min_tokens", "allow_unk"),
)


class Holds(Constraint, flax.struct.PyTreeNode):
    """The token `rows[b]` has to appear in the outputs of sentence b."""

    def init(self, rows, *, limits_B, num_beams):
        return jnp.zeros((limits_B.shape[0], num_beams), bool)

    def may_end(self, state, rows):
        return state

    def wanted(self, state, rows):
        return jnp.where(state, PAD, rows[:, None])[..., None]

    def advance(self, state, rows, *, tokens_BxW):
        return state | (tokens_BxW == rows[:, None])

    def banks(self, state, rows):
        return state.astype(jnp.int32)


class Changes(Constraint, flax.struct.PyTreeNode):
    """No token follows itself, and those of `forbidden` [V] never appear."""

    forbidden: jax.Array

    def init(self, rows, *, limits_B, num_beams):
        return {"last": jnp.zeros((limits_B.shape[0], num_beams), jnp.int32)}

    def bias(self, state, rows, *, position):
        numbers = jnp.arange(self.forbidden.shape[0])[None, None]
        is_last_BxWxV = (state["last"][..., None] == numbers) & (position > 0)
        return jnp.where(is_last_BxWxV | self.forbidden[None, None], -jnp.inf, 0.0)

    def advance(self, state, rows, *, tokens_BxW):
        return {"last": tokens_BxW}


class Everything(Constraint, flax.struct.PyTreeNode):
    """Allows all outputs, and says so in every method."""

    def bias(self, state, rows, *, position):
        return jnp.zeros((3, 1, 1))

    def may_end(self, state, rows):
        return jnp.ones((3, 1), bool)

    def banks(self, state, rows):
        return state

    def init(self, rows, *, limits_B, num_beams):
        return jnp.zeros((limits_B.shape[0], num_beams), jnp.int32)


WANTED = jnp.asarray([10, 3, 8])
RULES = [
    {},
    {"beam_size": 1, "length_penalty": 0.0},
    {"beam_size": 3, "n_best": 2, "beam_rule": "shrinking"},
    {"beam_size": 4, "n_best": 3, "min_tokens": 2, "allow_unk": False},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_without_a_constraint_it_is_a_search_that_knows_of_none(rules):
    """Bitwise in its outputs, and in its program.

    Seen to fail: where one more token is considered, and where the search without a
    constraint asks one which hypotheses may end, whatever it answers.
    """
    known = jax.jit(unconstrained_search.beam_search, static_argnames=STATIC)
    for seed in range(3):
        model = recurrent(seed, V, eos_bias=seed - 1.0)
        given = {"max_extra_tokens": 7, **rules}
        found = search(model, SOURCE, constraint=None, **given)
        for one, other in zip(found, known(model, SOURCE, **given), strict=True):
            np.testing.assert_array_equal(one, other)
    expected = known.lower(model, SOURCE, **given).as_text()
    lower = functools.partial(plain_search, model, SOURCE, run=search_program.lower)
    assert lower(**given).as_text() == expected
    assert lower(constraint=Everything(), **given).as_text() != expected


@pytest.mark.parametrize(
    ("beam_rule", "beams", "n_best"),
    [("fixed", 1, 1), ("fixed", 4, 3), ("shrinking", 4, 3)],
)
def test_a_constraint_that_allows_everything_changes_no_bit(beam_rule, beams, n_best):
    for seed in range(4):
        model = recurrent(seed, V, eos_bias=seed % 3 - 1.0)
        options = {"beam_size": beams, "n_best": n_best, "beam_rule": beam_rule}
        free = search(model, SOURCE, **options)
        allowed = search(model, SOURCE, constraint=Everything(), **options)
        for one, other in zip(free, allowed, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["holds", "changes"])
def test_with_enough_beams_the_search_is_exhaustive_under_a_constraint(name):
    constraint, rows, holds = {
        "holds": (Holds(), jnp.asarray([5]), lambda tokens: 5 in tokens),
        "changes": (
            Changes(jnp.zeros(6, bool).at[3].set(True)),
            None,
            lambda t: 3 not in t and all(x != y for x, y in itertools.pairwise(t)),
        ),
    }[name]
    for seed in range(6):
        model = recurrent(seed, 6, eos_bias=(seed % 4) - 2.0)
        rule = {"holds": holds, "constraint": constraint, "constraint_rows": rows}
        require_exhaustive(model, limit=4, beams=2 * 3**3, alpha=1.0, **rule)


def test_what_the_model_would_never_choose_is_held_by_every_output_of_the_beam():
    for beam_rule in ("fixed", "shrinking"):
        model = recurrent(3, V, eos_bias=5.0)
        model = model.replace(bias=model.bias.at[WANTED].set(-20.0))
        options = {"beam_size": 4, "n_best": 2, "beam_rule": beam_rule}
        free = outputs(search(model, SOURCE, **options))
        forced = search(
            model, SOURCE, constraint=Holds(), constraint_rows=WANTED, **options
        )
        assert np.asarray(forced.finished_BxW)[:, 0].all()
        for sentence, token in enumerate(WANTED.tolist()):
            assert not any(token in tokens for tokens in free[sentence])
            assert all(token in tokens for tokens in outputs(forced)[sentence])


@pytest.mark.parametrize("beam_rule", ["fixed", "shrinking"])
def test_an_output_cut_at_its_limit_is_one_of_the_highest_bank(beam_rule):
    model = recurrent(3, V, eos_bias=-99.0)
    model = model.replace(bias=model.bias.at[WANTED].set(-20.0))
    rules = {"beam_size": 3, "beam_rule": beam_rule, "max_extra_tokens": 3}
    result = search(model, SOURCE, constraint=Holds(), constraint_rows=WANTED, **rules)
    assert not np.asarray(result.finished_BxW).any()
    for sentence, token in enumerate(WANTED.tolist()):
        assert token in outputs(result)[sentence][0]


def test_rows_keep_their_constraint_where_the_batch_shrinks(monkeypatch):
    """Of 40 sentences most end at once, and 16 rows or fewer go on."""
    model = recurrent(2, V, eos_bias=30.0)
    rng = np.random.default_rng(0)
    source = rng.integers(3, V, (40, 6))
    # What is seldom chosen takes long.
    wanted = np.where(np.arange(40) % 8 == 3, 10, 4).astype(np.int32)
    model = model.replace(bias=model.bias.at[10].set(-900.0).at[4].set(9.0))
    rules = {"beam_size": 2, "length_penalty": 0.0}
    options = {"constraint": Holds(), "constraint_rows": wanted, "max_extra_tokens": 20}
    sizes, original = set(), module.beam_step

    def counted(search, state, **kwargs):
        sizes.add(state.limits_B.shape[0])
        return original(search, state, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, "beam_step", counted)
        params = BeamParams(**rules)
        chunked = chunked_search(model, source, search_params=params, **options)
    assert len(sizes) > 1, "the batch never shrank"
    full = search(model, source, **rules, **options)
    np.testing.assert_array_equal(chunked.tokens_BxWxT, full.tokens_BxWxT)
    for sentence, tokens in enumerate(outputs(chunked)):
        assert wanted[sentence] in tokens[0]


def test_vmap_and_neighbours_change_nothing():
    model = recurrent(5, V, eos_bias=1.0)
    source_GxBxS = jnp.asarray(np.random.default_rng(2).integers(3, V, (2, 3, 5)))
    wanted_GxB = jnp.asarray([[10, 3, 8], [4, 5, 10]])

    def constrained(source_BxS, wanted_B):
        how = {"constraint": Holds(), "constraint_rows": wanted_B}
        return plain_search(model, source_BxS, max_extra_tokens=2, **how)

    mapped = jax.jit(jax.vmap(constrained))(source_GxBxS, wanted_GxB)
    alone = jax.jit(constrained)
    for group, row in itertools.product(range(2), range(3)):
        found = alone(source_GxBxS[group, row, None], wanted_GxB[group, row, None])
        tokens = mapped.tokens_BxWxT[group, row]
        np.testing.assert_array_equal(tokens, found.tokens_BxWxT[0])
        assert wanted_GxB[group, row] in tokens[0]


def test_a_forced_prefix_counts_as_what_was_generated():
    model, prefixes = recurrent(4, V, eos_bias=2.0), {"prefixes_BxP": WANTED[:, None]}
    rule = {"constraint": Holds(), "constraint_rows": WANTED}
    result = search(model, SOURCE, **prefixes, **rule)
    free = search(model, SOURCE, **prefixes)
    np.testing.assert_array_equal(result.tokens_BxWxT, free.tokens_BxWxT)
