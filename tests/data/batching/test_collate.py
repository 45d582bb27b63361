import numpy as np

from t2t_jax.data.batching.collate import collate
from t2t_jax.data.batching.planner import PlannedBatch
from t2t_jax.data.token_cache.token_cache import TokenCache, TokenSide
from t2t_jax.types import BatchShard


def hand_made(*pairs):
    def side(sentences):
        tokens = np.array([token for ids in sentences for token in ids], np.uint16)
        return TokenSide(tokens, np.cumsum([0, *map(len, sentences)]))

    sources, targets = zip(*pairs, strict=True)
    return TokenCache(side(sources), side(targets), np.arange(len(pairs)), {})


def test_a_packed_batch_as_drawn_by_hand():
    pairs = ([11, 2], [21, 22, 23, 2]), ([12, 13, 2], [24, 2]), ([14, 2], [2])
    planned = PlannedBatch(np.array([1, 0, 2]), np.array([0, 0, 1]), shape=(2, 7))
    batch = collate(hand_made(*pairs), planned, row_multiple=3)
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


def test_only_the_rows_that_are_wanted_are_made():
    cache = hand_made(*(([n, 2], [n + 10, 2]) for n in range(11, 15)))
    pairs, rows = np.array([3, 1, 0, 2]), np.array([0, 1, 1, 2])
    planned = PlannedBatch(pairs, rows, shape=(3, 4))
    whole = collate(cache, planned, row_multiple=6)
    for index, number in ((0, 3), (1, 6), (1, 2), (2, 3)):
        share = BatchShard(index=index, count=number)
        part = collate(cache, planned, row_multiple=6, share=share)
        rows = share.rows_of(6)
        assert part.rows.tolist() == list(range(6))[rows]
        for mine, all_of_it in zip(part, whole, strict=True):
            assert mine.tolist() == all_of_it[rows].tolist()
