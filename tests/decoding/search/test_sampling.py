import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def drawn(search_params, *, model=TREE, **options):
    options["sampling_params"] = search_params
    return jax.jit(lambda key: sample(model, SOURCE[:1], key, **options))(KEY)


def test_what_is_forced_is_said_and_counted():
    found = drawn(SamplingParams(num_samples=50), prefixes_BxP=jnp.asarray([[B, C]]))
    assert counts(found.tokens_BxWxT, (B, C)) == 1
    probabilities = np.exp(found.log_probabilities_BxW)
    np.testing.assert_allclose(probabilities, 0.3 * 0.9, rtol=1e-5)


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

    assert any(highest(jnp.int32(at)) > 16 for at in range(8))


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


@pytest.mark.parametrize(
    ("rule", "token", "share"),
    [
        ({"top_k": 2}, C, 0),
        ({"top_k": 2}, A, 2 / 3),
        ({"top_p": 0.7}, C, 0),
        ({"top_p": 0.7}, B, 1 / 3),
        ({"top_p": 0.55}, A, 1),
        ({"allow_unk": False}, UNK, 0),
        ({"allow_unk": True}, UNK, 0.5),
    ],
)
def test_what_a_rule_leaves_out_is_not_drawn(rule, token, share):
    tree = lattice({(): {UNK: 0.5, A: 0.5}}, V) if token == UNK else TREE
    found = drawn(SamplingParams(num_samples=1000, **rule), model=tree)
    # Three standard deviations of a share of 1,000 are 0.05 at most.
    tolerance = 0.05 if 0 < share < 1 else 0
    assert abs(counts(found.tokens_BxWxT, (token,)) - share) <= tolerance


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
    options = {"search_params": search_params, "max_extra_tokens": 50}
    keys_BxK = np.asarray(jax.random.key_data(keys))
    chunked = chunked_search(model, SOURCE, keys_BxK=keys_BxK, **options)
    np.testing.assert_array_equal(chunked.tokens_BxWxT, together.tokens_BxWxT)
    assert np.asarray(together.lengths_BxW).max() > 32
    samples = np.asarray(together.tokens_BxWxT).reshape(9, -1)
    assert len(np.unique(samples, axis=0)) == 9


def test_the_score_of_a_sample_has_the_asked_normalization_and_length():
    never = lattice({(A,) * n: {A: 1.0} for n in range(9)}, V)
    params = SamplingParams(length_normalization="power", max_length_ratio=1.5)
    found = sample(never, SOURCE[:1], KEY, sampling_params=params)
    assert found.lengths_BxW.tolist() == [[6]]
    params = SamplingParams(20, length_penalty=1.0, length_normalization="power")
    ends = drawn(params)
    np.testing.assert_allclose(
        ends.scores_BxW, ends.log_probabilities_BxW / ends.lengths_BxW, rtol=1e-6
    )
