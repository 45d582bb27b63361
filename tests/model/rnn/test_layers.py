import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.rnn.layers import LSTM, segment_starts

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # float32, fused differently
SEGMENTS = jnp.array([[1, 1, 1, 2, 2, 3, 0], [1, 2, 2, 0, 0, 0, 0]])


def test_an_lstm_forgets_where_a_segment_starts_on_its_way():
    forwards = [[1, 0, 0, 1, 0, 1, 1], [1, 1, 0, 1, 0, 0, 0]]
    assert_array_equal(segment_starts(SEGMENTS), forwards)
    backwards = [[0, 0, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 0, 1]]
    assert_array_equal(segment_starts(SEGMENTS, reverse=True), backwards)


@pytest.mark.parametrize("reverse", [False, True])
def test_one_segment_is_read_as_linens_own_rnn_reads_it(reverse):
    x, ones = jax.random.normal(jax.random.key(0), (2, 7, 3)), jnp.ones((2, 7), int)
    ours, params = lstm_of(reverse)
    theirs = nn.RNN(nn.LSTMCell(5), reverse=reverse, keep_order=True)
    expected = jax.jit(theirs.apply)({"params": {"cell": params["params"]["cell"]}}, x)
    assert_allclose(ours(params, x, ones), expected, **CLOSE)


@pytest.mark.parametrize("reverse", [False, True])
def test_segments_are_read_as_if_each_were_alone(reverse):
    x = jax.random.normal(jax.random.key(0), (2, 7, 3))
    lstm, params = lstm_of(reverse)
    whole = lstm(params, x, SEGMENTS)
    for row, start, end in [(0, 0, 3), (0, 3, 5), (0, 5, 6), (1, 0, 1), (1, 1, 3)]:
        segment = slice(start, end)
        # The others are gone, and padding is where they were.
        alone = jnp.zeros_like(x).at[row, segment].set(x[row, segment])
        segments = jnp.zeros_like(SEGMENTS).at[row, segment].set(1)
        assert_allclose(
            whole[row, segment], lstm(params, alone, segments)[row, segment], **CLOSE
        )


def lstm_of(reverse):
    """Returns a compiled LSTM of width 5 and its parameters."""
    lstm = LSTM(5, "float32", reverse=reverse)
    x, segments = jnp.zeros((2, 7, 3)), jnp.ones((2, 7), int)
    return jax.jit(lstm.apply), jax.jit(lstm.init)(jax.random.key(1), x, segments)
