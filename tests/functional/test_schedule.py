import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from t2t_jax.functional.schedule import inverse_square_root


def test_equation_3_written_out():
    for step in (1, 399, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        rate = inverse_square_root(step, 512, warmup_steps=4000)
        assert_allclose(rate, expected, rtol=1e-6)  # float32


def test_the_peak_is_at_the_end_of_the_warm_up():
    rates = inverse_square_root(jnp.arange(1, 100), 64, warmup_steps=37)
    assert int(jnp.argmax(rates)) + 1 == 37
    assert_allclose(rates.max(), (64 * 37) ** -0.5, rtol=1e-6)


def test_it_rises_linearly_from_the_first_step():
    rates = inverse_square_root(jnp.array([1, 2, 3]), 64, warmup_steps=37)
    assert_allclose(rates / rates[0], [1, 2, 3], rtol=1e-6)
    assert rates[0] > 0


def test_four_times_the_steps_halve_it():
    rates = inverse_square_root(jnp.array([37, 148, 592]), 64, warmup_steps=37)
    assert_allclose(rates / rates[0], [1, 1 / 2, 1 / 4], rtol=1e-6)


def test_a_given_peak_replaces_the_width_of_the_model():
    steps = jnp.array([1, 10, 40])
    rates = inverse_square_root(steps, 512, warmup_steps=10, peak=5e-3)
    assert_allclose(rates, [5e-4, 5e-3, 2.5e-3], rtol=1e-6)


def test_it_works_under_jit_with_integer_steps():
    rate = jax.jit(lambda step: inverse_square_root(step, 512, warmup_steps=4000))
    assert_allclose(rate(np.int32(4000)), 6.98771e-4, rtol=1e-5)
