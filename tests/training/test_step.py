"""Whole steps: on any number of devices, in chunks, guarded, with each optimizer.

Seen to fail: without each of the four conditions of `skip_bad_updates`; with the
parameters, the optimizer or the moving average left out of what is kept; with
`state.step` kept; with the head of the model left as it was, or one chunk whatever is
asked for; with the gradient of schedule-free AdamW at x.
"""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose

from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import make_global_batch
from t2t_jax.errors import ConfigError
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.functional.schedule import inverse_square_root
from t2t_jax.model.config import RNNConfig
from t2t_jax.model.embedding import TokenCutoff
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from t2t_jax.training import step as step_module
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import Sums, batch_logits, forward_loss, known, summarise
from t2t_jax.training.schedule_free import gradient_params
from t2t_jax.training.state import TrainState, evaluation_params, init_state
from t2t_jax.training.step import (
    StepOutput,
    accumulate_gradients,
    compile_evaluation,
    make_train_step,
    skip_bad_updates,
)
from tests.jaxprs import shapes
from tests.tiers import soak
from tests.training.copy_task import (
    CONFIG,
    KEY,
    LEARNER,
    LENGTH,
    ROWS,
    Trainer,
    V,
    batch_of,
    batches,
    drawn_pairs,
    packed,
    pair_of,
    require_same,
)


@pytest.fixture(scope="module")
def start():
    return Trainer(1)


@pytest.fixture(scope="module")
def gradient(start):
    """(params, batch) -> what the gradient of the first step is."""

    def loss(params, batch):
        sums = start.sums(params, batch, dropout_key=jax.random.fold_in(KEY, 0))
        return sums.loss / jnp.sum(batch.target_segments > 0)

    return jax.jit(jax.grad(loss))


def test_the_gradient_is_of_a_global_mean_and_not_of_the_devices_means(start, gradient):
    # Two rows a device: the first has 20 tokens, another one none at all.
    pairs = [pair_of(s) for s in [range(4, 13), range(3, 12), [5], [7, 8, 9]]]
    batch = batch_of(pairs, rows=16)
    norm = optax.tree.norm(gradient(start.state.params, batch))
    for trainer in (start, Trainer(8)):
        _, output = trainer.step(trainer.state, batch)
        # rtol: float32 sums in another order
        assert_allclose(output.gradient_norm, norm, rtol=1e-5)


def test_dropout_differs_between_steps_and_between_keys(start):
    def loss(step, key):
        state = start.state._replace(step=jnp.asarray(step, jnp.int32))
        return float(start.step(state, batches(1)[0], key)[1].sums.loss)

    other = jax.random.key(6)
    assert len({loss(0, KEY), loss(1, KEY), loss(0, other), loss(1, other)}) == 4
    assert loss(1, KEY) == loss(1, KEY)


def test_a_batch_of_nothing_but_padding_is_finite_and_counts_nothing(start):
    after, output = start.step(start.state, batch_of([], rows=16))
    assert known(output.sums) == (0.0, 0.0, 0, 0, 0, 2 * 16 * LENGTH)
    assert float(output.gradient_norm) == 0.0
    require_same(after.params, start.state.params)


def test_a_packed_row_gives_the_same_sums_as_its_pairs_padded(start):
    pairs = drawn_pairs(4, 3, longest=5)
    separate, together = (
        start.sums(start.state.params, batch)
        for batch in (batch_of(pairs), packed(pairs, length=19))
    )
    assert_allclose(separate[:2], together[:2], rtol=1e-5)  # float32
    assert separate[2:5] == together[2:5]


def test_evaluation_is_without_dropout_and_the_same_on_several_devices(start):
    batch, params = batch_of(drawn_pairs(6, 7)), jax.device_get(start.state.params)
    plain = start.sums(params, batch)
    for devices in (1, 7):
        mesh = make_mesh(jax.devices()[:devices])
        evaluate = compile_evaluation(start.module, label_smoothing=0.1, mesh=mesh)
        for _ in range(2):
            sums = evaluate(params, make_global_batch(batch, mesh))
            assert_allclose(sums.loss, plain.loss, rtol=1e-6)  # float32
            assert int(sums.correct) == int(plain.correct)


