"""Searching and drawing with the real model, whose cache reorders late."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search.beam_search import beam_search
from t2t_jax.decoding.search.sampling import row_keys, sample
from t2t_jax.decoding.search.static_params import BeamParams, SamplingParams
from t2t_jax.devices.distributed.gather import replicate
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.model.config import TransformerConfig

V = 23
CONFIG = TransformerConfig(
    vocab_size=V, num_layers=1, d_model=6, d_ff=10, num_heads=3, d_k=2, d_v=2
)
KEYS = row_keys(jax.random.key(3), 64)
DRAWING = SamplingParams(num_samples=2, top_p=0.9, min_tokens=2)
SEARCH = BeamParams(beam_size=3, n_best=2, min_tokens=2)


@pytest.fixture(scope="module")
def params():
    token = jnp.ones((1, 1), jnp.int32)
    init = jax.jit(make_module(CONFIG).init)
    params = init(jax.random.key(5), token, token)["params"]
    # Larger weights, or all words would be about as probable.
    return jax.tree.map(lambda leaf: 3 * leaf, params)


def model_of(params):
    return step_model(make_module(CONFIG, devices=jax.local_devices()), params)


def batch():
    """Draws 64 sentences; only the first two are long."""
    random = np.random.default_rng(7)
    source = np.zeros((64, 45), np.int32)
    for row, length in enumerate((44, 41, *[3, 5, 2, 4, 1] * 12, 3, 5)):
        source[row, :length] = random.integers(4, V, length)
        source[row, length] = 2
    prefixes = np.zeros((64, 3), np.int32)
    prefixes[1], prefixes[4, 0] = [7, 5, 9], 11
    return source, prefixes


def searched(model, source, prefixes, keys, *, drawn):
    options = {"max_extra_tokens": 3, "prefixes_BxP": prefixes}
    if drawn:
        return sample(model, source, keys, sampling_params=DRAWING, **options)
    return beam_search(model, source, params=SEARCH, **options)


@pytest.mark.parametrize("drawn", [False, True])
def test_chunks_that_shrink_on_two_devices_find_what_one_loop_finds(params, drawn):
    source, prefixes = batch()
    order = np.r_[0, 2:33, 1, 33:64]  # one long sentence for each of two devices
    source, prefixes, keys = source[order], prefixes[order], KEYS[order]
    whole = jax.jit(
        lambda params: searched(model_of(params), source, prefixes, keys, drawn=drawn)
    )(params)
    placed = replicate(params, jax.devices()[:2])
    options = {"search_params": DRAWING if drawn else SEARCH, "prefixes_BxP": prefixes}
    if drawn:
        options["keys_BxK"] = np.asarray(jax.random.key_data(keys))
    chunked = chunked_search(model_of(placed), source, max_extra_tokens=3, **options)
    np.testing.assert_array_equal(chunked.tokens_BxWxT, whole.tokens_BxWxT)
    np.testing.assert_array_equal(chunked.finished_BxW, whole.finished_BxW)
    # float32 attention over caches of other lengths
    np.testing.assert_allclose(chunked.scores_BxW, whole.scores_BxW, rtol=1e-4)
    assert np.asarray(whole.lengths_BxW).max() > 32


@pytest.mark.parametrize("drawn", [False, True])
def test_a_search_can_be_mapped_over_sentences(params, drawn):
    source, prefixes = batch()
    model = model_of(params)

    def one(source_S, prefix_P, key):
        return searched(model, source_S[None], prefix_P[None], key[None], drawn=drawn)

    mapped = jax.jit(jax.vmap(one))(source, prefixes, KEYS)
    whole = jax.jit(lambda: searched(model, source, prefixes, KEYS, drawn=drawn))()
    np.testing.assert_array_equal(mapped.tokens_BxWxT[:, 0], whole.tokens_BxWxT)
    # float32 attention in batches of other shapes
    np.testing.assert_allclose(mapped.scores_BxW[:, 0], whole.scores_BxW, rtol=1e-4)
