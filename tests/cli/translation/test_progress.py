import gzip
import time

import pytest

from t2t_jax.cli.translation import progress
from t2t_jax.cli.translation.progress import TranslationProgress, total_lines


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_long_one_tells_at_times_when_it_will_end(clock, capsys):
    with TranslationProgress(1_000, done=400) as report:
        for _ in range(3):
            clock[0] += 5
            report.advance(100)
    assert capsys.readouterr().err.splitlines()[0] == (
        "translated 600/1,000 lines (60 %)  20 lines/s  ETA 0:00:20"
    )


def test_lines_are_counted_where_a_file_can_be_read_twice(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"a\nb\nc")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "broken.gz").write_bytes(b"a\nb\n")
    assert total_lines(str(tmp_path / "a")) == 3
    assert total_lines(str(tmp_path / "b.gz")) == 2
    for name in ("-", "/dev/null", str(tmp_path / "broken.gz"), str(tmp_path / "no")):
        assert total_lines(name) is None
    monkeypatch.setattr(progress, "_COUNTED_BYTES", 4)
    assert total_lines(str(tmp_path / "a")) is None
