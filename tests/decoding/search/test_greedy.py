import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.errors import UserError
from tests.decoding.models import (
    BOS,
    EOS,
    PAD,
    UNK,
    lattice,
    next_log_probabilities,
    plain_search,
    recurrent,
)
from tests.reference.greedy import greedy_search

V = 13
search = jax.jit(greedy_search, static_argnames=("max_extra_tokens", "max_length"))
SOURCE = jnp.asarray([[4, EOS, PAD, PAD], [5, 6, 7, EOS], [PAD] * 4, [9, 6, EOS, PAD]])


def test_a_beam_of_one_without_penalty_is_greedy():
    greedy = jax.jit(lambda model: greedy_search(model, SOURCE, max_extra_tokens=9))
    beam = jax.jit(
        lambda model: plain_search(
            model, SOURCE, beam_size=1, length_penalty=0.0, max_extra_tokens=9
        )
    )
    lengths, endings = set(), set()
    for seed in range(20):
        model = recurrent(seed, V, eos_bias=seed % 5 - 1.0)
        one, two = greedy(model), beam(model)
        np.testing.assert_array_equal(one.tokens_BxT, two.tokens_BxWxT[:, 0])
        np.testing.assert_array_equal(one.lengths_B, two.lengths_BxW[:, 0])
        np.testing.assert_array_equal(one.finished_B, two.finished_BxW[:, 0])
        np.testing.assert_allclose(
            one.log_probabilities_B,
            two.log_probabilities_BxW[:, 0],
            rtol=1e-5,  # float32 sums of 12 logarithms
            atol=1e-6,
        )
        lengths |= set(one.lengths_B.tolist())
        endings |= set(one.finished_B.tolist())
    assert len(lengths) > 4
    assert endings == {True, False}


def test_an_eos_that_is_second_best_ends_nothing():
    # Half of .6 is less than .4: a search with two beams would say eos at once.
    tempting = lattice({(): {4: 0.6, EOS: 0.4}, (4,): {5: 0.5, 6: 0.3, UNK: 0.2}}, V)
    result = greedy_search(tempting, jnp.asarray([[UNK, EOS]]))
    assert result.tokens_BxT[0, :4].tolist() == [4, 5, EOS, PAD]
    np.testing.assert_allclose(result.log_probabilities_B, [np.log(0.3)], rtol=1e-6)


def test_each_token_is_the_most_probable_that_may_be_said():
    model = recurrent(4, V)
    model = model.replace(bias=model.bias.at[PAD].set(30.0).at[BOS].set(31.0))
    result = search(model, SOURCE, max_extra_tokens=3)
    for sentence in (0, 1, 3):
        length = int(result.lengths_B[sentence])
        tokens = tuple(result.tokens_BxT[sentence].tolist())
        for n in range(length):
            source = SOURCE[sentence].tolist()
            gains = next_log_probabilities(model, source, [tokens[:n]])[0]
            gains[[PAD, BOS]] = -np.inf
            assert tokens[n] == gains.argmax()


def test_limits_are_kept_sentence_by_sentence():
    model = recurrent(1, V, eos_bias=-50.0)
    result = greedy_search(model, SOURCE, max_extra_tokens=2)
    assert result.lengths_B.tolist() == [3, 5, 0, 4]
    assert not result.finished_B.any()
    assert result.tokens_BxT.shape == (4, 6)
    bounded = greedy_search(model, SOURCE, max_extra_tokens=2, max_length=4)
    assert bounded.lengths_B.tolist() == [3, 4, 0, 4]


def test_vmap_changes_nothing():
    model = recurrent(2, V, eos_bias=1.0)
    mapped = jax.vmap(lambda source: greedy_search(model, source[None]))(SOURCE)
    together = greedy_search(model, SOURCE)
    np.testing.assert_array_equal(mapped.tokens_BxT[:, 0], together.tokens_BxT)


def test_a_source_of_another_shape_is_refused():
    with pytest.raises(UserError, match=r"must be \[B, S\] whole numbers"):
        greedy_search(recurrent(0, V), SOURCE[0])
