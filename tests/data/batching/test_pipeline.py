import dataclasses
import threading
import time
from itertools import combinations, count, islice

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from t2t_jax.data.batching import packing, pipeline
from t2t_jax.data.batching.collate import collate
from t2t_jax.data.batching.pipeline import (
    Prefetcher,
    batches,
    find_batch,
    train_stream,
)
from t2t_jax.data.batching.planner import batch_shapes, plan_epoch, plan_eval
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.errors import UserError
from t2t_jax.types import BatchShard, DataPosition
from tests.data.conftest import ENGLISH, GERMAN, sentences
from tests.waiting import wait_for

CONFIG = DataConfig(tokens_per_batch=7 * 61, row_length=61, max_length=61)
GROUPS = dataclasses.replace(CONFIG, layout="length_buckets")
HALVED = DataConfig(
    tokens_per_batch=7 * 64, row_length=64, max_length=61, packed_row_lengths=2
)
CONFIGS = pytest.mark.parametrize(
    "config", [CONFIG, HALVED, GROUPS], ids=["packed", "halved", "length_buckets"]
)


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch):
    monkeypatch.setattr(packing, "WINDOW_PAIRS", 53)


def _batches_of_an_epoch(cache, config=CONFIG):
    return len(list(plan_epoch(cache.lengths, config=config, seed=5, epoch=0)))


def sentences_of(batch):
    """Reads pairs out of a batch by segment, as (source, inputs, outputs)."""
    for row in range(len(batch.rows)):
        for segment in range(1, batch.target_segments[row].max() + 1):
            source = batch.source[row][batch.source_segments[row] == segment]
            here = batch.target_segments[row] == segment
            inputs, outputs = batch.target_inputs[row], batch.target_outputs[row]
            yield tuple(source), tuple(inputs[here]), tuple(outputs[here])


def pairs_of(cache):
    for pair in range(cache.num_pairs):
        yield tuple(
            tuple(side.tokens[side.offsets[pair] : side.offsets[pair + 1]].tolist())
            for side in (cache.source, cache.target)
        )


def equal(one, other):
    return all(np.array_equal(*arrays) for arrays in zip(one, other, strict=True))


@CONFIGS
def test_a_pass_holds_every_pair_once_whatever_the_rows(cache, config):
    shapes = batch_shapes(config, cache.lengths)
    assert len(shapes) == 1 or config is not CONFIG
    for multiple in (1, 5):
        how = {"row_multiple": multiple, "share": BatchShard()}
        planned = plan_eval(cache.lengths, config=config)
        batches = [collate(cache, one, **how) for one in planned]
        assert {batch.source.shape for batch in batches} == {
            (-(-rows // multiple) * multiple, length) for rows, length in shapes
        }
        found = [triple for batch in batches for triple in sentences_of(batch)]
        assert sorted((source, outputs) for source, _, outputs in found) == sorted(
            pairs_of(cache)
        )
        assert all(inputs == (1, *outputs[:-1]) for _, inputs, outputs in found)


@CONFIGS
def test_batches_of_python_s_pairs_are_those_of_the_program(
    cache, vocabulary, config, tmp_path
):
    sides = sentences(ENGLISH, 211, seed=2), sentences(GERMAN, 211, seed=3)
    mesh = make_mesh(jax.devices()[:6], data=3, fsdp=2)
    names = ("tokens_per_batch", "row_length", "layout", "packed_row_lengths")
    how = {name: getattr(config, name) for name in (*names, "max_length")}
    how |= {"mesh": mesh, "cache_dir": str(tmp_path), "seed": 5, "micro_batches": 2}
    with train_stream(cache, config, seed=5, row_multiple=12) as stream:
        wanted = list(islice(stream, 9))
    with batches(zip(*sides, strict=True), vocabulary, **how) as own:
        assert own.position == (0, 0)
        for position, batch in wanted:
            found = next(own)
            assert equal(found, batch)
            assert found.source.sharding.spec == PartitionSpec(("data", "fsdp"))
            assert own.position == position
    named = cache.meta["spec"]
    with batches(named, vocabulary, start=list(wanted[4][0]), **how) as own:
        assert equal(next(own), wanted[5][1])
    with pytest.raises(StopIteration):
        next(own)


def test_batches_of_rows_of_hugging_face_s_datasets(vocabulary, tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    rows = datasets.Dataset.from_list([{"translation": {"en": "A man", "de": "Ein"}}])
    with batches(rows, vocabulary, row_length=64, cache_dir=str(tmp_path)) as own:
        assert next(own).source_segments.max() == 1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"train": "a"}, TypeError, "^train is no setting of batches"),
        ({"batch_size": 3}, TypeError, "^batch_size is no .* row_length, "),
        ({"micro_batches": 0}, ValueError, "micro_batches=0 must be at least 1"),
        ({"start": [0, -1]}, ValueError, r"start=\(0, -1\) at least 0"),
        ({"cache_dir": "/a,b"}, UserError, "/a,b must have no comma"),
        ({"row_length": 1}, UserError, r"\ndata.row_length=1 must be at least 2"),
        ({"mesh": jax.make_mesh((2,), ("x",))}, ValueError, "has x of type Explicit"),
    ],
)
def test_wrong_settings_of_batches_are_named(vocabulary, settings, error, message):
    with pytest.raises(error, match=message):
        batches([("a", "b")], vocabulary, **settings)


