import jax
import numpy as np
import pytest

from t2t_jax.checkpointing.averaging import average


def tree_of(seed):
    random = np.random.default_rng(seed)
    return {
        "encoder": {"kernel": random.normal(size=(3, 5)).astype(np.float32)},
        "bias": random.normal(size=7).astype(np.float32),
    }


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_average_of_k_equal_checkpoints_is_that_checkpoint(k):
    jax.tree.map(np.testing.assert_array_equal, average([tree_of(0)] * k), tree_of(0))


def test_each_leaf_is_the_plain_mean():
    trees = [tree_of(seed) for seed in range(5)]
    mean = average(iter(trees))
    for path in (lambda t: t["encoder"]["kernel"], lambda t: t["bias"]):
        wanted = np.mean([path(t).astype(np.float64) for t in trees], axis=0)
        np.testing.assert_array_equal(path(mean), wanted.astype(np.float32))


def test_the_sum_is_in_float64_and_the_mean_in_the_leaf_s_own_dtype():
    # In float32 the ones would be lost beside 2^24, and the mean be 2^23.
    values = [2.0**24, 1.0, 1.0, 0.0]
    mean = average([{"a": np.array([v], np.float32)} for v in values])
    assert mean["a"].dtype == np.float32
    assert mean["a"].tolist() == [np.float32((2**24 + 2) / 4)]
