import math

import numpy as np
import pytest

from t2t_jax.training.loss import Sums, known, summarise, total

# Two batches of unequal size: 2 tokens at 3 nats, 6 tokens at 1 nat.
SMALL = Sums(loss=6.0, nll=4.0, correct=0, target_tokens=2, source_tokens=3, slots=10)
LARGE = Sums(loss=6.0, nll=6.0, correct=6, target_tokens=6, source_tokens=9, slots=30)


def test_figures_are_a_sum_over_a_sum_and_never_a_mean_of_means():
    figures = summarise(total([SMALL, LARGE]))
    assert figures["loss"] == 12 / 8  # the mean of means would be 2
    assert figures["nll"] == 10 / 8
    assert figures["accuracy"] == 6 / 8
    assert figures["padding_fraction"] == 1 - 20 / 40


def test_perplexity_is_of_the_unsmoothed_loss_and_finite_but_a_nan_is_not_hidden():
    assert summarise(LARGE)["perplexity"] == math.exp(1.0)
    assert math.isfinite(summarise(SMALL._replace(nll=1e9))["perplexity"])
    assert math.isnan(summarise(total([SMALL, LARGE._replace(loss=math.nan)]))["loss"])


def test_sums_of_many_batches_lose_nothing_and_do_not_overflow():
    # In float32, 2^24 + 1 is 2^24; the devices hand out float32 and int32 scalars.
    parts = [SMALL._replace(loss=np.float32(2**24), slots=np.int32(2**30))]
    parts += [SMALL._replace(loss=np.float32(1), slots=np.int32(2**30))] * 8
    assert float(total(parts).loss) == 2**24 + 8
    assert float(total(parts).slots) == 9 * 2**30


def test_no_token_at_all_is_an_error_that_says_what_to_check():
    with pytest.raises(ValueError, match=r"data\.max_length"):
        summarise(SMALL._replace(target_tokens=0))


def test_the_consistency_is_per_target_token_and_absent_of_one_pass():
    added = total([SMALL._replace(consistency=1.0), LARGE._replace(consistency=5.0)])
    assert summarise(added)["consistency"] == 6 / 8
    assert Sums(*known(added)) == added
    assert total([SMALL, LARGE]).consistency is None
    assert "consistency" not in summarise(total([SMALL, LARGE]))
    assert len(known(SMALL)) == 6
