import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import (
    max_batch_rows,
    source_batches,
    source_lengths,
)
from t2t_jax.errors import ConfigError

CONFIG = DecodingConfig(
    max_source_length=61, max_extra_tokens=3, tokens_per_batch=5 * 64
)


def batches(sources, config=CONFIG, **how):
    return list(source_batches(sources, config, pad=0, eos=2, **how))


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [
        (1024, (16, 32, 64, 128, 256, 512, 1024)),
        (4096, (32, 64, 128, 256, 512, 1024, 2048, 4096)),
        (61, (16, 31, 61)),
        (2, (2,)),
    ],
)
def test_lengths_are_halved_down_to_16_and_never_more_than_8(longest, lengths):
    assert source_lengths(longest) == lengths


def test_a_batch_is_filled_with_shorter_sentences_and_only_the_last_has_empty_rows():
    # 5 rows at length 61, 9 at 31, 16 at 16.
    sources = [[7] * 40] * 2 + [[8] * 20] * 3 + [[9] * 5] * 6
    first, second = batches(sources)
    assert first.source_BxS.shape == (5, 61)
    assert first.indices == (0, 1, 2, 3, 4)
    assert second.source_BxS.shape == (16, 16)
    assert second.indices == (5, 6, 7, 8, 9, 10)
    assert second.source_BxS[5].tolist() == [9] * 5 + [2] + [0] * 10
    assert not second.source_BxS[6:].any()


def test_few_sentences_get_few_rows():
    assert [b.source_BxS.shape for b in batches([[5]])] == [(1, 16)]
    assert [b.source_BxS.shape for b in batches([[5]] * 3)] == [(4, 16)]
    assert batches([]) == []


def test_calls_of_any_size_have_few_shapes_where_rows_grow_fast():
    rows = [
        batch.source_BxS.shape[0]
        for count in range(1, 41)
        for batch in batches([[5]] * count, row_growth=4)
    ]
    assert max_batch_rows(CONFIG) == 16
    assert rows == [1] + [4] * 3 + [16] * (12 + 2 * 16 + 3 * 8)
    assert [b.indices for b in batches([[5]] * 3, row_growth=4)] == [(0, 1, 2)]


def test_the_rows_are_a_multiple_of_the_devices_each_within_the_bound():
    # On each device 5 rows at length 61, 16 at 16.
    sources = [[7] * 40] * 13 + [[9] * 5] * 20
    first, second = batches(sources, devices=3)
    assert first.source_BxS.shape == (15, 61)
    assert first.indices == tuple(range(15))
    assert second.source_BxS.shape == (3 * 16, 16)
    assert second.indices == tuple(range(15, 33))
    # Fewer sentences than devices, and a few more.
    assert [b.source_BxS.shape for b in batches([[5]] * 2, devices=7)] == [(7, 16)]
    assert [b.source_BxS.shape for b in batches([[5]] * 17, devices=7)] == [(28, 16)]
    assert batches([], devices=7) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=90), st.integers(1, 8))
def test_every_sentence_comes_once_within_the_bound(counts, devices):
    sources = [[4 + number] * count for number, count in enumerate(counts)]
    found = batches(sources, devices=devices)
    assert sorted(index for b in found for index in b.indices) == [*range(len(counts))]
    assert len({b.source_BxS.shape for b in found}) <= 8
    for number, batch in enumerate(found):
        rows, length = batch.source_BxS.shape
        assert rows % devices == 0
        assert rows // devices * (length + 3) <= CONFIG.tokens_per_batch
        assert len(batch.indices) == rows or number == len(found) - 1
        for row, index in enumerate(batch.indices):
            real = batch.source_BxS[row][batch.source_BxS[row] != 0]
            np.testing.assert_array_equal(real, [*sources[index], 2])


def test_rows_are_as_long_as_the_sources_where_outputs_are_shorter():
    config = DecodingConfig(
        max_source_length=16, max_length_ratio=0.25, tokens_per_batch=64
    )
    assert max_batch_rows(config) == 4
    assert {b.source_BxS.shape for b in batches([[7] * 9] * 8, config)} == {(4, 16)}
    with pytest.raises(ConfigError, match=r"one longest source, max_source_l.* = 65"):
        dataclasses.replace(config, max_source_length=65)


def test_rows_are_as_long_as_the_outputs_that_the_ratio_allows():
    config = DecodingConfig(
        max_source_length=61,
        max_extra_tokens=200,
        max_length_ratio=2.0,
        tokens_per_batch=320,
    )
    assert max_batch_rows(config) == 320 // 32
    shapes = [
        b.source_BxS.shape for b in batches([[7] * 40] * 2 + [[9] * 5] * 9, config)
    ]
    assert shapes == [(2, 61), (10, 16)]
