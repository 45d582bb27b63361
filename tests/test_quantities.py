import pytest

from t2t_jax.quantities import format_clock, format_duration


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
