import dataclasses

import numpy as np

from t2t_jax.data.encoding import Encoded, EncodedSide
from t2t_jax.data.filters import KEPT, REASONS
from t2t_jax.data.tally import Tally
from t2t_jax.data.workers import Chunk

EMPTY = REASONS.index("empty")


def side(*lengths, unknown=0):
    tokens = np.full(sum(lengths), 9, np.uint16)
    tokens[:unknown] = 3
    return EncodedSide(tokens, np.array(lengths, np.int32), np.zeros(len(lengths)))


def chunk(first, *sources):
    return Chunk(0, first, list(sources), ["ziel"] * len(sources))


def test_a_chunk_is_counted():
    reasons = np.array([EMPTY, KEPT, KEPT, EMPTY], np.int8)
    encoded = Encoded(reasons, side(2, 5, unknown=3), side(3, 3))
    tally = Tally.of_chunk(chunk(11, "", "a", "b", "\t"), encoded)
    assert tally.counts["read"] == 4
    assert tally.counts["kept"] == tally.counts["empty"] == 2
    assert tally.counts["too_long"] == tally.counts["duplicates"] == 0
    assert tally.unknown == {"source": 3, "target": 0}
    assert tally.lengths == {"source": [0, 0, 1, 0, 0, 1], "target": [0, 0, 0, 2]}
    assert [pair["line"] for pair in tally.examples["empty"]] == [11, 14]
    assert tally.examples["empty"][1]["source"] == "\t"


def test_figures_add_up_and_the_first_three_examples_stay():
    reasons = np.array([EMPTY, EMPTY], np.int8)
    none = Encoded(reasons, side(), side())
    first = Tally.of_chunk(chunk(1, "", ""), none)
    second = Tally.of_chunk(chunk(3, "", " " * 200), none)
    total = Tally.total([first, second])
    assert total.counts["empty"] == 4
    assert [pair["line"] for pair in total.examples["empty"]] == [1, 2, 3]
    assert len(second.examples["empty"][1]["source"]) == 80


def test_lengths_of_unlike_range_add_up():
    one = Tally(lengths={"source": [0, 1], "target": [0, 0, 5]})
    other = Tally(lengths={"source": [0, 2, 7], "target": []})
    assert Tally.total([one, other]).lengths == {
        "source": [0, 3, 7],
        "target": [0, 0, 5],
    }


def test_a_tally_is_what_it_was_after_json():
    tally = Tally(unknown={"source": 2, "target": 3})
    assert Tally(**tally.to_dict()) == tally
    assert dataclasses.replace(tally, unknown={}) != tally
