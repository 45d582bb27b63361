"""The authors' PyTorch package beside our schedule-free AdamW and the transcription.

Skipped where torch and schedulefree are not installed (extra `parity`).
"""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.schedule_free import gradient_params
from tests.reference.optimizers import ScheduleFree

torch = pytest.importorskip("torch", reason="needs the extra parity: torch")
schedulefree = pytest.importorskip(
    "schedulefree", reason="needs the extra parity: schedulefree"
)

# Those of AlgoPerf's submission, with a shorter warm-up.
PEAK, WARMUP, B1, B2, DECAY = 2.5e-3, 13, 0.9, 0.99552, 0.0812
STEPS = 300


@pytest.mark.parametrize("foreach", [False, True])
def test_three_hundred_steps_equal_the_package(foreach):
    random = np.random.default_rng(5)
    first = random.normal(size=(7, 11))
    theirs = torch.nn.Parameter(torch.tensor(first, dtype=torch.float64))
    package = schedulefree.AdamWScheduleFree(
        [theirs],
        lr=PEAK,
        betas=(B1, B2),
        eps=1e-9,
        weight_decay=DECAY,
        warmup_steps=WARMUP,
        foreach=foreach,
    )
    package.train()
    definition = ScheduleFree(first, PEAK, WARMUP, B1, B2, 1e-9, DECAY)
    ours = make_optimizer(
        OptimizerConfig(
            name="schedule_free",
            peak_learning_rate=PEAK,
            warmup_steps=WARMUP,
            beta1=B1,
            beta2=B2,
            weight_decay=DECAY,
        ),
        d_model=11,
    )
    x = {"inner": {"kernel": jnp.asarray(first, jnp.float32)}}
    state = ours.init(x)
    for number in range(STEPS):
        y = theirs.detach().numpy()
        gradient = np.cos(3 * y + number) * (number % 7 != 3)
        theirs.grad = torch.tensor(gradient)
        package.step()
        definition.step(gradient)
        given = {"inner": {"kernel": jnp.asarray(gradient, jnp.float32)}}
        updates, state = ours.update(given, state, x)
        x = optax.apply_updates(x, updates)
    y = theirs.detach().numpy().copy()
    np.testing.assert_allclose(definition.y, y, rtol=1e-12)
    # float32 sums of 300 steps of parameters of about 1
    np.testing.assert_allclose(
        gradient_params(x, state)["inner"]["kernel"], y, atol=1e-5
    )
    package.eval()
    np.testing.assert_allclose(definition.x, theirs.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(x["inner"]["kernel"], theirs.detach().numpy(), atol=1e-5)
    assert np.abs(theirs.detach().numpy() - first).max() > 0.05
