import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.positions import sinusoidal_positions


def test_sines_and_cosines_are_interleaved():
    pe = sinusoidal_positions(jnp.array([3]), 4)[0]
    # rates 1 and 10000^(-2/4) = 1/100
    expected = [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)]
    assert_allclose(pe, expected, rtol=1e-5)  # float32 angle


def test_tensor2tensor_s_wavelengths_end_at_10000_times_2_pi():
    # rates 1, 10000^(-1/2) and 10000^-1: the first angle turns once in 2 pi positions,
    # the last in 10,000 times as many. The paper's last is 10000^(-4/6).
    pe = sinusoidal_positions(jnp.array([10_000]), 6, rates="tensor2tensor")[0]
    # float32: the first angle, 10,000, is exact
    assert_allclose(pe[2:], [np.sin(100), np.cos(100), np.sin(1), np.cos(1)], atol=1e-4)
    assert_allclose(pe[:2], [np.sin(10_000), np.cos(10_000)], atol=1e-4)
    of_the_paper, last = sinusoidal_positions(jnp.array([10_000]), 6)[0], 10 ** (4 / 3)
    assert_allclose(of_the_paper[:2], pe[:2])
    assert_allclose(of_the_paper[4:], [np.sin(last), np.cos(last)], atol=1e-4)


def test_a_single_pair_has_one_wavelength_whatever_the_rates():
    of_t2t = sinusoidal_positions(jnp.array([3]), 2, rates="tensor2tensor")
    assert_array_equal(of_t2t, sinusoidal_positions(jnp.array([3]), 2))


def test_a_shift_is_a_rotation_that_does_not_depend_on_the_position():
    d_model, shift = 14, 5
    positions = jnp.arange(41)
    here = np.asarray(sinusoidal_positions(positions, d_model))
    there = sinusoidal_positions(positions + shift, d_model)
    angles = shift / 10000 ** (np.arange(0, d_model, 2) / d_model)
    sin, cos = here[:, 0::2], here[:, 1::2]
    turned_sin = sin * np.cos(angles) + cos * np.sin(angles)
    turned_cos = cos * np.cos(angles) - sin * np.sin(angles)
    assert_allclose(turned_sin, there[:, 0::2], atol=1e-5)  # float32 angles
    assert_allclose(turned_cos, there[:, 1::2], atol=1e-5)


def test_far_positions_keep_their_precision():
    positions = np.array([1021, 4093])
    angles = positions[:, None] / 10000 ** (np.arange(0, 512, 2) / 512)
    pe = sinusoidal_positions(jnp.asarray(positions), 512)
    # A float32 angle near 4096 is right to 2.4e-4.
    assert_allclose(pe[:, 0::2], np.sin(angles), atol=5e-4)
    assert_allclose(pe[:, 1::2], np.cos(angles), atol=5e-4)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="d_model=7 must be even"):
        sinusoidal_positions(jnp.array([0]), 7)
