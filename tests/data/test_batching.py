from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data import batching
from t2t_jax.data.batching import PlannedBatch, plan_epoch, plan_pass

PAIRS = st.lists(st.tuples(st.integers(1, 13), st.integers(1, 13)), max_size=150)


def plan(lengths, *, seed=5, epoch=0, rows_per_batch=3, row_length=13):
    keys = {"rows_per_batch": rows_per_batch, "row_length": row_length}
    return plan_epoch(*lengths, **keys, seed=seed, epoch=epoch)


def equal(one: PlannedBatch, other: PlannedBatch) -> bool:
    return all(np.array_equal(*arrays) for arrays in zip(one, other, strict=True))


def wmt_like(count: int, *, mean: float = 28, spread: float = 0.6):
    """Log-normal lengths, eos included, whose sides agree within 20 %."""
    chance = np.random.default_rng(0)
    middle = chance.normal(np.log(mean) - spread**2 / 2, spread, count)
    sides = np.exp(middle + chance.normal(0, 0.14, (2, count)))
    lengths = np.maximum(np.rint(sides), 1).astype(np.int32) + 1
    return lengths[:, lengths.max(axis=0) <= 256]


@pytest.fixture(autouse=True)
def _small_windows(request, monkeypatch):
    if "full_windows" not in request.fixturenames:
        monkeypatch.setattr(batching, "WINDOW_PAIRS", 31)


@pytest.fixture
def full_windows():
    """Leaves windows of 20,000 pairs."""


def check_batches(batches, lengths, *, rows_per_batch):
    for batch in batches:
        assert np.unique(batch.rows).tolist() == list(range(batch.num_rows))
        assert (np.diff(batch.rows) >= 0).all()
        for side in lengths:
            assert np.bincount(batch.rows, side[batch.pairs]).max() <= 13
    assert all(batch.num_rows == rows_per_batch for batch in batches[:-1])
    assert not batches or 1 <= batches[-1].num_rows <= rows_per_batch
    seen = np.concatenate([batch.pairs for batch in batches]) if batches else []
    assert sorted(seen) == list(range(len(lengths[0])))


@given(PAIRS, st.integers(1, 7), st.integers(0, 3))
def test_every_pair_stands_in_an_epoch_exactly_once(pairs, rows_per_batch, epoch):
    lengths = np.array(pairs, np.int32).reshape(-1, 2).T
    batches = list(plan(lengths, epoch=epoch, rows_per_batch=rows_per_batch))
    check_batches(batches, lengths, rows_per_batch=rows_per_batch)


@given(PAIRS, st.integers(1, 7))
def test_every_pair_stands_in_a_pass_exactly_once(pairs, rows_per_batch):
    lengths = np.array(pairs, np.int32).reshape(-1, 2).T
    keys = {"rows_per_batch": rows_per_batch, "row_length": 13}
    batches = list(plan_pass(*lengths, **keys))
    check_batches(batches, lengths, rows_per_batch=rows_per_batch)
    assert all(map(equal, batches, plan_pass(*lengths, **keys)))


def test_a_plan_is_a_function_of_seed_and_epoch():
    lengths = np.random.default_rng(1).integers(1, 14, (2, 211))
    batches = list(plan(lengths))
    assert all(map(equal, batches, plan(lengths)))
    for other in ({"seed": 6}, {"epoch": 1}, {"seed": 0, "epoch": 5}):
        assert not equal(batches[0], next(plan(lengths, **other)))


def test_pairs_come_from_everywhere_and_batches_are_not_sorted_by_length(full_windows):
    source, target = wmt_like(30_000)
    batches = list(
        islice(plan((source, target), rows_per_batch=24, row_length=256), 80)
    )
    firsts = np.concatenate([batch.pairs for batch in batches[:8]])
    # 1,700 of 30,000 pairs: an unshuffled corpus would stay in its first fifth
    assert firsts.min() < 300
    assert firsts.max() > 29_700
    means = [source[batch.pairs].mean() for batch in batches]
    half = len(means) // 2
    assert np.mean(means[:half]) == pytest.approx(np.mean(means[half:]), rel=0.03)


def test_rows_of_256_are_98_percent_real(full_windows):
    lengths = wmt_like(100_000)
    batches = list(plan(lengths, rows_per_batch=96, row_length=256))
    slots = 2 * 256 * sum(batch.num_rows for batch in batches)
    assert lengths.sum() / slots > 0.98


def test_the_plan_begins_before_the_epoch_is_planned(monkeypatch):
    calls = []
    pack = batching.pack

    def counted(*lengths, **keys):
        calls.append(len(lengths[0]))
        return pack(*lengths, **keys)

    monkeypatch.setattr(batching, "pack", counted)
    next(plan(np.full((2, 1000), 5)))
    assert calls == [31]


def test_pairs_of_awkward_length_do_not_pile_up(monkeypatch):
    waiting = []
    pack = batching.pack

    def watched(*lengths, **keys):
        waiting.append(len(lengths[0]) - 31)
        return pack(*lengths, **keys)

    monkeypatch.setattr(batching, "pack", watched)
    # 7 of 13 slots: one pair a row, though the tokens would fill half as many rows
    batches = list(plan(np.full((2, 3100), 7)))
    assert sum(batch.num_rows for batch in batches) == 3100
    assert max(waiting) < 2 * 31
