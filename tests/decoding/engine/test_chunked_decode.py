import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search.static_params import BeamParams
from tests.decoding.models import EOS, PAD, Recurrent, plain_search, recurrent

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


@pytest.mark.parametrize("n_best", [1, 3])
def test_chunks_find_what_one_loop_finds(n_best):
    search_params = BeamParams(beam_size=3, n_best=n_best)
    in_one_loop = jax.jit(
        lambda model: plain_search(
            model, SOURCE, beam_size=3, n_best=n_best, max_extra_tokens=70
        )
    )
    lengths = set()
    for seed in range(4):
        # Unlikely ends, so that outputs reach into the second and third chunk.
        model = recurrent(seed, V, eos_bias=-1.5)
        model = model.replace(out=0.3 * model.out)
        chunked = chunked_search(
            model, SOURCE, max_extra_tokens=70, search_params=search_params
        )
        whole = in_one_loop(model)
        np.testing.assert_array_equal(chunked.tokens_BxWxT, whole.tokens_BxWxT)
        np.testing.assert_array_equal(chunked.finished_BxW, whole.finished_BxW)
        # float32 sums over up to 73 positions of caches of different lengths
        np.testing.assert_allclose(chunked.scores_BxW, whole.scores_BxW, rtol=1e-5)
        lengths |= set(whole.lengths_BxW[:, 0].tolist())
    assert max(lengths) > 32


def test_a_chunk_is_compiled_when_an_output_reaches_it_and_never_again():
    Watched.compiled.clear()
    search_params = BeamParams(beam_size=2)
    soon, never = (watched(seed, eos_bias=bias) for seed, bias in ((0, 50), (1, -50)))
    chunked_search(soon, SOURCE, max_extra_tokens=60, search_params=search_params)
    assert set(Watched.compiled) == {32}
    chunked_search(never, SOURCE, max_extra_tokens=60, search_params=search_params)
    assert set(Watched.compiled) == {32, 64}
    num_compiled = len(Watched.compiled)
    for seed in range(3):
        other_weights = watched(seed, eos_bias=-50)
        chunked_search(
            other_weights, SOURCE, max_extra_tokens=60, search_params=search_params
        )
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
    search_params = BeamParams(beam_size=2, n_best=2)
    model = watched(3, eos_bias=-50)
    found = chunked_search(
        model, source, max_extra_tokens=5, search_params=search_params
    )
    rows = set(Watched.rows)
    whole = jax.jit(
        lambda: plain_search(model, source, beam_size=2, n_best=2, max_extra_tokens=5)
    )()
    np.testing.assert_array_equal(found.tokens_BxWxT, whole.tokens_BxWxT)
    np.testing.assert_allclose(found.scores_BxW, whole.scores_BxW, rtol=1e-5)
    assert rows == {64, {1: 16, 16: 16, 17: 32}[num_long]}