@CONFIGS
def test_the_shards_of_a_batch_make_up_the_batch(cache, config):
    keys = {"seed": 5, "row_multiple": 6}
    number = _batches_of_an_epoch(cache, config)
    with train_stream(cache, config, **keys) as batches:
        wholes = list(islice(batches, number))
    parts = []
    for share in (BatchShard(index=index, count=3) for index in range(3)):
        with train_stream(cache, config, **keys, share=share) as mine:
            parts.append(list(islice(mine, number)))
    for (position, whole), *shares in zip(wholes, *parts, strict=True):
        assert all(after == position for after, _ in shares)
        assert len({batch.source.shape for _, batch in shares}) == 1
        columns = zip(*(batch for _, batch in shares), strict=True)
        assert equal(whole, [np.concatenate(column) for column in columns])


@CONFIGS
def test_an_epoch_holds_every_pair_once_and_its_end_begins_the_next(cache, config):
    number = _batches_of_an_epoch(cache, config)
    with train_stream(cache, config, seed=5) as batches:
        epoch = list(islice(batches, number))
        after, _ = next(batches)
    positions = [position for position, _ in epoch]
    assert positions[:-1] == [DataPosition(0, done) for done in range(1, number)]
    assert positions[-1] == DataPosition(1, 0)
    assert after == DataPosition(1, 1)
    found = [triple for _, batch in epoch for triple in sentences_of(batch)]
    assert sorted((source, outputs) for source, _, outputs in found) == sorted(
        pairs_of(cache)
    )


@CONFIGS
def test_a_resumed_stream_goes_on_with_the_same_batches(cache, config):
    number = _batches_of_an_epoch(cache, config)
    with train_stream(cache, config, seed=5) as batches:
        uninterrupted = list(islice(batches, number + 3))
    for done in (0, 3, number - 1, number, number + 1):
        start = uninterrupted[done][0]
        with train_stream(cache, config, seed=5, start=start) as batches:
            for expected in uninterrupted[done + 1 :]:
                position, batch = next(batches)
                assert position == expected[0]
                assert equal(batch, expected[1])


@CONFIGS
def test_a_batch_is_found_by_planning_what_comes_before_it(cache, config):
    place, places = DataPosition(0, 0), []
    with train_stream(cache, config, seed=5) as batches:
        for after, batch in islice(batches, 2 * _batches_of_an_epoch(cache, config)):
            places.append((place, sorted(pair[0] for pair in sentences_of(batch))))
            place = after
    pairs = list(pairs_of(cache))
    for first in (0, 3):
        for ahead, (expected, sources) in enumerate(places[first:]):
            found, planned, _ = find_batch(
                cache, config, seed=5, start=places[first][0], ahead=ahead
            )
            assert found == expected
            assert sorted(pairs[pair][0] for pair in planned.pairs) == sources
    assert places[-1][0].epoch == 1


def test_work_goes_ahead_but_not_far(monkeypatch):
    made = []

    def work():
        for number in count():
            made.append(number)
            yield number

    monkeypatch.setattr(pipeline, "_AHEAD", 3)
    with Prefetcher(work()) as items:
        assert next(items) == 0
        wait_for(lambda: len(made) >= 5)
        time.sleep(0.02)
        # one consumed, three in the queue, one waiting for room
        assert len(made) == 5


def test_what_goes_wrong_is_raised_in_turn_and_once():
    def work():
        yield 1
        raise ArithmeticError("broken")

    with Prefetcher(work()) as items:
        assert next(items) == 1
        with pytest.raises(ArithmeticError, match="broken"):
            next(items)
        assert list(items) == []


def test_closing_ends_the_thread_of_an_endless_stream():
    before = threading.active_count()
    items = Prefetcher(count())
    assert next(items) == 0
    items.close()
    assert threading.active_count() == before
    assert list(items) == []
    items.close()


def test_no_batch_shares_memory_with_another(cache):
    with train_stream(cache, CONFIG, seed=5) as batches:
        arrays = [array for _, batch in islice(batches, 3) for array in batch]
    assert not any(np.shares_memory(*both) for both in combinations(arrays, 2))
