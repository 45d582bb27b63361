import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_array_equal

from t2t_jax.model.decoder import Decoder
from tests.model.tiny import TINY, tiny_params

MEMORY = jax.random.normal(jax.random.key(1), (1, 5, 14))
X = jax.random.normal(jax.random.key(2), (1, 7, 14))


@jax.jit
def decode(x, memory, source_segments, target_segments):
    def run(decoder):
        return decoder(
            x,
            decoder.project_memory(memory, source_segments),
            segments_BxT=target_segments,
            positions_BxT=jnp.arange(7)[None],
            rows_B=None,
        )

    return Decoder(TINY).apply({"params": tiny_params()["decoder"]}, method=run)


def reached(of, position, source_segments, target_segments):
    """Tells which of the inputs `of` have a gradient that is not exactly zero."""

    def one_output(x, memory):
        y = decode(x, memory, source_segments, target_segments)
        return (y[0, position] * jnp.arange(14)).sum()

    gradient = jax.grad(one_output, argnums={"target": 0, "memory": 1}[of])(X, MEMORY)
    return (np.abs(gradient[0]).max(-1) > 0).astype(int).tolist()


ONE_SOURCE, ONE_TARGET = jnp.ones((1, 5), int), jnp.ones((1, 7), int)


def test_later_positions_have_exactly_zero_gradients():
    for t in (0, 3, 6):
        expected = [1] * (t + 1) + [0] * (6 - t)
        assert reached("target", t, ONE_SOURCE, ONE_TARGET) == expected


def test_a_packed_sentence_sees_its_own_past_and_its_own_source():
    source, target = jnp.array([[1, 2, 2, 2, 0]]), jnp.array([[1, 1, 1, 2, 2, 2, 0]])
    assert reached("target", 4, source, target) == [0, 0, 0, 1, 1, 0, 0]
    assert reached("memory", 4, source, target) == [0, 1, 1, 1, 0]
    assert reached("memory", 2, source, target) == [1, 0, 0, 0, 0]


def test_the_memory_is_read_once_for_all_positions():
    def read(decoder):
        return decoder.project_memory(MEMORY, ONE_SOURCE)

    memory = Decoder(TINY).apply({"params": tiny_params()["decoder"]}, method=read)
    assert [layer.keys.shape for layer in memory.layers] == [(1, 3, 5, 5)] * 2
    assert [layer.values.shape for layer in memory.layers] == [(1, 3, 5, 7)] * 2
    assert_array_equal(memory.segments, ONE_SOURCE)
