"""What is timed alike of every contestant of `decode.py`, on a clock of our own.

Seen to fail: with the way that is first instead of the fastest, without the check of
lengths, and with the shortest sentences first.
"""

import pytest
from decode_forced import ForcedOutputs
from decode_free import FreeOutputs, longest_first
from decode_work import DecodeWork, MadeUpWords, Way

from t2t_jax.model.config import TransformerConfig

CONFIG = TransformerConfig(vocab_size=31)


class Stopwatch:
    """A clock that says what it is told to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class Forced(ForcedOutputs):
    """Takes a second a batch, and a hundredth a sentence; notes what it was given."""

    def __init__(self, clock, *, said=5, **keys):
        super().__init__(
            DecodeWork(config=CONFIG, device="cpu", rows=23, length=5, **keys)
        )
        self.clock, self.said, self.calls = clock, said, []

    def lengths(self, sources, way):
        self.calls.append((sources, way))
        self.clock.now += -(-len(sources) // way.at_once) + 0.01 * len(sources)
        return [5] * (len(sources) - 1) + [self.said]

    def facts(self):
        return {}

    def peak_megabytes(self):
        return 0.0


@pytest.fixture
def clock(monkeypatch):
    clock = Stopwatch()
    monkeypatch.setattr("decode_forced.time", clock)
    monkeypatch.setattr("decode_free.time", clock)
    return clock


def test_the_fastest_way_is_found_and_kept(clock):
    forced = Forced(clock, cuts=(2, 7, 19, 64))
    told = forced.prepare(23)
    assert (told["at_once"], told["workers"]) == (23, 1)
    assert told["tried"] == {"2 x 1": 2.0, "7 x 1": 6.5, "19 x 1": 16.0, "23 x 1": 18.7}
    assert told["first_seconds"] == pytest.approx(4 + 0.01 * (2 + 7 + 19 + 23))
    assert told["call_seconds"] == pytest.approx(1.23)
    forced.prepare(7)
    assert forced.seconds(23, 2) == pytest.approx([1.23, 1.23])
    assert [str(way) for _, way in forced.calls[-2:]] == ["23 x 1"] * 2
    assert forced.seconds(7, 1) == pytest.approx([1.07])
    assert str(forced.calls[-1][1]) == "7 x 1"


def test_sources_are_words_the_same_for_all_and_never_padded(clock):
    one, other = Forced(clock), Forced(clock)
    for forced in (one, other):
        forced.prepare(23)
    (sources, _), (others, _) = one.calls[-1], other.calls[-1]
    assert sources.shape == (23, 5)
    assert sources.min() >= 4
    assert sources.max() <= 30
    assert (sources == others).all()


def test_outputs_of_another_length_are_no_contest(clock):
    forced = Forced(clock, said=4)
    message = "23 outputs of 5 tokens each were asked for, and came as 23 of 4 to 5"
    with pytest.raises(ValueError, match=message):
        forced.prepare(23)


class Free(FreeOutputs):
    """Takes a second a batch; with two workers half of it, but for single lines."""

    def __init__(self, clock, ways, lines):
        self._ways, self.clock = ways, clock
        super().__init__(
            DecodeWork(config=CONFIG, device="cpu", rows=1, length=1, lines=lines)
        )

    def ways(self):
        return self._ways

    def translations(self, lines):
        batches = -(-len(lines) // (self.way.at_once or 100))
        self.clock.now += batches / (self.way.workers if len(lines) > 1 else 1)
        return [line.upper() for line in lines], sum(map(len, lines))

    def facts(self):
        return {}

    def peak_megabytes(self):
        return 0.0


LINES = [f"line {number:03}" for number in range(600)]


def test_ways_with_text_are_compared_on_a_sample(clock):
    ways = [Way(at_once=50), Way(at_once=50, workers=2), Way(at_once=40, workers=2)]
    free = Free(clock, ways, LINES)
    told = free.prepare()
    # Every third line: 200 of them.
    assert told["tried"] == {"50 x 1": 50.0, "50 x 2": 100.0, "40 x 2": 80.0}
    assert (told["at_once"], told["workers"], told["first_seconds"]) == (50, 2, 6.0)
    assert free.translate() == (6.0, 8 * 600)
    assert free.texts() == [line.upper() for line in LINES]
    assert free.first_line(LINES[:2]) == [1.0, 1.0]


def test_one_way_is_not_compared_with_itself(clock):
    free = Free(clock, [Way(at_once=0)], LINES)
    told = free.prepare()
    assert told["tried"] == {}
    assert clock.now == told["first_seconds"] == 6.0


def test_batches_hold_every_sentence_once_the_longest_first():
    lengths = [3, 9, 1, 9, 4, 2, 7]
    batches = [batch.tolist() for batch in longest_first(lengths, at_once=3)]
    assert batches == [[1, 3, 6], [4, 0, 5], [2]]


def test_made_up_words_are_spelt_differently():
    words = MadeUpWords(31)
    assert len(set(words.pieces(range(words.size)))) == 31
