"""Schedule-free AdamW beside its definition in NumPy.

Seen to fail: with the gradient at x; with the decay of x; with b1 and 1 - b1 exchanged;
with the rate in place of its square as the weight; without the bias correction.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.training.schedule_free import (
    average_weight,
    gradient_params,
    schedule_free_adamw,
)
from tests.reference.optimizers import ScheduleFree

PEAK, WARMUP, EPS = 0.1, 5, 1e-9


def rate(count):
    return PEAK * jnp.minimum((count + 1) / WARMUP, 1.0)


def gradient_at(y, number):
    """Bends with the parameters; zero for all at step 3, for some always."""
    if number == 3:
        return np.zeros_like(y)
    gradient = np.sin(y * (number + 1)) + 0.25 * y
    gradient[1] = 0.0
    return gradient


def optimizer_of(b1, decay=0.0, mask=None):
    how = {"warmup_steps": WARMUP, "b1": b1, "b2": 0.95, "eps": EPS}
    return schedule_free_adamw(rate, weight_decay=decay, mask=mask, **how)


@pytest.mark.parametrize(("b1", "decay"), [(0.9, 0.0), (0.7, 0.3)])
def test_seventeen_steps_equal_the_definition(b1, decay):
    first = np.random.default_rng(7).normal(size=(3, 5))
    reference = ScheduleFree(first, PEAK, WARMUP, b1, 0.95, EPS, decay)
    optimizer = optimizer_of(b1, decay)
    x = {"kernel": jnp.asarray(first, jnp.float32)}
    state = optimizer.init(x)
    for number in range(17):
        y = gradient_params(x, state)["kernel"]
        # atol: float32 sums of about 1
        np.testing.assert_allclose(y, reference.y, atol=3e-6)
        # The same for both, so that roundings do not add up through the sine.
        gradient = gradient_at(reference.y, number)
        reference.step(gradient)
        updates, state = optimizer.update(
            {"kernel": jnp.asarray(gradient, jnp.float32)}, state, x
        )
        x = optax.apply_updates(x, updates)
        np.testing.assert_allclose(x["kernel"], reference.x, atol=3e-6)
        np.testing.assert_allclose(state.z["kernel"], reference.z, atol=3e-6)
    moved = np.abs(x["kernel"] - first.astype(np.float32)).max(axis=1)
    assert moved[0] > 0.1
    assert (moved[1] == 0) == (decay == 0)  # where all gradients were zero


def test_weights_are_squared_rates_over_their_sum():
    rates = np.minimum(np.arange(1, 41) / 7, 1)
    wanted = rates**2 / np.cumsum(rates**2)
    found = average_weight(jnp.arange(1, 41), warmup_steps=7)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)  # a few float32 products
    # Sums of float32 would be 1 % off here.
    ramp = sum((n / 4000) ** 2 for n in range(1, 4001))
    found = average_weight(1_000_000, warmup_steps=4000)
    np.testing.assert_allclose(found, 1 / (ramp + 996_000), rtol=1e-6)


def test_only_what_the_mask_names_is_decayed():
    params = {"kernel": jnp.full(2, 2.0), "bias": jnp.full(3, 2.0)}
    optimizer = optimizer_of(
        0.9, decay=0.5, mask=lambda tree: {"kernel": True, "bias": False}
    )
    zero = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zero, optimizer.init(params), params)
    # The first rate, 0.02, times 0.5 times 2.
    np.testing.assert_allclose(updates["kernel"], [-0.02] * 2, rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], [0.0] * 3)
