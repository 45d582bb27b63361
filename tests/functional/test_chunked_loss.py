"""The loss in chunks, held to the one that has all logits at once.

Seen to fail: without the mask of padding, with the last chunk filled up with other
words, with the cotangent left out, and with one chunk however many are asked for.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.functional.chunked_loss import chunked_loss_sums
from t2t_jax.functional.embedding import logits
from t2t_jax.functional.losses import loss_sums
from tests.jaxprs import shapes

B, T, D, V = 3, 7, 5, 11


@pytest.fixture(scope="module")
def words():
    draw = np.random.default_rng(4)
    return jnp.asarray(draw.integers(V, size=(B, T))), jnp.asarray(
        draw.random((B, T)) < 0.7
    )


@pytest.fixture(scope="module")
def y_and_table():
    draw = np.random.default_rng(3)
    return jnp.asarray(draw.normal(size=(B, T, D)), jnp.float32), jnp.asarray(
        draw.normal(size=(V, D)), jnp.float32
    )


def at_once(y, table, words, bias=None, *, smoothing=0.1):
    targets, real = words
    sums = loss_sums(
        logits(y, table, bias), targets, real_x=real, label_smoothing=smoothing
    )
    return 3 * sums.loss, sums


def in_chunks(y, table, words, bias=None, *, smoothing=0.1, chunks):
    targets, real = words
    sums = chunked_loss_sums(
        y,
        table,
        targets,
        real_BxT=real,
        label_smoothing=smoothing,
        chunks=chunks,
        bias_V=bias,
    )
    return 3 * sums.loss, sums


def gradients(function, y, table, words):
    return jax.value_and_grad(function, argnums=(0, 1), has_aux=True)(y, table, words)


@pytest.mark.parametrize("chunks", [1, 2, 3, T, T + 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sums_and_gradients_are_those_of_all_logits(
    y_and_table, words, chunks, smoothing
):
    whole = partial(at_once, smoothing=smoothing)
    parts = partial(in_chunks, smoothing=smoothing, chunks=chunks)
    expected = gradients(whole, *y_and_table, words)
    found = gradients(parts, *y_and_table, words)
    # float32 sums of 21 tokens in another order
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5), found, expected
    )
    # Without a gradient there is another program.
    (_, sums), (_, alone) = found[0], parts(*y_and_table, words)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), alone, sums)
    assert alone.correct.dtype == jnp.int32


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_bias_has_the_gradient_that_it_has_with_all_logits(
    y_and_table, words, chunks
):
    bias = jnp.asarray(np.random.default_rng(5).normal(size=V), jnp.float32)

    def gradients_of_three(function):
        with_gradient = jax.value_and_grad(function, argnums=(0, 1, 3), has_aux=True)
        return with_gradient(*y_and_table, words, bias)

    found = gradients_of_three(partial(in_chunks, chunks=chunks))
    # float32 sums of 21 tokens in another order
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5),
        found,
        gradients_of_three(at_once),
    )
    of_bias = found[1][2]
    # Probabilities and smoothed targets sum to 1 alike, so their difference to 0.
    assert np.abs(of_bias).max() > 0.1
    np.testing.assert_allclose(of_bias.sum(), 0, atol=1e-4)


def test_nothing_as_large_as_all_logits_is_made(y_and_table, words):
    largest = []
    for function in (at_once, partial(in_chunks, chunks=T)):
        jaxpr = jax.make_jaxpr(partial(gradients, function))(*y_and_table, words)
        largest.append(max(map(np.prod, shapes(jaxpr))))
    assert largest == [B * T * V, max(B * T * D, V * D, B * V)]


@pytest.mark.parametrize(("chunks", "wanted"), [(3, (3, B, 3)), (1000, (T, B, 1))])
def test_more_chunks_than_fit_are_not_made(y_and_table, words, chunks, wanted):
    jaxpr = jax.make_jaxpr(partial(in_chunks, chunks=chunks))(*y_and_table, words)
    assert (*wanted, D) in shapes(jaxpr)


def test_activations_stay_bfloat16_and_the_table_s_gradient_float32(y_and_table, words):
    y, table = y_and_table
    function = partial(in_chunks, chunks=2)
    _, (of_y, of_table) = gradients(function, y.astype(jnp.bfloat16), table, words)
    assert (of_y.dtype, of_table.dtype) == (jnp.bfloat16, jnp.float32)
    _, (_, exact) = gradients(at_once, y, table, words)
    difference = jnp.linalg.norm(of_table - exact) / jnp.linalg.norm(exact)
    assert difference < 2e-2  # bfloat16 has 8 bits


def test_shards_side_by_side_have_sums_of_their_own(y_and_table, words):
    y, table = y_and_table
    function = partial(in_chunks, chunks=2)
    sharded = jax.vmap(partial(gradients, function), in_axes=(0, None, 0))
    by_row = jax.tree.map(lambda x: x[:, None], (y, words))
    (_, sums), (of_y, of_table) = sharded(by_row[0], table, by_row[1])
    (_, expected), (all_of_y, all_of_table) = gradients(function, y, table, words)
    np.testing.assert_allclose(sums.loss.sum(), expected.loss, rtol=1e-5)
    np.testing.assert_allclose(of_y[:, 0], all_of_y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_table.sum(0), all_of_table, rtol=1e-5, atol=1e-5)


def test_axes_that_do_not_agree_are_refused(y_and_table, words):
    y, table = y_and_table
    with pytest.raises(ValueError, match=r"table must be .* with D=5"):
        in_chunks(y, table[:, 1:], words, chunks=2)
    with pytest.raises(ValueError, match=r"bias must be \[V\] with V=11"):
        in_chunks(y, table, words, jnp.zeros(V - 1), chunks=2)
