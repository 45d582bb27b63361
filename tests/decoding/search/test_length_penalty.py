import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.data.vocabulary.vocabulary import BOS, EOS, PAD
from t2t_jax.decoding.search.length_penalty import (
    DEFAULT_IDS,
    SpecialIds,
    length_penalty,
    per_sentence_limits,
)


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
