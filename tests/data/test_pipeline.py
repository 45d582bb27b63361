import subprocess
import sys
import threading
from itertools import islice

import numpy as np
import pytest

from t2t_jax.data import batching
from t2t_jax.data.batching import PlannedBatch, plan_epoch
from t2t_jax.data.config import DataConfig
from t2t_jax.data.pipeline import (
    assemble,
    describe_data,
    one_pass,
    stream,
)
from t2t_jax.data.token_cache import TokenCache, TokenSide
from t2t_jax.errors import DataError
from t2t_jax.types import DataPosition

CONFIG = DataConfig(tokens_per_batch=7 * 61, row_length=61, max_length=61)


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch):
    monkeypatch.setattr(batching, "WINDOW_PAIRS", 53)


def _batches_of_an_epoch(cache):
    plan = plan_epoch(
        cache.source_lengths,
        cache.target_lengths,
        rows_per_batch=CONFIG.rows_per_batch,
        row_length=CONFIG.row_length,
        seed=5,
        epoch=0,
    )
    return len(list(plan))


def hand_made(*pairs):
    def side(sentences):
        tokens = np.array([token for ids in sentences for token in ids], np.uint16)
        return TokenSide(tokens, np.cumsum([0, *map(len, sentences)]))

    sources, targets = zip(*pairs, strict=True)
    return TokenCache(side(sources), side(targets), np.arange(len(pairs)), {})


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


def test_a_packed_batch_as_drawn_by_hand():
    cache = hand_made(
        ([11, 2], [21, 22, 23, 2]), ([12, 13, 2], [24, 2]), ([14, 2], [2])
    )
    planned = PlannedBatch(pairs=np.array([1, 0, 2]), rows=np.array([0, 0, 1]))
    batch = assemble(cache, planned, num_rows=3, row_length=7)
    drawn = {
        "source": [[12, 13, 2, 11, 2, 0, 0], [14, 2, 0, 0, 0, 0, 0], [0] * 7],
        "source_segments": [[1, 1, 1, 2, 2, 0, 0], [1, 1, 0, 0, 0, 0, 0], [0] * 7],
        "source_positions": [[0, 1, 2, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0, 0], [0] * 7],
        "target_inputs": [[1, 24, 1, 21, 22, 23, 0], [1, 0, 0, 0, 0, 0, 0], [0] * 7],
        "target_outputs": [[24, 2, 21, 22, 23, 2, 0], [2, 0, 0, 0, 0, 0, 0], [0] * 7],
        "target_segments": [[1, 1, 2, 2, 2, 2, 0], [1, 0, 0, 0, 0, 0, 0], [0] * 7],
        "target_positions": [[0, 1, 0, 1, 2, 3, 0], [0, 0, 0, 0, 0, 0, 0], [0] * 7],
        "rows": [0, 1, 2],
    }
    for name, value in drawn.items():
        assert getattr(batch, name).tolist() == value, name
        assert getattr(batch, name).dtype == np.int32


def test_a_plan_that_does_not_fit_is_refused():
    cache = hand_made(([11, 2], [21, 22, 2]), ([12, 2], [24, 25, 2]))
    planned = PlannedBatch(pairs=np.array([0, 1]), rows=np.array([0, 1]))
    with pytest.raises(ValueError, match="num_rows=1 must be at least the plan's 2"):
        assemble(cache, planned, num_rows=1, row_length=7)
    together = planned._replace(rows=np.array([0, 0]))
    with pytest.raises(ValueError, match=r"row_length=5 must hold .* up to 6 tokens"):
        assemble(cache, together, num_rows=1, row_length=5)


def test_a_pass_holds_every_pair_once_whatever_the_rows(cache):
    for num_rows in (7, 11):
        batches = list(one_pass(cache, CONFIG, num_rows=num_rows))
        assert {batch.source.shape for batch in batches} == {(num_rows, 61)}
        found = [triple for batch in batches for triple in sentences_of(batch)]
        assert sorted((source, outputs) for source, _, outputs in found) == sorted(
            pairs_of(cache)
        )
        assert all(inputs == (1, *outputs[:-1]) for _, inputs, outputs in found)


def test_empty_rows_change_nothing_else(cache):
    plain = one_pass(cache, CONFIG, num_rows=7)
    extended = one_pass(cache, CONFIG, num_rows=11)
    for one, other in zip(plain, extended, strict=True):
        assert equal(one, [array[:7] for array in other])
        assert not other.source[7:].any()
        assert not other.target_segments[7:].any()
        assert other.rows.tolist() == list(range(11))


def test_an_epoch_holds_every_pair_once_and_its_end_begins_the_next(cache):
    number = _batches_of_an_epoch(cache)
    with stream(cache, CONFIG, seed=5, num_rows=7) as batches:
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


def test_a_resumed_stream_goes_on_with_the_same_batches(cache):
    number = _batches_of_an_epoch(cache)
    with stream(cache, CONFIG, seed=5, num_rows=7) as batches:
        uninterrupted = list(islice(batches, number + 3))
    for done in (0, 3, number - 1, number, number + 1):
        start = uninterrupted[done][0]
        with stream(cache, CONFIG, seed=5, start=start, num_rows=7) as batches:
            for expected in uninterrupted[done + 1 :]:
                position, batch = next(batches)
                assert position == expected[0]
                assert equal(batch, expected[1])


def test_the_end_of_an_epoch_may_be_written_as_its_last_batch(cache):
    start = DataPosition(0, _batches_of_an_epoch(cache))
    with stream(cache, CONFIG, seed=5, start=start, num_rows=7) as batches:
        assert next(batches)[0] == DataPosition(1, 1)


def test_epochs_and_seeds_differ(cache):
    def first(seed, epoch):
        start = DataPosition(epoch, 0)
        with stream(cache, CONFIG, seed=seed, start=start, num_rows=7) as batches:
            return next(batches)[1]

    assert equal(first(5, 0), first(5, 0))
    assert not equal(first(5, 0), first(5, 1))
    assert not equal(first(5, 0), first(6, 0))


def test_a_position_past_the_epoch_is_told_to_the_consumer(cache):
    start = DataPosition(0, 99)
    with stream(cache, CONFIG, seed=5, start=start, num_rows=7) as batches:
        with pytest.raises(
            DataError, match="after batch 99 of epoch 0, which has only"
        ):
            next(batches)
        assert list(batches) == []


def test_no_batch_shares_memory_with_another(cache):
    with stream(cache, CONFIG, seed=5, num_rows=7) as batches:
        arrays = [array for _, batch in islice(batches, 3) for array in batch]
    for number, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:number])


def test_a_stream_leaves_no_thread_behind(cache):
    before = threading.active_count()
    with stream(cache, CONFIG, seed=5, num_rows=7) as batches:
        next(batches)
    assert threading.active_count() == before


def test_the_data_are_described_for_the_record(cache, vocabularies, vocabulary):
    told = describe_data(vocabularies, train=cache, dev=cache)
    assert told["vocabulary"] == {"size": 97, "fingerprint": vocabulary.fingerprint}
    assert told["train"] == told["dev"]
    assert told["train"]["spec"].startswith("text:")
    assert told["train"]["counts"]["read"] == 211
    mean = cache.target_lengths.mean()
    assert told["train"]["mean_length"]["target"] == pytest.approx(mean, abs=0.005)
    assert told["train"]["unknown_rate"] == {"source": 0, "target": 0}


def test_data_need_no_jax():
    program = (
        "import sys\n"
        "from t2t_jax.data import corpora, phrasebook, pipeline, vocabulary\n"
        "sys.exit('jax' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
