import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.search import sampling
from t2t_jax.decoding.search.sampling import row_keys, sample
from t2t_jax.decoding.search.static_params import SamplingParams
from tests.decoding.models import EOS, PAD, UNK, lattice, recurrent

A, B, C = 4, 5, 6
V = 11
KEY = jax.random.key(7)
# Two tokens, of which the second depends on the first.
TREE = lattice(
    {
        (): {A: 0.6, B: 0.3, C: 0.1},
        (A,): {A: 0.5, EOS: 0.5},
        (B,): {C: 0.9, EOS: 0.1},
        (C,): {EOS: 1.0},
    },
    V,
)
SOURCE = jnp.asarray([[5, 6, 7, EOS], [8, EOS, PAD, PAD], [9, 5, EOS, PAD]])


def counts(tokens_xT, prefix):
    """Counts the outputs that begin so, as a share."""
    begins = np.asarray(tokens_xT).reshape(-1, tokens_xT.shape[-1])[:, : len(prefix)]
    return float((begins == np.asarray(prefix)).all(axis=1).mean())


def drawn(search_params, *, source=SOURCE[:1], **options):
    return jax.jit(
        lambda key: sample(TREE, source, key, sampling_params=search_params, **options)
    )(KEY)


def test_tokens_come_as_often_as_they_are_probable():
    found = drawn(SamplingParams(num_samples=4000))
    # Three standard deviations of a share of 4,000 are 0.024 at most.
    for prefix, share in [((A,), 0.6), ((B,), 0.3), ((C,), 0.1), ((A, A), 0.3)]:
        assert abs(counts(found.tokens_BxWxT, prefix) - share) < 0.024
    assert abs(counts(found.tokens_BxWxT, (B, C)) - 0.27) < 0.024


def test_improbable_tokens_are_drawn_too():
    # A token of probability p is drawn from among p', of nearly 1, where its noise is
    # above log(p' / p) more or less. Of the 2^25 numbers here 3.8 +- 1.9 are above 16,
    # and none is where noise is made of 23 bits.
    keys_BxK = jax.random.key_data(row_keys(KEY, 8))

    @jax.jit
    def highest(position):
        state = sampling.SampleState(position, None, keys_BxK, *[None] * 5)
        return sampling._noise(state, (4, 2**17)).max()

    assert max(highest(jnp.int32(at)) for at in range(8)) > 16


def test_temperature_sharpens_and_the_log_probabilities_are_the_models_own():
    found = drawn(SamplingParams(num_samples=4000, temperature=0.5))
    squares = np.array([0.6, 0.3, 0.1]) ** 2
    expected = squares / squares.sum()
    for token, share in zip((A, B, C), expected, strict=True):
        assert abs(counts(found.tokens_BxWxT, (token,)) - share) < 0.024
    only_c = np.asarray(found.tokens_BxWxT)[0, :, 0] == C
    np.testing.assert_allclose(
        np.asarray(found.log_probabilities_BxW)[0, only_c], np.log(0.1), rtol=1e-5
    )


def test_top_k_and_top_p_leave_the_improbable_out():
    two = drawn(SamplingParams(num_samples=1000, top_k=2))
    assert counts(two.tokens_BxWxT, (C,)) == 0
    assert abs(counts(two.tokens_BxWxT, (A,)) - 2 / 3) < 0.05
    nucleus = drawn(SamplingParams(num_samples=1000, top_p=0.7))
    assert counts(nucleus.tokens_BxWxT, (C,)) == 0
    assert counts(nucleus.tokens_BxWxT, (B,)) > 0
    one = drawn(SamplingParams(num_samples=1000, top_p=0.55))
    assert counts(one.tokens_BxWxT, (A,)) == 1


def test_what_is_forced_is_said_and_counted():
    prefixes = jnp.asarray([[B, C]])
    found = drawn(SamplingParams(num_samples=50), prefixes_BxP=prefixes)
    assert counts(found.tokens_BxWxT, (B, C)) == 1
    np.testing.assert_allclose(
        found.log_probabilities_BxW, np.log(0.3 * 0.9), rtol=1e-5
    )


def test_a_sentence_alone_is_drawn_as_in_a_batch_and_in_chunks():
    model = recurrent(3, V, eos_bias=-2.0)
    search_params = SamplingParams(num_samples=3, top_p=0.95)
    keys = row_keys(KEY, 3)
    draw = jax.jit(
        lambda source, keys: sample(model, source, keys, sampling_params=search_params)
    )
    together = draw(SOURCE, keys)
    for row in range(3):
        alone = draw(SOURCE[row : row + 1], keys[row : row + 1])
        np.testing.assert_array_equal(alone.tokens_BxWxT[0], together.tokens_BxWxT[row])
    chunked = chunked_search(
        model,
        SOURCE,
        max_extra_tokens=50,
        search_params=search_params,
        keys_BxK=np.asarray(jax.random.key_data(keys)),
    )
    np.testing.assert_array_equal(chunked.tokens_BxWxT, together.tokens_BxWxT)
    assert np.asarray(together.lengths_BxW).max() > 32
    samples = np.asarray(together.tokens_BxWxT).reshape(9, -1)
    assert len(np.unique(samples, axis=0)) == 9


def test_unk_is_not_sampled_where_it_is_not_allowed():
    likely = lattice({(): {UNK: 0.7, A: 0.2, B: 0.1}}, V)
    shares = []
    for allow_unk in (True, False):
        params = SamplingParams(num_samples=1000, allow_unk=allow_unk)
        found = sample(likely, SOURCE[:1], KEY, sampling_params=params)
        shares.append(counts(found.tokens_BxWxT, (UNK,)))
    assert abs(shares[0] - 0.7) < 0.05
    assert shares[1] == 0


def test_the_score_of_a_sample_has_the_asked_normalization_and_length():
    never = lattice({(A,) * n: {A: 1.0} for n in range(9)}, V)
    params = SamplingParams(length_normalization="power", max_length_ratio=1.5)
    found = sample(never, SOURCE[:1], KEY, sampling_params=params)
    assert found.lengths_BxW.tolist() == [[6]]
    ends = drawn(
        SamplingParams(num_samples=20, length_penalty=1.0, length_normalization="power")
    )
    np.testing.assert_allclose(
        ends.scores_BxW, ends.log_probabilities_BxW / ends.lengths_BxW, rtol=1e-6
    )
