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


DRAW = np.random.default_rng(3)
Y, TABLE, BIAS = (
    jnp.asarray(DRAW.normal(size=shape), jnp.float32)
    for shape in ((B, T, D), (V, D), V)
)
WORDS = (
    jnp.asarray(DRAW.integers(V, size=(B, T))),
    jnp.asarray(DRAW.random((B, T)) < 0.7),
)
# float32 sums of 21 tokens in another order
CLOSE = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


def at_once(y, table, words, bias=None, *, smoothing=0.1):
    targets, real = words
    every = logits(y, table, bias)
    sums = loss_sums(every, targets, real_x=real, label_smoothing=smoothing)
    return 3 * sums.loss, sums


def in_chunks(y, table, words, bias=None, *, smoothing=0.1, chunks):
    targets, real = words
    how = {"label_smoothing": smoothing, "chunks": chunks, "bias_V": bias}
    sums = chunked_loss_sums(y, table, targets, real_BxT=real, **how)
    return 3 * sums.loss, sums


def gradients(function, y=Y, table=TABLE, words=WORDS, bias=None):
    argnums = (0, 1) if bias is None else (0, 1, 3)
    of = jax.value_and_grad(function, argnums=argnums, has_aux=True)
    return of(y, table, words, bias)


@pytest.mark.parametrize("chunks", [1, 3, T + 2])
@pytest.mark.parametrize(("smoothing", "bias"), [(0.0, None), (0.1, None), (0.1, BIAS)])
def test_sums_and_gradients_are_those_of_all_logits(chunks, smoothing, bias):
    whole = partial(at_once, smoothing=smoothing)
    parts = partial(in_chunks, smoothing=smoothing, chunks=chunks)
    found = gradients(parts, bias=bias)
    jax.tree.map(CLOSE, found, gradients(whole, bias=bias))
    # Without a gradient there is another program.
    (_, sums), (_, alone) = found[0], parts(Y, TABLE, WORDS, bias)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), alone, sums)
    assert alone.correct.dtype == jnp.int32
    if bias is not None:
        # Probabilities and smoothed targets sum to 1 alike, so their difference to 0.
        assert np.abs(found[1][2]).max() > 0.1
        np.testing.assert_allclose(found[1][2].sum(), 0, atol=1e-4)


def test_nothing_as_large_as_all_logits_is_made():
    largest = []
    for function in (at_once, partial(in_chunks, chunks=T)):
        jaxpr = jax.make_jaxpr(partial(gradients, function))()
        largest.append(max(map(np.prod, shapes(jaxpr))))
    assert largest == [B * T * V, max(B * T * D, V * D, B * V)]


@pytest.mark.parametrize(("chunks", "wanted"), [(3, (3, B, 3)), (1000, (T, B, 1))])
def test_more_chunks_than_fit_are_not_made(chunks, wanted):
    jaxpr = jax.make_jaxpr(partial(in_chunks, chunks=chunks))(Y, TABLE, WORDS)
    assert (*wanted, D) in shapes(jaxpr)


def test_activations_stay_bfloat16_and_the_table_s_gradient_float32():
    of_y, of_table = gradients(partial(in_chunks, chunks=2), Y.astype(jnp.bfloat16))[1]
    assert (of_y.dtype, of_table.dtype) == (jnp.bfloat16, jnp.float32)
    _, (_, exact) = gradients(at_once)
    difference = jnp.linalg.norm(of_table - exact) / jnp.linalg.norm(exact)
    assert difference < 2e-2  # bfloat16 has 8 bits


def test_shards_side_by_side_have_sums_of_their_own():
    function = partial(gradients, partial(in_chunks, chunks=2))
    by_row = jax.tree.map(lambda x: x[:, None], (Y, WORDS))
    of_rows = jax.vmap(function, in_axes=(0, None, 0))
    (_, sums), (of_y, of_table) = of_rows(by_row[0], TABLE, by_row[1])
    (_, expected), gradients_of_all = function()
    CLOSE(sums.loss.sum(), expected.loss)
    jax.tree.map(CLOSE, (of_y[:, 0], of_table.sum(0)), gradients_of_all)


def test_axes_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match=r"table must be .* with D=5"):
        in_chunks(Y, TABLE[:, 1:], WORDS, chunks=2)
    with pytest.raises(ValueError, match=r"bias must be \[V\] with V=11"):
        in_chunks(Y, TABLE, WORDS, jnp.zeros(V - 1), chunks=2)
