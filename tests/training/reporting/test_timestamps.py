import re

from t2t_jax.training.reporting.timestamps import Timestamps


def test_a_record_gets_utc_and_the_seconds_since_the_start(monkeypatch):
    monkeypatch.setattr("time.gmtime", lambda: (2026, 11, 22, 9, 5, 3, 6, 326, 0))
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    timestamps = Timestamps()
    now[0] = 172.25
    assert timestamps.fields() == {"time": "2026-11-22T09:05:03Z", "elapsed": 72.25}
    assert timestamps.prefix(date=True) == "[2026-11-22 09:05:03Z +0:01:12]"
    assert re.fullmatch(r"\[09:05:03Z \+0:01:12\]", timestamps.prefix(date=False))
