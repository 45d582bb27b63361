import os
import shutil

import numpy as np
import pytest

from t2t_jax.data.token_cache.encoder import Chunk, Encoded, EncodedSentences
from t2t_jax.data.token_cache.shards import (
    examples_of,
    find_shards,
    shard_path,
    write_shard,
)


def piece(first, *lengths):
    """Makes pairs of which each second one, from the second on, is dropped."""

    def side(start):
        tokens = np.arange(start, start + sum(lengths), dtype=np.uint16)
        hashes = np.arange(first, first + len(lengths), dtype=np.uint64)
        return EncodedSentences(tokens, np.array(lengths, np.int32), hashes)

    reasons = np.array([5, 0] * len(lengths), np.int8)
    words = np.zeros(0, np.uint64)
    encoded = Encoded(0, first, reasons, side(100), side(200), words)
    chunk = Chunk(0, first, ["a"] * len(reasons), ["b"] * len(reasons))
    return encoded._replace(examples=examples_of(chunk, encoded))


@pytest.fixture
def shards(tmp_path):
    pieces = [[piece(1, 3, 2), piece(5, 7)], [piece(7)], [piece(7, 5, 2)]]
    return [
        write_shard(shard_path(tmp_path, number), some)
        for number, some in enumerate(pieces)
    ]


@pytest.mark.parametrize("damage", ["cut", "flip", "count"])
def test_from_a_damaged_shard_on_all_are_made_again(shards, tmp_path, damage):
    place = shard_path(tmp_path, 2)
    tokens = place / "source.tokens"
    if damage == "cut":
        os.truncate(tokens, 2)
    elif damage == "flip":  # of the right size, as a failing disk may leave it
        tokens.write_bytes(
            bytes([tokens.read_bytes()[0] ^ 1]) + tokens.read_bytes()[1:]
        )
    elif damage == "count":
        record = (place / "shard.json").read_text()
        damaged = record.replace('"reasons": [2,', '"reasons": [3,')
        assert damaged != record
        (place / "shard.json").write_text(damaged)
    assert find_shards(tmp_path) == shards[:2]
    shutil.rmtree(shard_path(tmp_path, 0))
    assert find_shards(tmp_path) == []
