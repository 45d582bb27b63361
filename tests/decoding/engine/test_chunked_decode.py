import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.decoding.search.static_params import BeamParams
from tests.decoding.models import EOS, PAD, Recurrent, recurrent

V = 11
SOURCE = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [PAD] * 4])


class Watched(Recurrent):
    """Notes each time it is compiled, for which rows and which room in its cache."""

    compiled = []  # noqa: RUF012 (shared on purpose)
    rows = set()  # noqa: RUF012 (likewise)

    def step(self, tokens_BxW, memory, cache, position):
        Watched.compiled.append(cache.shape[2])
        Watched.rows.add(cache.shape[0])
        return super().step(tokens_BxW, memory, cache, position)


def watched(seed, **kwargs):
    model = recurrent(seed, V, **kwargs)
    return Watched(model.embedding, model.mix, model.out, model.bias)


def test_a_chunk_is_compiled_when_an_output_reaches_it_and_never_again():
    Watched.compiled.clear()
    sizes = {"max_extra_tokens": 60, "search_params": BeamParams(beam_size=2)}
    chunked_search(watched(0, eos_bias=50), SOURCE, **sizes)
    assert set(Watched.compiled) == {32}
    chunked_search(watched(1, eos_bias=-50), SOURCE, **sizes)
    assert set(Watched.compiled) == {32, 64}
    num_compiled = len(Watched.compiled)
    for seed in range(3):
        chunked_search(watched(seed, eos_bias=-50), SOURCE, **sizes)
    assert len(Watched.compiled) == num_compiled


@pytest.mark.parametrize("num_long", [1, 16, 17])
def test_the_few_that_go_on_do_so_in_a_smaller_batch(num_long):
    Watched.compiled.clear()
    Watched.rows.clear()
    # Only what has a long source may go on beyond the first chunk.
    source = np.zeros((64, 60 + num_long), np.int32)  # a shape of its own
    source[:, 0] = np.arange(64) % 5 + 4
    long = np.random.default_rng(num_long).permutation(64)[:num_long]
    source[long, 1:50] = 7
    rules = {"params": BeamParams(beam_size=2, n_best=2), "max_extra_tokens": 5}
    model = watched(3, eos_bias=-50)
    found = chunked_search(
        model, source, search_params=rules["params"], max_extra_tokens=5
    )
    rows = set(Watched.rows)
    whole = jax.jit(lambda: beam_search(model, source, **rules))()
    np.testing.assert_array_equal(found.tokens_BxWxT, whole.tokens_BxWxT)
    np.testing.assert_allclose(found.scores_BxW, whole.scores_BxW, rtol=1e-5)
    assert rows == {64, {1: 16, 16: 16, 17: 64}[num_long]}