def test_correct_counts_the_largest_logit_at_real_tokens_only(start):
    batch = batch_of(drawn_pairs(7, 5))
    sums = start.sums(start.state.params, batch)
    logits = jax.jit(partial(batch_logits, start.module))(start.state.params, batch)
    right = np.asarray(logits).argmax(-1) == batch.target_outputs
    assert int(sums.correct) == int(right[batch.target_segments > 0].sum())


def test_a_loss_of_one_s_own_keeps_devices_micro_batches_and_guard(start):
    """The paper's loss, spelt out; a batch without tokens is skipped."""

    def loss(module, params, batch, dropout_key):
        logits = batch_logits(module, params, batch, dropout_key=dropout_key)
        targets, real = batch.target_outputs, batch.target_segments > 0
        smoothed, _ = label_smoothed_nll(logits, targets, label_smoothing=0.1)
        return jnp.sum(smoothed, where=real)

    parts = TrainingConfig(micro_batches=2)
    mesh = {"data": 4, "fsdp": 2}
    both = [start, Trainer(8, training=parts, mesh=mesh, loss=loss)]
    drawn = [*batches(3), batch_of([], rows=ROWS)]
    (ours, _), (own, applied) = (trainer.steps(drawn) for trainer in both)
    assert applied == [True, True, True, False]
    # Adam divides by the root of the square: float32 sums in another order
    jax.tree.map(
        partial(assert_allclose, rtol=1e-3, atol=1e-5), ours.params, own.params
    )
    outputs = [trainer.step(trainer.state, drawn[0])[1] for trainer in both]
    assert_allclose(*(output.gradient_norm for output in outputs), rtol=1e-5)
    assert_allclose(*(output.sums.loss for output in outputs), rtol=1e-6)
    assert outputs[0].sums.target_tokens == outputs[1].sums.target_tokens
    assert math.isnan(outputs[1].sums.nll)


def test_a_head_of_one_s_own_is_in_the_loss_and_nothing_takes_its_place(start):
    module = Transformer(CONFIG, head=lambda table, y: jnp.tanh(table.logits(y)))
    params, batch = start.state.params, batch_of(drawn_pairs(3, 4))
    of = partial(forward_loss, module, label_smoothing=0.1)
    sums, logits = jax.jit(
        lambda params: (of(params, batch), batch_logits(module, params, batch))
    )(params)
    losses, _ = label_smoothed_nll(logits, batch.target_outputs, label_smoothing=0.1)
    # float32 sums over some 30 tokens in another order
    assert_allclose(sums.loss, losses[batch.target_segments > 0].sum(), rtol=1e-5)
    for keys in ({"r_drop": 1.0}, {"simcut": 3.0}, {"loss_chunks": 2}):
        with pytest.raises(ConfigError, match="leaves head, __call__ and decode"):
            make_train_step(module, optax.sgd(0.1), config=TrainingConfig(**keys))


def test_an_optimizer_may_ask_for_the_mean_loss(start):
    plateau = optax.contrib.reduce_on_plateau(accumulation_size=9)
    optimizer = optax.chain(optax.sgd(0.1), plateau)
    how = {"mesh": start.mesh}
    state = init_state(start.module, optimizer, 0, params=start.state.params, **how)
    batch = batch_of(drawn_pairs(3, 8))
    after, output = make_train_step(start.module, optimizer, **how)(state, batch, 0)
    mean = output.sums.loss / output.sums.target_tokens
    assert_allclose(after.optimizer[1].avg_value, mean, rtol=1e-6)  # float32
    config = TrainingConfig(micro_batches=3)
    with pytest.raises(ValueError, match="8 rows must be divisible by 3"):
        make_train_step(start.module, optimizer, config=config, **how)(after, batch, 0)


BIASED = {"output_bias": True, "attention_biases": True, "start": "zero"}
RECURRENT = RNNConfig(vocab_size=V, num_layers=1, d_model=8, d_hidden=8, d_attention=8)


