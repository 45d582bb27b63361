import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from t2t_jax.functional.schedule import inverse_square_root


def test_equation_3_written_out():
    for step in (1, 399, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        rate = jax.jit(inverse_square_root, static_argnames="warmup_steps")(
            np.int32(step), 512, warmup_steps=4000
        )
        assert_allclose(rate, expected, rtol=1e-6)  # float32


def test_a_given_peak_replaces_the_width_of_the_model():
    steps = jnp.array([1, 10, 40])
    rates = inverse_square_root(steps, 512, warmup_steps=10, peak=5e-3)
    assert_allclose(rates, [5e-4, 5e-3, 2.5e-3], rtol=1e-6)
