import io

import pytest

from t2t_jax.training.reporting.sparkline import Thinned, shows_sparklines, sparkline


class Stream(io.StringIO):
    def __init__(self, encoding, is_terminal=True):
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self):
        return self._encoding

    def isatty(self):
        return self._is_terminal


@pytest.mark.parametrize(
    ("stream", "environ", "shown"),
    [
        (Stream("utf-8"), {}, True),
        (Stream("UTF-8"), {"TERM": "xterm-256color"}, True),
        (Stream("utf-8", is_terminal=False), {}, False),
        (Stream("ascii"), {}, False),
        (Stream("latin-1"), {}, False),
        (Stream(None), {}, False),
        (Stream("no such encoding"), {}, False),
        (Stream("utf-8"), {"TERM": "dumb"}, False),
        (Stream("utf-8"), {"NO_COLOR": "1"}, False),
        (Stream("utf-8"), {"NO_COLOR": ""}, True),
    ],
)
def test_only_a_terminal_with_the_characters_gets_blocks(stream, environ, shown):
    assert shows_sparklines(stream, environ) is shown


def test_long_series_are_averaged_in_groups_that_cover_all():
    falling = [1 / (1 + n) for n in range(1_009)]
    line = sparkline(falling, width=7)
    assert (len(line), line[0], line[-1]) == (7, "█", "▁")
    assert sorted(line, reverse=True) == list(line)


def test_a_series_keeps_its_mean_in_bounded_memory():
    series, values = Thinned(capacity=8), [float(n * n % 101) for n in range(1_024)]
    for value in values:
        series.add(value)
    means = series.values()
    assert len(means) <= 9
    assert sum(means) / len(means) == pytest.approx(sum(values) / len(values))


def test_the_last_values_of_a_series_are_not_lost():
    series = Thinned(capacity=2)
    for value in (1, 2, 3, 7):
        series.add(value)
    assert series.values() == [1.5, 5.0]
