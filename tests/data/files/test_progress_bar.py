import io
import sys

import pytest

from t2t_jax.data.files.progress_bar import ProgressBar, ProgressLabels, print_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_on_a_terminal_there_is_a_bar_and_no_line():
    said, screen = [], Terminal()
    with ProgressBar(said.append, every_seconds=0.1, stream=screen).start(
        total=1000
    ) as progress:
        progress.advance(125)
        progress.advance(125)
    assert said == []
    assert "encoded 250/1,000 pairs" in screen.getvalue()
    assert "pairs/s" in screen.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_results_are_never_printed_to_stderr(monkeypatch, is_terminal):
    out, screen = (Terminal() if is_terminal else io.StringIO()), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    with ProgressBar(print_line, stream=screen).start(total=10):
        print("a result")
    # On one terminal they stand above the bar.
    assert ("a result" in screen.getvalue()) == is_terminal
    assert ("a result" in out.getvalue()) != is_terminal


def test_a_narrow_terminal_has_the_numbers_and_the_time_left(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    screen = Terminal()
    work = ProgressLabels("step")
    with ProgressBar(print_line, stream=screen, work=work) as progress:
        progress.start(total=100_000)
        progress.show("", done=1)
        clock[0] += 10
        progress.show("loss 2.5  perplexity 7.25  and so on", done=50_001)
    last = screen.getvalue().splitlines()[-2]
    assert "step 50,001/100,000" in last
    assert "50 %  loss" in last
    assert "… ETA 0:00:10" in last
