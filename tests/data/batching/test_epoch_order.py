import numpy as np
import pytest

from t2t_jax.data.batching.planner import epoch_order


def seen(part_pairs, weights, *, seed):
    order = epoch_order(part_pairs, weights, rng=np.random.default_rng(seed))
    assert order.dtype == np.int32
    return np.bincount(order, minlength=sum(part_pairs))


def test_a_weight_of_1_is_a_permutation_that_takes_no_other_chance():
    chance = np.random.default_rng(5)
    order = epoch_order((7, 4), (1.0, 1), rng=np.random.default_rng(5))
    assert order.tolist() == chance.permutation(np.arange(11, dtype=np.int32)).tolist()


def test_whole_weights_repeat_and_a_remainder_is_drawn():
    times = seen((7, 20, 5), (2.0, 1.25, 0.0), seed=3)
    assert times[:7].tolist() == [2] * 7
    assert sorted(times[7:27]) == [1] * 15 + [2] * 5
    assert times[27:].tolist() == [0] * 5


def test_the_remainder_is_another_one_each_time():
    assert (seen((97,), (0.5,), seed=0) != seen((97,), (0.5,), seed=1)).any()


def test_in_the_long_run_each_pair_is_seen_as_often_as_its_weight_says():
    total = sum(seen((3, 1, 7), (1.5, 0.25, 2.1), seed=seed) for seed in range(3000))
    wanted = np.repeat([1.5, 0.25, 2.1], [3, 1, 7])
    # a mean of 3,000 coins: standard deviation 0.009 at most
    np.testing.assert_allclose(total / 3000, wanted, atol=0.04)


def test_weights_and_parts_come_in_pairs():
    with pytest.raises(ValueError, match=r"weights=\(1.0,\) .* of 2 parts"):
        epoch_order((3, 4), (1.0,), rng=np.random.default_rng(0))
