import dataclasses

import numpy as np

from t2t_jax.data.token_cache.encoder import Encoded, EncodedSentences
from t2t_jax.data.token_cache.filters import KEPT, REASONS
from t2t_jax.data.token_cache.statistics import CorpusStats
from t2t_jax.data.token_cache.worker_pool import Chunk

EMPTY = REASONS.index("empty")


def side(*lengths, unknown=0):
    tokens = np.full(sum(lengths), 9, np.uint16)
    tokens[:unknown] = 3
    return EncodedSentences(tokens, np.array(lengths, np.int32), np.zeros(len(lengths)))


def chunk(first, *sources):
    return Chunk(0, first, list(sources), ["ziel"] * len(sources))


def test_a_chunk_is_counted():
    reasons = np.array([EMPTY, KEPT, KEPT, EMPTY], np.int8)
    encoded = Encoded(reasons, side(2, 5, unknown=3), side(3, 3))
    stats = CorpusStats.of_chunk(chunk(11, "", "a", "b", "\t"), encoded)
    assert stats.counts["read"] == 4
    assert stats.counts["kept"] == stats.counts["empty"] == 2
    assert stats.counts["too_long"] == stats.counts["duplicates"] == 0
    assert stats.unknown == {"source": 3, "target": 0}
    assert stats.lengths == {"source": [0, 0, 1, 0, 0, 1], "target": [0, 0, 0, 2]}
    assert [pair["line"] for pair in stats.examples["empty"]] == [11, 14]
    assert stats.examples["empty"][1]["source"] == "\t"


def test_figures_add_up_and_the_first_three_examples_stay():
    reasons = np.array([EMPTY, EMPTY], np.int8)
    none = Encoded(reasons, side(), side())
    first = CorpusStats.of_chunk(chunk(1, "", ""), none)
    second = CorpusStats.of_chunk(chunk(3, "", " " * 200), none)
    total = CorpusStats.total([first, second])
    assert total.counts["empty"] == 4
    assert [pair["line"] for pair in total.examples["empty"]] == [1, 2, 3]
    assert len(second.examples["empty"][1]["source"]) == 80


def test_lengths_of_unlike_range_add_up():
    one = CorpusStats(lengths={"source": [0, 1], "target": [0, 0, 5]})
    other = CorpusStats(lengths={"source": [0, 2, 7], "target": []})
    assert CorpusStats.total([one, other]).lengths == {
        "source": [0, 3, 7],
        "target": [0, 0, 5],
    }


def test_a_tally_is_what_it_was_after_json():
    stats = CorpusStats(unknown={"source": 2, "target": 3})
    assert CorpusStats(**stats.to_dict()) == stats
    assert dataclasses.replace(stats, unknown={}) != stats
