import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import learning_rate, make_optimizer


def equation_3(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def updates_of(config, *, d_model, gradients):
    """Feeds gradients to the optimizer; returns what it adds to a parameter."""
    optimizer = make_optimizer(config, d_model=d_model)
    state = optimizer.init(jnp.zeros(()))
    updates = []
    for gradient in gradients:
        update, state = optimizer.update(jnp.asarray(gradient), state)
        updates.append(float(update))
    return np.array(updates)


def test_the_nth_update_has_the_learning_rate_of_equation_3_at_n():
    # Under a constant gradient Adam moves by exactly the learning rate.
    config = OptimizerConfig(warmup_steps=5)
    updates = updates_of(config, d_model=13, gradients=[3.0] * 17)
    wanted = [-equation_3(n, 13, 5) for n in range(1, 18)]
    # rtol: 1 - beta2^n loses 6 bits of float32 at n = 1.
    np.testing.assert_allclose(updates, wanted, rtol=1e-4)
    assert np.argmin(updates) + 1 == 5


def test_the_learning_rate_that_is_reported_is_the_one_that_is_used():
    config = OptimizerConfig(warmup_steps=3)
    updates = updates_of(config, d_model=7, gradients=[1.0] * 7)
    rates = [float(learning_rate(n, config=config, d_model=7)) for n in range(7)]
    np.testing.assert_allclose(updates, -np.array(rates), rtol=1e-4)  # as above


def test_base_peaks_at_its_four_thousandth_update():
    rates = learning_rate(jnp.arange(8_000), config=OptimizerConfig(), d_model=512)
    assert int(jnp.argmax(rates)) + 1 == 4_000
    np.testing.assert_allclose(rates.max(), (512 * 4_000) ** -0.5, rtol=1e-6)  # float32


def test_a_peak_of_ones_own_is_reached_at_the_end_of_the_warm_up():
    config = OptimizerConfig(warmup_steps=5, peak_learning_rate=0.25)
    rates = learning_rate(jnp.arange(20), config=config, d_model=512)
    np.testing.assert_allclose(  # float32
        rates[jnp.array([0, 4, 19])], [0.05, 0.25, 0.125], rtol=1e-6
    )


def test_betas_and_epsilon_reach_adam():
    config = OptimizerConfig(
        warmup_steps=1, peak_learning_rate=0.5, beta1=0.7, beta2=0.6, epsilon=0.125
    )
    gradients = [2.0, -1.0]
    wanted, m, v = [], 0.0, 0.0
    for n, g in enumerate(gradients, start=1):
        m, v = 0.7 * m + 0.3 * g, 0.6 * v + 0.4 * g * g
        m_hat, v_hat = m / (1 - 0.7**n), v / (1 - 0.6**n)
        wanted.append(-0.5 * n**-0.5 * m_hat / (v_hat**0.5 + 0.125))
    updates = updates_of(config, d_model=512, gradients=gradients)
    np.testing.assert_allclose(updates, wanted, rtol=1e-6)  # a dozen float32 steps


def test_the_paper_s_numbers_are_the_defaults():
    config = OptimizerConfig()
    assert (config.beta1, config.beta2, config.epsilon) == (0.9, 0.98, 1e-9)
    assert (config.warmup_steps, config.peak_learning_rate) == (4_000, 0.0)


def test_large_gradients_are_not_clipped():
    config = OptimizerConfig(warmup_steps=1, beta1=0.0, beta2=0.5, epsilon=1e-9)
    small, large = (
        updates_of(config, d_model=4, gradients=[1.0, factor]) for factor in (2.0, 2e6)
    )
    # v = (1/4 + g^2/2) / (3/4): had g been clipped, both would be alike.
    expected = 0.5 * 2**-0.5 * 2.0 / ((0.25 + 2.0) / 0.75) ** 0.5
    np.testing.assert_allclose(small[1], -expected, rtol=1e-6)  # float32
    np.testing.assert_allclose(large[1], -0.5 * 2**-0.5 * 1.5**0.5, rtol=1e-6)


def test_moments_mirror_the_parameters():
    params = {"encoder": {"kernel": jnp.ones((3, 5))}, "bias": jnp.ones(2)}
    adam = make_optimizer(OptimizerConfig(), d_model=3).init(params)[0]
    for moment in (adam.mu, adam.nu):
        assert jax.tree.map(jnp.shape, moment) == jax.tree.map(jnp.shape, params)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("warmup_steps", 0),
        ("peak_learning_rate", -0.1),
        ("peak_learning_rate", float("nan")),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("epsilon", 0.0),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_key(key, value):
    with pytest.raises(ValueError, match=rf"Change config\.optimizer\.{key}\."):
        OptimizerConfig(**{key: value})
