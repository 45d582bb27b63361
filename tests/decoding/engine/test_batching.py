import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine import batching as module
from t2t_jax.decoding.engine.batching import (
    max_batch_rows,
    pair_batches,
    pair_lengths,
    source_batches,
    source_lengths,
)

CONFIG = DecodingConfig(
    max_source_length=61, max_extra_tokens=3, tokens_per_batch=5 * 64
)
V = 11


def batches(sources, config=CONFIG, **how):
    return list(source_batches(sources, config, **how))


def pairs_batched(pairs, config=CONFIG, vocab_size=V, **how):
    return list(pair_batches(pairs, config, vocab_size=vocab_size, **how))


def shapes_of(found):
    return [batch.source_BxS.shape for batch in found]


def test_lengths_are_halved_down_to_16_and_never_more_than_8():
    assert source_lengths(1024) == (16, 32, 64, 128, 256, 512, 1024)
    assert source_lengths(4096) == (32, 64, 128, 256, 512, 1024, 2048, 4096)
    assert source_lengths(61) == (16, 31, 61)
    assert source_lengths(2) == (2,)


def test_lengths_of_pairs_double_and_a_stray_long_line_makes_no_other_longer():
    usual = (16, 32, 64, 128, 256, 512, 1024)
    assert pair_lengths(1) == pair_lengths(1024) == usual
    assert pair_lengths(9999) == (*usual, 16384)
    assert pair_lengths(61, max_length=61) == (16, 32, 61)
    assert pair_lengths(7, max_length=7) == (7,)


def test_a_batch_is_filled_with_shorter_sentences_and_only_the_last_has_empty_rows():
    # 5 rows at length 61, 9 at 31, 16 at 16.
    first, second = batches([[7] * 40] * 2 + [[8] * 20] * 3 + [[9] * 5] * 6)
    assert shapes_of([first, second]) == [(5, 61), (16, 16)]
    assert (first.indices, second.indices) == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9, 10))
    assert second.source_BxS[5].tolist() == [9] * 5 + [2] + [0] * 10
    assert not second.source_BxS[6:].any()


def test_a_pair_is_as_long_as_its_longer_side():
    # 20 rows at length 16, 10 at 32, 5 at 64.
    pairs = [([4] * 3, [5] * 40), ([6] * 17, []), ([7] * 15, [8] * 15)]
    (long,) = pairs_batched(pairs[:1])
    assert long.source_BxS.tolist() == [[4] * 3 + [2] + [0] * 60]
    assert long.target_outputs_BxT.tolist() == [[5] * 40 + [2] + [0] * 23]
    assert shapes_of(pairs_batched(pairs[1:])) == [(2, 32)]
    # With its eos the last one just fits the shortest.
    assert shapes_of(pairs_batched(pairs[2:])) == [(1, 16)]


def test_few_sentences_get_few_rows_and_calls_of_any_size_few_shapes():
    assert shapes_of(batches([[5]])) == [(1, 16)]
    assert shapes_of(batches([[5]] * 3)) == [(4, 16)]
    assert batches([]) == pairs_batched([]) == []
    rows = [
        batch.source_BxS.shape[0]
        for count in range(1, 41)
        for batch in batches([[5]] * count, row_growth=4)
    ]
    assert max_batch_rows(CONFIG) == 16
    assert rows == [1] + [4] * 3 + [16] * (12 + 2 * 16 + 3 * 8)


def test_the_bytes_of_the_logits_are_bounded(monkeypatch):
    # 1,813 slots of 37,000 words are 256 MiB of float32.
    large = {"config": DecodingConfig(), "vocab_size": 37_000}
    assert shapes_of(pairs_batched([([5] * 99, [])] * 14, **large)) == [(14, 128)]
    monkeypatch.setattr(module, "LOGITS_BYTES", 4 * V * 16 * 3)
    pairs = [([5], [6])] * 7 + [([5] * 70, [6])]
    # What is too long for the bound has a batch of its own.
    assert shapes_of(pairs_batched(pairs)) == [(1, 128), (3, 16), (3, 16), (3, 16)]


def test_the_rows_are_a_multiple_of_the_devices_each_within_the_bound():
    # On each device 5 rows at length 61, 16 at 16.
    first, second = batches([[7] * 40] * 13 + [[9] * 5] * 20, devices=3)
    assert shapes_of([first, second]) == [(15, 61), (3 * 16, 16)]
    assert first.indices + second.indices == tuple(range(33))
    # Fewer sentences than devices, and a few more.
    assert shapes_of(batches([[5]] * 2, devices=7)) == [(7, 16)]
    assert shapes_of(batches([[5]] * 17, devices=7)) == [(28, 16)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), max_size=90),
    st.integers(1, 8),
)
def test_every_sentence_and_pair_comes_once_within_the_bound(counts, devices):
    pairs = [([4 + n] * a, [5 + n] * b) for n, (a, b) in enumerate(counts)]
    sides = [pair[:1] for pair in pairs], pairs
    found = (
        batches([source for source, _ in pairs], devices=devices),
        pairs_batched(pairs, max_length=61, devices=devices),
    )
    for extra, members, some in zip((3, 0), sides, found, strict=True):
        assert sorted(i for b in some for i in b.indices) == [*range(len(counts))]
        assert len(set(shapes_of(some))) <= 8
        for number, batch in enumerate(some):
            rows, length = batch.source_BxS.shape
            assert rows % devices == 0
            assert rows // devices * (length + extra) <= CONFIG.tokens_per_batch
            assert len(batch.indices) == rows or number == len(some) - 1
            for row, index in enumerate(batch.indices):
                for side, tokens in zip(batch, members[index], strict=False):
                    np.testing.assert_array_equal(
                        side[row][side[row] != 0], [*tokens, 2]
                    )


def test_rows_are_as_long_as_the_longer_side():
    # as long as the sources where outputs are shorter
    short = dataclasses.replace(CONFIG, max_source_length=16, max_length_ratio=0.25)
    short = dataclasses.replace(short, tokens_per_batch=64)
    assert max_batch_rows(short) == 4
    assert shapes_of(batches([[9] * 5] * 9, short)) == [(4, 16)] * 3
    # as long as the outputs that the ratio allows
    long = {"max_extra_tokens": 200, "max_length_ratio": 2.0, "tokens_per_batch": 320}
    long = dataclasses.replace(CONFIG, **long)
    assert max_batch_rows(long) == 10
    found = batches([[7] * 40] * 2 + [[9] * 5] * 9, long)
    assert shapes_of(found) == [(2, 61), (10, 16)]
