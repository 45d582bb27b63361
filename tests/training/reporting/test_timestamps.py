import re

import pytest

from t2t_jax.training.reporting.timestamps import (
    Timestamps,
    format_clock,
    format_duration,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3671, "1:01:11"), (360_000, "100:00:00")],
)
def test_a_clock_has_hours_minutes_seconds(seconds, text):
    assert format_clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (99, "99 s"),
        (101, "2 min"),
        (3_599, "1 h"),
        (6_000, "1 h 40 min"),
        (12 * 3_600, "12 h"),
        (90_000, "25 h"),
        (259_200, "3.0 days"),
    ],
)
def test_a_duration_is_worded_for_people(seconds, text):
    assert format_duration(seconds) == text


def test_a_record_gets_utc_and_the_seconds_since_the_start(monkeypatch):
    monkeypatch.setattr("time.gmtime", lambda: (2026, 11, 22, 9, 5, 3, 6, 326, 0))
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    timestamps = Timestamps()
    now[0] = 172.25
    assert timestamps.fields() == {"time": "2026-11-22T09:05:03Z", "elapsed": 72.25}
    assert timestamps.prefix(date=True) == "[2026-11-22 09:05:03Z +0:01:12]"
    assert re.fullmatch(r"\[09:05:03Z \+0:01:12\]", timestamps.prefix(date=False))
