"""Both layouts of what beams have decoded, beside histories written out beam by beam.

Seen to fail: with a mask of all beams' slots, without this position's ancestors, and
where parents reorder keys but not values.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.attention import attention
from t2t_jax.model import defaults
from t2t_jax.model.past import OwnPast, SharedPast, empty_past
from tests.model.tiny import TINY

LAYOUTS = pytest.mark.parametrize(
    ("beams", "layout"), [(1, SharedPast), (5, SharedPast), (11, OwnPast)]
)


def drawn(rng, *shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)


@jax.jit
def step(past, number, keys, values, query):
    """Decodes one position; the second layer has twice the keys of the first."""
    position, past = past.begin(number)
    layers = [
        layer.append(factor * keys, values, position)
        for factor, layer in enumerate(past.layers, start=1)
    ]
    contexts = [layer.attend(query, position) for layer in layers]
    return contexts, past._replace(layers=tuple(layers))


def context_of(history, query_HxDk, *, factor):
    keys_HxKxDk, values_HxKxDv = (
        jnp.stack(arrays, axis=1) for arrays in zip(*history, strict=True)
    )
    return attention(query_HxDk[:, None], factor * keys_HxKxDk, values_HxKxDv)[:, 0]


@LAYOUTS
def test_each_beam_attends_to_its_own_history(beams, layout):
    rng = np.random.default_rng(beams)
    past = empty_past(TINY, 2, num_beams=beams, length=3)
    assert {type(layer) for layer in past.layers} == {layout}
    everywhere = list(np.ndindex(2, beams))
    histories = {place: [] for place in everywhere}
    for number in range(6):
        if number == 3:
            past = past.grow(7)
        keys, values, query = (drawn(rng, 2, 3, beams, depth) for depth in (5, 7, 5))
        contexts, past = step(past, jnp.int32(number), keys, values, query)
        for row, beam in everywhere:
            histories[row, beam].append((keys[row, :, beam], values[row, :, beam]))
        for row, beam in everywhere[:: 1 + 2 * (beams > 3)]:
            given = histories[row, beam], query[row, :, beam]
            for factor, context in enumerate(contexts, start=1):
                wanted = context_of(*given, factor=factor)
                # float32 sums in another order
                assert_allclose(context[row, :, beam], wanted, rtol=1e-4, atol=1e-5)
        parents = rng.integers(beams, size=(2, beams))
        past = past.reorder(parents)
        histories = {
            (row, beam): list(histories[row, parents[row, beam]])
            for row, beam in everywhere
        }


def test_beams_that_are_never_reordered_keep_their_own():
    rng = np.random.default_rng(0)
    past = empty_past(TINY, 2, num_beams=11, length=3)
    keys, values = drawn(rng, 2, 3, 11, 5), drawn(rng, 2, 3, 11, 7)
    _, past = step(past, jnp.int32(1), keys, values, keys)
    assert past.parents is None
    assert_array_equal(past.layers[0].keys[:, :, :, 1], keys)
    assert_array_equal(past.layers[0].values[:, :, :, 1], values)
    for array in jax.tree.leaves(past):
        assert not array[:, :, :, (0, 2)].any()


@pytest.mark.parametrize(
    ("platform", "dtype"), [("cpu", "float32"), ("gpu", "bfloat16")]
)
def test_it_is_in_bfloat16_where_that_is_written_in_place(platform, dtype, monkeypatch):
    monkeypatch.setattr(defaults, "default_platform", lambda: platform)
    config = dataclasses.replace(TINY, compute_dtype="bfloat16")
    past = empty_past(config, 2, num_beams=3, length=3)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(past.layers)} == {dtype}


def test_it_cannot_be_longer_than_the_table_of_positions():
    config = dataclasses.replace(TINY, positions="learned", max_positions=3)
    with pytest.raises(ValueError, match="length=4 must be at most max_positions=3"):
        empty_past(config, 2, num_beams=1, length=4)


@LAYOUTS
def test_growing_keeps_what_is_written_and_adds_zeros(beams, layout):
    past = jax.tree.map(jnp.ones_like, empty_past(TINY, 2, num_beams=beams, length=3))
    grown = past.grow(5)
    assert grown.length == 5
    for before, after in zip(
        jax.tree.leaves(past), jax.tree.leaves(grown), strict=True
    ):
        assert after.sum() == before.sum() == before.size
        assert after.size * 3 == before.size * 5
        axis = next(n for n in range(after.ndim) if after.shape[n] != before.shape[n])
        assert_array_equal(after.take(jnp.arange(before.shape[axis]), axis), 1)