@pytest.mark.parametrize(
    "module",
    [Transformer(dataclasses.replace(CONFIG, **BIASED)), RNN(RECURRENT)],
    ids=["transformer", "rnn"],
)
def test_chunks_change_no_sum_and_no_gradient(module):
    batch = batch_of(drawn_pairs(3, 4))
    params = jax.jit(module.init)(KEY, batch.source, batch.target_inputs)["params"]

    def loss(params, chunks):
        how = {"label_smoothing": 0.1, "dropout_key": KEY, "loss_chunks": chunks}
        sums = forward_loss(module, params, batch, **how)
        return sums.loss, sums

    of = jax.value_and_grad(loss, has_aux=True)
    traced = [jax.jit(partial(of, chunks=n)).trace(params) for n in (3, 1)]
    found = [one.lower().compile()(params) for one in traced]
    # float32 sums over some 30 tokens in another order
    jax.tree.map(partial(assert_allclose, rtol=2e-5, atol=2e-5), *found)
    seen = [shapes(one.jaxpr) for one in traced]
    assert [(4 * LENGTH, V) in found for found in seen] == [False, True]


def outcome(*, loss=2.0, norm=0.5, tokens=3, limit=0.0):
    """Takes a step that reports this, and returns the state after it, and whether."""

    def step(state, batch, key):
        sums = Sums(jnp.float32(loss), 1.0, 0, jnp.int32(tokens), 1, 4)
        after = jax.tree.map(lambda x: x + 1, state)
        return after, StepOutput(sums, jnp.float32(norm))

    state = TrainState(jnp.int32(6), {"w": jnp.float32(10)}, (jnp.int32(5),))
    guarded = jax.jit(skip_bad_updates(step, skip_gradient_norm=limit))
    after, output = guarded(state, 0, 0)
    values = (int(after.step), float(after.params["w"]), int(after.optimizer[0]))
    return values, bool(output.applied)


@pytest.mark.parametrize(
    ("reported", "is_applied"),
    [
        *(({}, True), ({"loss": 1e30, "norm": 1e30}, True), ({"norm": 0.0}, True)),
        *(({"loss": math.nan}, False), ({"loss": math.inf}, False)),
        *(({"norm": math.nan}, False), ({"norm": math.inf}, False)),
        *(({"tokens": 0}, False), ({"limit": 0.5}, True), ({"limit": 0.4375}, False)),
    ],
    ids=str,
)
def test_guard_takes_an_update_or_leaves_it_out_as_a_whole(reported, is_applied):
    after = (7, 11.0, 6) if is_applied else (7, 10.0, 5)
    assert outcome(**reported) == (after, is_applied)


def test_guard_changes_no_bit_of_a_good_run(start, monkeypatch):
    guarded, applied = start.steps(batches(5))
    monkeypatch.setattr(step_module, "skip_bad_updates", lambda step, **_: step)
    require_same(guarded, Trainer(1).steps(batches(5))[0])
    assert applied == [True] * 5
    assert int(guarded.step) == 5


def test_frozen_parameters_do_not_count_in_the_gradient_norm(start, gradient):
    parts = [start, Trainer(training=TrainingConfig(frozen="encoder"))]
    batch = batches(1)[0]
    found = gradient(start.state.params, batch)
    whole, without = (trainer.step(trainer.state, batch)[1] for trainer in parts)
    # rtol=1e-5: float32 sums of 300 tokens in another order
    assert_allclose(whole.gradient_norm, optax.tree.norm(found), 1e-5)
    del found["encoder"]
    assert_allclose(without.gradient_norm, optax.tree.norm(found), 1e-5)
    assert without.gradient_norm < 0.95 * whole.gradient_norm


