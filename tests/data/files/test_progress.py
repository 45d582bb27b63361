import io
import time

import pytest

from t2t_jax.data.files.progress import ProgressBar, ProgressLabels, progress_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_on_a_pipe_there_is_a_line_at_times(clock):
    said = []
    with ProgressBar(said.append, every_seconds=10, stream=io.StringIO()).start(
        total=1000, done=400
    ) as progress:
        for _ in range(5):
            clock[0] += 4
            progress.advance(80)
    # After 12 s there were 240 pairs more than the 400 that took no time.
    assert said == ["encoded 640/1,000 pairs (64 %)  20 pairs/s  ETA 0:00:18"]


@pytest.mark.parametrize(
    ("total", "before", "too_few"), [(1_000, 400, 59), (10**7, 9, 9_999)]
)
def test_no_eta_is_estimated_from_the_first_few(clock, total, before, too_few):
    said = []
    progress = ProgressBar(said.append, every_seconds=0, stream=io.StringIO())
    with progress.start(total=total, done=before):
        clock[0] += 5
        progress.advance(too_few)
        progress.advance(1)
    assert ["ETA" in line for line in said] == [False, True]


def test_on_a_terminal_there_is_a_bar_and_no_line():
    said, screen = [], Terminal()
    with ProgressBar(said.append, every_seconds=0, stream=screen).start(
        total=1000
    ) as progress:
        progress.advance(250)
        progress._bar.refresh()
    assert said == []
    assert "250/1000" in screen.getvalue()
    assert "pairs/s" in screen.getvalue()


def test_without_a_log_nothing_is_written(clock):
    screen = Terminal()
    progress = ProgressBar(stream=screen)
    assert not progress.is_enabled
    with progress.start(total=10):
        clock[0] += 100
        progress.advance(5)
    progress.log("something")
    assert screen.getvalue() == ""


def test_of_an_unknown_number_there_is_no_eta():
    assert "ETA" not in progress_line(7, None, rate=3.0)
    assert "ETA 1:02:03" in progress_line(0, 3723, rate=1.0)
    lines = ProgressLabels("translated", "lines")
    assert progress_line(1, None, rate=3, work=lines).startswith("translated 1 line  ")
    assert "1/1 line (100 %)" in progress_line(1, 1, rate=3, work=lines)
    assert "ETA 0:00:00" in progress_line(12, 10, rate=0.0)  # more than was counted


def test_an_estimated_number_is_marked_and_never_exceeded(clock):
    said = []
    progress = ProgressBar(said.append, every_seconds=0, stream=io.StringIO())
    with progress.start(total=100, is_exact=False):
        clock[0] += 1
        progress.advance(50)
        progress.advance(70)
    assert said == [
        "encoded 50/about 100 pairs (50 %)  50 pairs/s  ETA 0:00:01",
        "encoded 120/about 120 pairs (100 %)  120 pairs/s  ETA 0:00:00",
    ]
    screen = Terminal()
    with ProgressBar(said.append, stream=screen).start(total=9, is_exact=False) as bar:
        bar._bar.refresh()
    assert "of about" in screen.getvalue()


def test_work_without_a_known_end_is_logged_at_intervals():
    said = []
    progress = ProgressBar(said.append, every_seconds=0.02)

    def fail() -> None:
        with progress.heartbeat("Learning"):
            time.sleep(0.2)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert said
    assert set(said) == {"Learning: 0:00:00 so far …"}
    before = len(said)
    time.sleep(0.1)
    assert len(said) == before


def test_short_work_is_not_logged(clock):
    said = []
    with ProgressBar(said.append, every_seconds=10).heartbeat("Learning"):
        pass
    with ProgressBar().heartbeat("Learning"):
        pass
    assert said == []
