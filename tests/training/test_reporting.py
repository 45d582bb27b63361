import errno
import io

import pytest

from t2t_jax.training import reporting
from t2t_jax.training.reporting import Console, clock


def record_of(step, kind="train"):
    return {
        "step": step,
        "kind": kind,
        "loss": 2.5,
        "perplexity": 7.25,
        "learning_rate": 0.00125,
        "gradient_norm": 0.75,
        "target_tokens_per_second": 12_345.6,
        "padding_fraction": 0.035,
    }


def console_of(stream, total=200, start=0, every_seconds=0.0):
    console = Console(total, every_seconds=every_seconds, stream=stream)
    console.start(start)
    return console


def test_a_line_on_a_pipe_has_each_figure_with_its_unit():
    stream = io.StringIO()
    console = console_of(stream)
    console.show(record_of(50))
    line = stream.getvalue()
    for part in (
        "step 50/200 (25 %)",
        "loss 2.500",
        "ppl 7.25",
        "lr 1.25e-03",
        "|grad| 0.75",
        "12,346 target tokens/s",
        "padding 3.5 %",
        "ETA ",
    ):
        assert part in line
    assert line.endswith("\n")
    assert "\x1b" not in line
    assert "\r" not in line


def test_a_terminal_is_shown_figures_each_second_and_a_pipe_as_configured():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def seconds(stream):
        return Console(7, every_seconds=10.0, stream=stream).every_seconds

    assert seconds(io.StringIO()) == 10.0
    assert seconds(Terminal()) == 1.0


def test_the_time_left_is_judged_by_the_steps_of_this_process(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = console_of(stream, total=100, start=40)
    now[0] = 20.0
    console.show(record_of(50))  # 10 steps in 20 s, 50 steps to go
    assert stream.getvalue().rstrip().endswith("ETA 0:01:40")


def test_a_terminal_gets_a_bar_that_leaves_the_text_said(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    console = console_of(stream)
    console.show(record_of(50))
    console.say("dev BLEU [31.5]")
    console.close()
    assert "dev BLEU [31.5]" in stream.getvalue()
    assert "step 50/200" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3671, "1:01:11"), (360_000, "100:00:00")],
)
def test_durations_are_hours_minutes_seconds(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize("error", [BrokenPipeError, OSError(errno.ENOSPC, "full")])
def test_a_line_that_cannot_be_written_does_not_end_the_run(error):
    class Failing(io.StringIO):
        fails = True

        def write(self, text):
            if self.fails:
                raise error
            return super().write(text)

    stream = Failing()
    console = console_of(stream)
    console.say("one")
    console.show(record_of(50))
    stream.fails = False
    console.say("two")
    console.close()
    assert stream.getvalue() == "two\n"
