import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from t2t_jax.functional.dropout import dropout, token_cutoff

KEY = jax.random.key(11)
DROP, CUT = (jax.jit(one, static_argnames="rate") for one in (dropout, token_cutoff))


def kept(shape, *, rows=None, key=KEY, rate=0.3):
    """Tells where ones survive."""
    rows = jnp.arange(shape[0]) if rows is None else rows
    return np.asarray(DROP(np.ones(shape, "f"), rate=rate, key=key, rows_B=rows)) != 0


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_as_many_are_dropped_as_the_rate_says(rate):
    dropped = 1 - kept((31, 64, 67), rate=rate).mean()
    deviation = (rate * (1 - rate) / (31 * 64 * 67)) ** 0.5
    assert abs(dropped - rate) < 4 * deviation


def test_what_is_kept_is_scaled_up():
    y = dropout(jnp.full((2, 3, 5), 8.0), rate=0.2, key=KEY, rows_B=jnp.arange(2))
    assert set(np.unique(y)) == {0.0, 10.0}


def test_a_row_keeps_its_mask_in_any_batch_however_long_or_wide_it_is():
    whole = kept((7, 5, 11))
    assert_array_equal(kept((3, 5, 11), rows=jnp.array([4, 0, 6])), whole[[4, 0, 6]])
    assert_array_equal(kept((2, 3, 11)), whole[:2, :3])
    assert_array_equal(kept((2, 5, 7)), whole[:2, :, :7])
    weights = kept((2, 3, 5, 7))  # of attention
    assert_array_equal(kept((2, 3, 4, 6)), weights[:, :, :4, :6])


def test_keys_rows_positions_and_features_have_masks_of_their_own():
    mask = kept((101, 53, 59), rate=0.5)
    other = kept((101, 53, 59), rate=0.5, key=jax.random.fold_in(KEY, 1))
    # Two independent fair coins agree half the time, to 4 standard deviations.
    tolerance = 4 * 0.5 / (100 * 52 * 58) ** 0.5
    assert abs(np.mean(mask == other) - 0.5) < tolerance
    for axis in range(3):
        assert abs(np.diff(mask, axis=axis).mean() - 0.5) < tolerance


def test_no_row_position_or_feature_is_dropped_more_than_others():
    mask = kept((67, 61, 59), rate=0.5)
    for axes in [(1, 2), (0, 2), (0, 1)]:
        means = mask.mean(axis=axes)
        deviation = 0.5 / (mask.size / means.size) ** 0.5
        # the largest of 67 normal deviates is below 4.5 but in 5 of 10,000 cases
        assert np.abs(means - 0.5).max() < 4.5 * deviation


def test_typed_and_legacy_keys_of_a_seed_agree():
    typed, legacy = jax.random.key(5), jax.random.PRNGKey(5)
    assert_array_equal(kept((2, 3, 5), key=typed), kept((2, 3, 5), key=legacy))


def test_neither_the_zero_key_nor_row_0_is_special():
    assert 0.2 < kept((1, 29, 31), key=jax.random.key(0), rate=0.5).mean() < 0.8
    assert kept((1, 1, 1), key=jax.random.key(0), rate=1e-6).all()


def test_the_gradient_passes_where_the_value_did():
    x = jax.random.normal(KEY, (2, 3, 5))
    assert_array_equal(dropout(x, rate=0, key=KEY, rows_B=jnp.arange(2)), x)

    def total(x):
        return dropout(x, rate=0.5, key=KEY, rows_B=jnp.arange(2)).sum()

    assert_array_equal(jax.grad(total)(x), 2 * kept((2, 3, 5), rate=0.5))


def test_keys_can_be_mapped_over():
    keys, x = jax.random.split(KEY, 3), jnp.ones((2, 3, 5))

    def drop(key):
        return dropout(x, rate=0.3, key=key, rows_B=jnp.arange(2))

    for mask, key in zip(jax.jit(jax.vmap(drop))(keys), keys, strict=True):
        assert_array_equal(mask != 0, kept((2, 3, 5), key=key))


def test_bfloat16_is_scaled_in_float32_and_rounded_once():
    x = jax.random.normal(KEY, (2, 61, 67)).astype(jnp.bfloat16)
    y = dropout(x, rate=0.1, key=KEY, rows_B=jnp.arange(2))
    assert y.dtype == jnp.bfloat16
    exact = (np.asarray(x, np.float64) / 0.9).astype(jnp.bfloat16)
    assert_array_equal(y[y != 0], exact[np.asarray(y != 0)])


@pytest.mark.parametrize("below_1", [2**-32, 1e-10, 1e-12, 2**-53])
def test_rates_just_below_1_drop_nearly_everything(below_1):
    assert kept((3, 5, 7), rate=1 - below_1).sum() == 0
    assert cut((3, 5), rate=1 - below_1).sum() == 0


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan")])
def test_a_rate_outside_0_to_1_and_other_rows_are_refused(rate):
    for function, shape in ((kept, (2, 3, 5)), (cut, (2, 3))):
        with pytest.raises(ValueError, match=r"must be in \[0, 1\)"):
            function(shape, rate=rate)
        with pytest.raises(ValueError, match=r"rows must be \[B"):
            function(shape, rows=jnp.arange(3))


def cut(shape, *, rows=None, rate=0.3, spared=None):
    """Returns which tokens of [B, L] are kept; each must be whole or gone."""
    rows = jnp.arange(shape[0]) if rows is None else rows
    spared = jnp.zeros(shape, bool) if spared is None else spared
    x = jnp.full((*shape, 3), 8.0)
    y = np.asarray(CUT(x, spared, rate=rate, key=KEY, rows_B=rows))
    assert set(np.unique(y)) <= {0.0, 8.0}  # not scaled up
    assert (y == y[..., :1]).all()
    return y[..., 0] != 0


def test_as_many_tokens_are_cut_off_as_the_rate_says():
    shape, rate = (101, 211), 0.05
    deviation = (rate * (1 - rate) / (101 * 211)) ** 0.5
    assert abs(1 - cut(shape, rate=rate).mean() - rate) < 4 * deviation


def test_a_token_is_cut_off_or_not_in_any_batch_and_however_long_its_row_is():
    whole = cut((7, 23))
    assert_array_equal(cut((3, 17), rows=jnp.array([4, 0, 6])), whole[[4, 0, 6], :17])


def test_spared_tokens_are_never_cut_off_and_change_no_other():
    spared = jnp.arange(7 * 23).reshape(7, 23) % 3 == 0
    assert_array_equal(cut((7, 23), spared=spared), cut((7, 23)) | np.asarray(spared))
