import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import (
    DEFAULT_IDS,
    SpecialIds,
    length_penalty,
    per_sentence_limits,
)
from t2t_jax.types import BOS, EOS, PAD


def test_the_penalty_is_that_of_the_paper():
    found = length_penalty(jnp.asarray([1, 4, 7, 25]), 0.6)
    # 1, 1.5^0.6, 2^0.6, 5^0.6
    np.testing.assert_allclose(found, [1.0, 1.275425, 1.515717, 2.626528], rtol=1e-6)


def test_alpha_zero_is_no_penalty():
    assert length_penalty(jnp.asarray([0, 1, 99]), 0.0).tolist() == [1.0, 1.0, 1.0]


def test_our_ids_are_those_of_the_vocabulary():
    assert DEFAULT_IDS == SpecialIds(pad=PAD, bos=BOS, eos=EOS)


@pytest.mark.parametrize(
    ("row", "extra", "bound", "limit"),
    [
        ([5, 6, 7, 2, 0], 50, 99, 53),  # three subwords; pad and eos do not count
        ([5, 6, 7, 8, 9], 50, 99, 55),  # an eos at the end is optional
        ([5, 6, 7, 2, 0], 50, 20, 20),  # never above the bound
        ([2, 0, 0, 0, 0], 0, 99, 1),  # a sentence may always say eos
        ([0, 0, 0, 0, 0], 50, 99, 0),  # not a sentence
    ],
)
def test_a_limit_counts_subwords_and_the_extra(row, extra, bound, limit):
    found = per_sentence_limits(
        jnp.asarray([row]), max_extra_tokens=extra, max_length=bound, ids=DEFAULT_IDS
    )
    assert found.tolist() == [limit]


def test_the_power_of_the_length_is_that_of_marian():
    found = length_penalty(jnp.asarray([1, 4, 11]), 0.6, normalization="power")
    # Marian's own: log-probability -8.24505 of 11 tokens, score -1.95595
    np.testing.assert_allclose(found, [1.0, 2.297397, 8.24505 / 1.95595], rtol=1e-5)
    assert length_penalty(jnp.asarray([0]), 0.6, normalization="power").tolist() == [1]


@pytest.mark.parametrize(
    ("row", "ratio", "extra", "limit"),
    [
        ([5, 6, 7, 2, 0], 3.0, 200, 12),  # the eos counts
        ([5, 6, 7, 8, 9], 3.0, 200, 18),  # also where it is left out
        ([5, 6, 7, 2, 0], 3.0, 2, 5),  # the smaller limit holds
        ([5, 6, 7, 2, 0], 1.4, 200, 6),  # 5.6 rounded up
        ([5, 6, 7, 8, 9], 1.1, 200, 7),
        ([2, 0, 0, 0, 0], 0.3, 200, 1),
        ([0, 0, 0, 0, 0], 3.0, 200, 0),
        ([5, 6, 7, 2, 0], 1e12, 20, 23),
    ],
)
def test_a_limit_by_ratio_counts_the_tokens_with_their_eos(row, ratio, extra, limit):
    found = per_sentence_limits(
        jnp.asarray([row]),
        max_extra_tokens=extra,
        max_length=99,
        max_length_ratio=ratio,
        ids=DEFAULT_IDS,
    )
    assert found.tolist() == [limit]


@pytest.mark.parametrize("ratio", [0.3, 1.1, 1.4, 1.2345, 1 / 3, 2.5, 3.0, 7.77])
def test_the_limit_by_ratio_is_that_of_the_configuration(ratio):
    lengths = np.arange(1, 1500, 7)
    source = jnp.asarray(np.arange(1500) < lengths[:, None], jnp.int32) * 9
    found = per_sentence_limits(
        source,
        max_extra_tokens=20_000,
        max_length=30_000,
        max_length_ratio=ratio,
        ids=DEFAULT_IDS,
    )
    config = DecodingConfig(
        max_extra_tokens=20_000, max_length_ratio=ratio, tokens_per_batch=30_000
    )
    assert found.tolist() == [config.longest_output(n + 1) for n in lengths.tolist()]


@pytest.mark.parametrize("ratio", [0.98765, 1.23457, 1.99999, 7.77777, 2500.5])
def test_the_limit_by_ratio_of_the_longest_sources_is_exact(ratio):
    lengths = [99_999, 100_000, 999_998]
    source = np.arange(999_998, dtype=np.int32) < np.array(lengths)[:, None]
    found = per_sentence_limits(
        jnp.asarray(source * np.int8(9)),
        max_extra_tokens=1_000_000,
        max_length=2_000_000,
        max_length_ratio=ratio,
        ids=DEFAULT_IDS,
    )
    config = DecodingConfig(
        max_source_length=1_000_000,
        max_extra_tokens=1_000_000,
        max_length_ratio=ratio,
        tokens_per_batch=2_000_000,
    )
    # The subwords and max_extra_tokens: without the eos where that limit is smaller.
    wanted = [min(config.longest_output(n + 1), n + 1_000_000) for n in lengths]
    assert found.tolist() == wanted
