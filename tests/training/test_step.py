import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.metrics import known, total
from t2t_jax.training.step import compile_evaluation
from t2t_jax.types import Batch
from tests.training.copy_task import (
    KEY,
    LENGTH,
    Trainer,
    batch_of,
    pair_of,
    sentences,
)


@pytest.fixture(scope="module")
def start():
    """A trainer on one device whose state stays as drawn: use `fresh(start)`."""
    return Trainer(1)


@pytest.fixture(scope="module")
def eight():
    return Trainer(8)


def fresh(trainer):
    """Copies the state, since a step donates it."""
    return jax.tree.map(jnp.copy, trainer.state)


def step_of(trainer, state, batch):
    state, output = trainer.compiled(state, make_global_batch(batch, trainer.mesh), KEY)
    return state, jax.device_get(output)


def test_eight_devices_take_the_same_steps_as_one(start, eight):
    ours, theirs = fresh(start), fresh(eight)
    for number in range(5):
        batch = batch_of([pair_of(s) for s in sentences(number, 13)], rows=16)
        ours, a = step_of(start, ours, batch)
        theirs, b = step_of(eight, theirs, batch)
        counts = ("correct", "target_tokens", "source_tokens", "slots")
        assert [getattr(a.sums, n) for n in counts] == [
            getattr(b.sums, n) for n in counts
        ]
        # rtol: float32 sums over 90 tokens in another order, carried by Adam.
        np.testing.assert_allclose(a.sums.loss, b.sums.loss, rtol=1e-5)
        np.testing.assert_allclose(a.sums.nll, b.sums.nll, rtol=1e-5)
        np.testing.assert_allclose(a.gradient_norm, b.gradient_norm, rtol=1e-4)
    assert int(ours.step) == int(theirs.step) == 5


def test_the_gradient_is_of_a_global_mean_and_not_of_the_devices_means(start, eight):
    # Two rows a device: the first has 20 tokens, another one none at all.
    pairs = [pair_of(s) for s in [range(4, 13), range(3, 12), [5], [7, 8, 9]]]
    batch = batch_of(pairs, rows=16)
    key = jax.random.fold_in(KEY, 0)  # of the first step

    def loss(params):
        sums = forward_loss(
            start.module, params, batch, label_smoothing=0.1, dropout_key=key
        )
        return sums.loss / np.sum(batch.target_segments > 0)

    gradient = jax.jit(jax.grad(loss))(start.state.params)
    norm = np.sqrt(sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradient)))
    for trainer in (start, eight):
        _, output = step_of(trainer, fresh(trainer), batch)
        # rtol: float32 sums in another order
        np.testing.assert_allclose(output.gradient_norm, norm, rtol=1e-5)


def test_the_state_is_donated(start):
    state = fresh(start)
    batch = make_global_batch(batch_of([pair_of([5])], rows=16), start.mesh)
    after, _ = start.compiled(state, batch, KEY)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    assert int(after.step) == 1


def test_dropout_differs_between_steps_and_between_keys(start):
    batch = make_global_batch(batch_of([pair_of(range(4, 13))], rows=16), start.mesh)

    def loss(step, key):
        state = fresh(start)._replace(step=jnp.asarray(step, jnp.int32))
        return float(start.compiled(state, batch, key)[1].sums.loss)

    other = jax.random.key(6)
    losses = {loss(0, KEY), loss(1, KEY), loss(0, other), loss(1, other)}
    assert len(losses) == 4
    assert loss(1, KEY) == loss(1, KEY)


def test_a_batch_of_nothing_but_padding_is_finite_and_counts_nothing(start):
    batch = make_global_batch(batch_of([], rows=16), start.mesh)
    after, output = start.compiled(fresh(start), batch, KEY)
    sums = jax.device_get(output.sums)
    assert known(sums) == (0.0, 0.0, 0, 0, 0, 2 * 16 * LENGTH)
    assert float(output.gradient_norm) == 0.0
    jax.tree.map(np.testing.assert_array_equal, after.params, start.state.params)


def test_rows_of_padding_change_nothing(start):
    pairs = [pair_of(s) for s in sentences(2, 5)]
    few, many = (
        start.sums(
            start.state.params,
            batch_of(pairs, rows=rows),
            dropout_key=KEY,
        )
        for rows in (5, 11)
    )
    np.testing.assert_allclose(few.loss, many.loss, rtol=1e-6)  # float32
    np.testing.assert_allclose(few.nll, many.nll, rtol=1e-6)
    assert few[2:5] == many[2:5]


def test_longer_padding_changes_nothing(start):
    pairs = [pair_of(s) for s in sentences(3, 5)]
    short, long = (
        start.sums(
            start.state.params,
            batch_of(pairs, length=length),
            dropout_key=KEY,
        )
        for length in (11, 17)
    )
    np.testing.assert_allclose(short.loss, long.loss, rtol=1e-6)  # float32
    assert short[2:5] == long[2:5]


def packed(pairs, length):
    """Puts all the pairs into one row, one after the other."""
    row = {name: [] for name in Batch._fields[:-1]}
    for number, pair in enumerate(pairs, start=1):
        for name, values in pair.items():
            row[name] += [number] * len(values) if "segments" in name else values
    return batch_of([row], length=length)


def test_a_packed_row_gives_the_same_sums_as_its_pairs_padded(start):
    pairs = [pair_of(s) for s in sentences(4, 3, longest=5)]
    separate, together = (
        start.sums(start.state.params, batch)
        for batch in (batch_of(pairs), packed(pairs, length=19))
    )
    np.testing.assert_allclose(separate.loss, together.loss, rtol=1e-5)  # float32
    np.testing.assert_allclose(separate.nll, together.nll, rtol=1e-5)
    assert separate[2:5] == together[2:5]


def test_evaluation_sums_over_several_batches_are_those_of_one(start):
    evaluate = compile_evaluation(start.module, label_smoothing=0.1, mesh=start.mesh)
    pairs = [pair_of(s) for s in sentences(5, 7)]
    one = evaluate(start.state.params, batch_of(pairs))
    parts = [
        evaluate(start.state.params, batch_of(part)) for part in (pairs[:2], pairs[2:])
    ]
    np.testing.assert_allclose(  # float32
        known(total(parts)), np.array([float(x) for x in known(one)]), rtol=1e-6
    )


def test_evaluation_is_without_dropout_and_the_same_on_several_devices(start):
    batch = batch_of([pair_of(s) for s in sentences(6, 7)])
    results = []
    for devices in (1, 7):
        mesh = make_mesh(jax.devices()[:devices])
        evaluate = compile_evaluation(start.module, label_smoothing=0.1, mesh=mesh)
        params = jax.device_get(start.state.params)
        results += [evaluate(params, make_global_batch(batch, mesh)) for _ in range(2)]
    plain = start.sums(start.state.params, batch)
    for sums in results:
        np.testing.assert_allclose(sums.loss, plain.loss, rtol=1e-6)  # float32
        assert int(sums.correct) == int(plain.correct)


def test_correct_counts_the_largest_logit_at_real_tokens_only(start):
    batch = batch_of([pair_of(s) for s in sentences(7, 5)])
    sums = start.sums(start.state.params, batch)
    logits = jax.jit(start.module.apply)(
        {"params": start.state.params},
        batch.source,
        batch.target_inputs,
        source_segments=batch.source_segments,
        target_segments=batch.target_segments,
    )
    right = np.asarray(logits).argmax(-1) == batch.target_outputs
    assert int(sums.correct) == int(right[batch.target_segments > 0].sum())
