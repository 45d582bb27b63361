"""A step's update counts where its loss and its gradient are good, and nowhere else.

Seen to fail: without each of the four conditions of `skip_bad_updates`; with the
parameters or the optimizer left out of what is kept; with `state.step` kept; and
without `with_injected_nan` in `make_train_step`.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.runtime import fault_injection
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.training import step as step_module
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.metrics import Sums
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput, skip_bad_updates
from tests.training.copy_task import KEY, Trainer, batch_of, pair_of, sentences


def outcome(*, loss=2.0, norm=0.5, tokens=3, limit=0.0):
    """Takes a step that reports this, and returns the state after it, and whether."""

    def step(state, batch, key):
        sums = Sums(jnp.float32(loss), 1.0, 0, jnp.int32(tokens), 1, 4)
        after = jax.tree.map(lambda x: x + 1, state)
        return after, StepOutput(sums, jnp.float32(norm))

    state = TrainState(jnp.int32(6), {"w": jnp.float32(10)}, (jnp.int32(5),))
    after, output = jax.jit(skip_bad_updates(step, skip_gradient_norm=limit))(
        state, 0, 0
    )
    values = (int(after.step), float(after.params["w"]), int(after.optimizer[0]))
    return values, bool(output.applied)


APPLIED, LEFT_OUT = ((7, 11.0, 6), True), ((7, 10.0, 5), False)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, APPLIED),
        ({"loss": 1e30, "norm": 1e30}, APPLIED),
        ({"norm": 0.0}, APPLIED),
        ({"loss": math.nan}, LEFT_OUT),
        ({"loss": math.inf}, LEFT_OUT),
        ({"norm": math.nan}, LEFT_OUT),
        ({"norm": math.inf}, LEFT_OUT),
        ({"tokens": 0}, LEFT_OUT),
        ({"limit": 0.5}, APPLIED),
        ({"limit": 0.4375}, LEFT_OUT),
    ],
    ids=str,
)
def test_an_update_is_taken_or_left_out_as_a_whole(reported, expected):
    assert outcome(**reported) == expected


@pytest.fixture(scope="module")
def trainer():
    return Trainer(8)


def batches(count):
    drawn = (sentences(number, 13) for number in range(count))
    return [batch_of([pair_of(s) for s in one], rows=16) for one in drawn]


def stepped(trainer, batches, state=None):
    """Takes steps from the trainer's first state on, which stays as it is."""
    state = jax.tree.map(jnp.copy, trainer.state if state is None else state)
    applied = []
    for batch in batches:
        state, output = trainer.compiled(
            state, make_global_batch(batch, trainer.mesh), KEY
        )
        applied.append(bool(output.applied))
    return jax.device_get(state), applied


require_same = partial(jax.tree.map, np.testing.assert_array_equal)


def test_the_guard_changes_no_bit_of_a_good_run(trainer, monkeypatch):
    monkeypatch.setattr(step_module, "skip_bad_updates", lambda step, **_: step)
    plain = Trainer(8)
    guarded_state, applied = stepped(trainer, batches(5))
    plain_state, _ = stepped(plain, batches(5))
    require_same(guarded_state, plain_state)
    assert applied == [True] * 5
    assert int(guarded_state.step) == 5


def test_a_step_whose_loss_is_no_number_leaves_the_last_good_state(
    trainer, monkeypatch
):
    fault = fault_injection.Fault("nan", first=3, last=3)
    monkeypatch.setattr(fault_injection, "configured_fault", lambda: fault)
    poisoned = Trainer(8)
    all_of_them = batches(4)
    two, _ = stepped(poisoned, all_of_them[:2])
    three, applied = stepped(poisoned, all_of_them[:3])
    assert applied == [True, True, False]
    require_same(three, two._replace(step=three.step))
    # The next step is as if the bad one had read nothing: the same moments, the same
    # learning rate, but the dropout masks of its own number.
    four, _ = stepped(poisoned, all_of_them)
    expected, _ = stepped(trainer, all_of_them[3:], two._replace(step=np.int32(3)))
    require_same(four, expected)
    assert int(four.optimizer[0].count) == 3


def test_padding_alone_moves_nothing_once_there_is_momentum(trainer):
    before, _ = stepped(trainer, batches(2))
    after, applied = stepped(trainer, [*batches(2), batch_of([], rows=16)])
    assert applied == [True, True, False]
    require_same(after, before._replace(step=after.step))


def test_frozen_parameters_do_not_count_in_the_gradient_norm():
    frozen = TrainingConfig(frozen="encoder")
    parts = [Trainer(1, dropout=0.0), Trainer(1, dropout=0.0, training=frozen)]
    params, batch = parts[0].state.params, batches(1)[0]

    def mean_loss(params):
        sums = parts[0].sums(params, batch)
        return sums.loss / sums.target_tokens

    gradient = jax.grad(mean_loss)(params)
    whole, without = (trainer.step(batch) for trainer in parts)
    # rtol=1e-5: float32 sums of 300 tokens in another order
    np.testing.assert_allclose(whole.gradient_norm, optax.tree.norm(gradient), 1e-5)
    del gradient["encoder"]
    np.testing.assert_allclose(without.gradient_norm, optax.tree.norm(gradient), 1e-5)
    assert without.gradient_norm < 0.95 * whole.gradient_norm