CHOICES = {
    "adam": {},
    "schedule_free": {
        "name": "schedule_free",
        "weight_decay": 0.1,
        "peak_learning_rate": 0.05,
    },
    "adamw with ema": {
        "name": "adamw",
        "weight_decay": 0.1,
        "peak_learning_rate": 5e-3,
        "training": TrainingConfig(ema_decay=0.9),
    },
    "muon": {"name": "muon", "weight_decay": 0.1},
    "adafactor": {"name": "adafactor", "training": TrainingConfig(frozen="*/key")},
}
NAMES = [*CHOICES]


# Of the others, test_optimizer.py asserts what they do to each kind of parameter.
@pytest.fixture(scope="module", params=[*NAMES[:3], *map(soak, NAMES[3:])])
def learner(request):
    return Trainer(1, rows=32, model=LEARNER, **CHOICES[request.param])


def test_optimizer_keeps_every_bit_in_a_skipped_step(learner):
    nothing, two = batch_of([], rows=32), batches(2, rows=32)
    before, _ = learner.steps(two)
    after, applied = learner.steps([*two, nothing])
    assert applied == [True, True, False]
    require_same(after, before._replace(step=after.step))


@pytest.mark.parametrize("learner", ["schedule_free"], indirect=True)
def test_optimizer_schedule_free_steps_at_y_and_not_at_the_average(learner):
    *before, batch = batches(5, rows=32)
    state, _ = learner.steps(before)
    y = gradient_params(state.params, state.optimizer)
    at_x, at_y = (float(learner.sums(p, batch).loss) for p in (state.params, y))
    _, output = learner.step(state, batch)
    assert float(output.sums.loss) == pytest.approx(at_y, rel=1e-6)  # float32 sums
    assert abs(at_x / at_y - 1) > 1e-4


@pytest.mark.parametrize(
    ("learner", "steps", "accuracy"),
    [
        *[("adam", 400, 0.99), (NAMES[1], 300, 0.97)],
        *(soak(n, 300, 0.97) for n in NAMES[2:]),
    ],
    indirect=["learner"],
)
def test_optimizer_learns_a_copy_task(learner, steps, accuracy):
    drawn = (batch_of(drawn_pairs(100 + n, 32)) for n in range(steps))
    state, _ = learner.steps(drawn)
    held_out = batch_of(drawn_pairs(1, 64))
    figures = summarise(learner.sums(evaluation_params(state), held_out))
    assert figures["accuracy"] > accuracy


def plain_step(state, batch, key, *, config, module, optimizer, mesh, loss):
    """The step as if there were one pass and Adam only."""
    dropout_key = jax.random.fold_in(key, state.step)

    def loss_and_sums(params, rows):
        sums = forward_loss(
            module, params, rows, label_smoothing=0.1, dropout_key=dropout_key
        )
        return jnp.asarray(sums.loss), sums

    gradient, sums = accumulate_gradients(loss_and_sums, state.params, batch, mesh=mesh)
    count = jnp.maximum(jnp.asarray(sums.target_tokens), 1)
    norm = optax.tree.norm(gradient) / count
    gradient = jax.tree.map(lambda g: g / count, gradient)
    updates, moments = optimizer.update(gradient, state.optimizer, state.params)
    params = optax.apply_updates(state.params, updates)
    output = StepOutput(sums, norm)
    return TrainState(state.step + 1, params, moments), output


def test_with_everything_off_the_program_is_the_one_without(monkeypatch):
    def program(**changed):
        keys = {"warmup_steps": 4_000, "peak_learning_rate": 0.0}
        return Trainer(1, **keys, **changed).lowered.as_text()

    ours = program()
    assert len(program(training=TrainingConfig(simcut=3.0))) > 1.5 * len(ours)
    assert program(name="schedule_free") != ours
    monkeypatch.setattr(step_module, "train_step", plain_step)
    monkeypatch.setattr(TokenCutoff, "__call__", lambda _, x, *others: x)
    adam = optax.adam(
        lambda count: inverse_square_root(count + 1, 16, warmup_steps=4_000),
        b1=0.9,
        b2=0.98,
        eps=1e-9,
    )
    monkeypatch.setattr("tests.training.copy_task.made_optimizer", lambda *_, **k: adam)
    assert program() == ours
