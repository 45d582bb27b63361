import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring import batching as module
from t2t_jax.decoding.scoring.batching import pair_batches, pair_lengths

CONFIG = DecodingConfig(max_source_length=61, max_extra_tokens=3, tokens_per_batch=320)
V = 11


def batches(pairs, *, config=CONFIG, vocab_size=V, max_length=None, devices=1):
    return [
        *pair_batches(
            pairs,
            config,
            vocab_size=vocab_size,
            max_length=max_length,
            devices=devices,
        )
    ]


@pytest.mark.parametrize(
    ("longest", "max_length", "lengths"),
    [
        (1, None, (16, 32, 64, 128, 256, 512, 1024)),
        (1024, None, (16, 32, 64, 128, 256, 512, 1024)),
        # A stray long line adds a length and makes no other longer.
        (1025, None, (16, 32, 64, 128, 256, 512, 1024, 2048)),
        (9999, None, (16, 32, 64, 128, 256, 512, 1024, 16384)),
        (61, 61, (16, 32, 61)),
        (5, 64, (16, 32, 64)),
        (7, 7, (7,)),
    ],
)
def test_lengths_double_and_are_never_more_than_8(longest, max_length, lengths):
    assert pair_lengths(longest, max_length=max_length) == lengths


def test_a_pair_is_as_long_as_its_longer_side():
    # 20 rows at length 16, 10 at 32, 5 at 64.
    pairs = [([4] * 3, [5] * 40), ([6] * 17, []), ([7] * 15, [8] * 15)]
    (long,) = batches(pairs[:1])
    assert long.source_BxS.shape == long.target_outputs_BxT.shape == (1, 64)
    assert long.source_BxS[0].tolist() == [4] * 3 + [2] + [0] * 60
    assert long.target_outputs_BxT[0].tolist() == [5] * 40 + [2] + [0] * 23
    assert [b.source_BxS.shape for b in batches(pairs[1:])] == [(2, 32)]
    # With its eos the last one just fits the shortest.
    assert [b.source_BxS.shape for b in batches(pairs[2:])] == [(1, 16)]


def test_a_batch_is_filled_with_shorter_pairs_and_only_the_last_has_empty_rows():
    pairs = [([7], [7] * 40)] * 2 + [([8] * 20, [])] * 4 + [([9], [9])] * 6
    first, second = batches(pairs)
    assert first.source_BxS.shape == (5, 64)
    assert first.indices == (0, 1, 2, 3, 4)
    assert second.indices == (5, 6, 7, 8, 9, 10, 11)
    assert second.source_BxS.shape == (10, 32)
    assert not second.source_BxS[7:].any()
    assert not second.target_outputs_BxT[7:].any()


def test_few_pairs_get_few_rows_and_none_get_none():
    assert [b.source_BxS.shape for b in batches([([5], [6])] * 3)] == [(4, 16)]
    assert batches([]) == []


def test_the_bytes_of_the_logits_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "LOGITS_BYTES", 4 * V * 16 * 3)
    pairs = [([5], [6])] * 7 + [([5] * 70, [6])]
    shapes = [b.source_BxS.shape for b in batches(pairs)]
    # What is too long for the bound has a batch of its own.
    assert shapes == [(1, 128), (3, 16), (3, 16), (3, 16)]


def test_the_bound_is_256_mib_of_float32():
    # 1,813 slots of 37,000 words.
    (batch,) = batches(
        [([5] * 99, [])] * 14, config=DecodingConfig(), vocab_size=37_000
    )
    assert batch.source_BxS.shape == (14, 128)


def test_the_rows_are_a_multiple_of_the_devices_each_within_the_bound():
    # On each device 5 rows at length 64, 20 at 16.
    pairs = [([7], [7] * 40)] * 13 + [([9], [9])] * 60
    first, second = batches(pairs, devices=3)
    assert first.source_BxS.shape == (15, 64)
    assert first.indices == tuple(range(15))
    assert second.source_BxS.shape == (3 * 20, 16)
    assert second.indices == tuple(range(15, 73))
    assert [b.source_BxS.shape for b in batches(pairs[13:15], devices=7)] == [(7, 16)]
    assert [b.source_BxS.shape for b in batches(pairs[13:30], devices=7)] == [(28, 16)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=90),
    st.integers(1, 8),
)
def test_every_pair_comes_once_within_the_bound(counts, devices):
    pairs = [([4 + n] * a, [5 + n] * b) for n, (a, b) in enumerate(counts)]
    found = batches(pairs, max_length=61, devices=devices)
    assert sorted(index for b in found for index in b.indices) == [*range(len(pairs))]
    assert len({b.source_BxS.shape for b in found}) <= 3
    for number, batch in enumerate(found):
        rows, length = batch.source_BxS.shape
        assert batch.target_outputs_BxT.shape == (rows, length)
        assert rows % devices == 0
        assert rows // devices * length <= CONFIG.tokens_per_batch
        assert len(batch.indices) == rows or number == len(found) - 1
        for row, index in enumerate(batch.indices):
            for side, tokens in zip(batch[:2], pairs[index], strict=True):
                np.testing.assert_array_equal(side[row][side[row] != 0], [*tokens, 2])
