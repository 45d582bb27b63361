import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.length_penalty import length_penalty, per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams


def limits_of(source_BxS, ratio, **bounds):
    params = BeamParams(max_length_ratio=ratio)
    return per_sentence_limits(jnp.asarray(source_BxS), params, **bounds).tolist()


def test_the_penalty_is_that_of_the_paper():
    found = length_penalty(jnp.asarray([1, 4, 7, 25]), 0.6)
    # 1, 1.5^0.6, 2^0.6, 5^0.6
    np.testing.assert_allclose(found, [1.0, 1.275425, 1.515717, 2.626528], rtol=1e-6)


def test_the_power_of_the_length_is_that_of_marian():
    found = length_penalty(jnp.asarray([0, 1, 4, 11]), 0.6, normalization="power")
    # Marian's own: log-probability -8.24505 of 11 tokens, score -1.95595
    expected = [1.0, 1.0, 2.297397, 8.24505 / 1.95595]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("row", "ratio", "extra", "bound", "limit"),
    [
        ([5, 6, 7, 2, 0], 0, 50, 99, 53),  # three subwords; pad and eos do not count
        ([5, 6, 7, 8, 9], 0, 50, 99, 55),  # an eos at the end is optional
        ([5, 6, 7, 2, 0], 0, 50, 20, 20),  # never above the bound
        ([2, 0, 0, 0, 0], 0, 0, 99, 1),  # a sentence may always say eos
        ([0, 0, 0, 0, 0], 0, 50, 99, 0),  # not a sentence
        ([5, 6, 7, 2, 0], 3.0, 200, 99, 12),  # the eos counts
        ([5, 6, 7, 8, 9], 3.0, 200, 99, 18),  # also where it is left out
        ([5, 6, 7, 2, 0], 3.0, 2, 99, 5),  # the smaller limit holds
        ([5, 6, 7, 2, 0], 1.4, 200, 99, 6),  # 5.6 rounded up
        ([2, 0, 0, 0, 0], 0.3, 200, 99, 1),
        ([0, 0, 0, 0, 0], 3.0, 200, 99, 0),
        ([5, 6, 7, 2, 0], 1e12, 20, 99, 23),
    ],
)
def test_a_limit_counts_subwords_and_the_extra(row, ratio, extra, bound, limit):
    assert limits_of([row], ratio, max_extra_tokens=extra, max_length=bound) == [limit]


RATIOS = (0.3, 1.1, 1.2345, 1 / 3, 2.5, 7.77, 0.98765, 1.23457, 1.99999, 2500.5)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(
    "lengths", [range(1, 1500, 7), [99_999, 100_000, 999_998]], ids=["usual", "longest"]
)
def test_the_limit_by_ratio_is_that_of_the_configuration(ratio, lengths):
    extra = 1_000_000
    source = np.arange(max(lengths), dtype=np.int32) < np.array(lengths)[:, None]
    bounds = {"max_extra_tokens": extra, "max_length": 2 * extra}
    found = limits_of(source * np.int8(9), ratio, **bounds)
    config = DecodingConfig(
        max_source_length=extra,
        max_extra_tokens=extra,
        max_length_ratio=ratio,
        tokens_per_batch=2 * extra,
    )
    # The subwords and max_extra_tokens: without the eos where that limit is smaller.
    assert found == [min(config.longest_output(n + 1), n + extra) for n in lengths]
