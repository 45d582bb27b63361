import pytest

from t2t_jax.quantities import format_clock, format_duration


@pytest.mark.parametrize(
    ("seconds", "clock", "duration"),
    [
        (0.4, "0:00:00", "0 s"),
        (101, "0:01:41", "2 min"),
        (6_000, "1:40:00", "1 h 40 min"),
        (90_000, "25:00:00", "25 h"),
        (360_000, "100:00:00", "4.2 days"),
    ],
)
def test_a_time_is_a_clock_or_worded_for_people(seconds, clock, duration):
    assert (format_clock(seconds), format_duration(seconds)) == (clock, duration)
