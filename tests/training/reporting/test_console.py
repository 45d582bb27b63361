import errno
import io
import re

import pytest

from t2t_jax.training.reporting import console as reporting
from t2t_jax.training.reporting.console import Console


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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def console_of(stream, total=200, start=0, every_seconds=0.0, **how):
    console = Console(total, every_seconds=every_seconds, stream=stream, **how)
    console.start(start)
    return console


EVALUATED = {
    "step": 8,
    "loss": 2.5,
    "perplexity": 7.25,
    "sentences": 64,
    "seconds": 3.0,
}


def test_a_line_on_a_pipe_has_each_figure_with_its_unit():
    stream = io.StringIO()
    console = console_of(stream)
    console.show(record_of(49))
    console.show(record_of(50))
    line = stream.getvalue().splitlines()[-1] + "\n"
    for part in (
        "step 50/200 (25 %)",
        "loss (smoothed) 2.500",
        "perplexity (not smoothed) 7.25",
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


def test_loss_and_perplexity_are_labelled_wherever_they_stand_side_by_side():
    stream = io.StringIO()
    console = console_of(stream)
    console.show(record_of(50))
    console.log_evaluation({**EVALUATED, "bleu": 1.0}, "")
    shown, evaluated = stream.getvalue().splitlines()
    for line in (shown, evaluated):
        assert "loss (smoothed) 2.500  perplexity (not smoothed) 7.25" in line
    assert "development loss" in evaluated


def test_without_label_smoothing_nothing_is_called_smoothed():
    stream = io.StringIO()
    console_of(stream, smoothed=False).show(record_of(50))
    assert "loss 2.500  perplexity 7.25" in stream.getvalue()


def test_every_line_of_a_log_begins_with_utc_and_the_time_since_the_start():
    stream = io.StringIO()
    console = console_of(stream)
    console.log("one\n  more of one")
    console.show(record_of(50))
    first, more, second = stream.getvalue().splitlines()
    stamp = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \+0:00:00\] "
    assert re.match(stamp + "one$", first)
    assert more == "  more of one"
    assert re.match(stamp + "step 50/200", second)


def test_an_evaluation_without_bleu_says_why():
    stream = io.StringIO()
    console_of(stream).log_evaluation({**EVALUATED, "bleu_skipped": "no end"}, "x")
    assert "BLEU not computed  (64 sentences, 3 s)\n  no end.\nx" in stream.getvalue()


def test_how_far_an_evaluation_is_stands_in_the_bar_or_at_times_in_the_log(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = console_of(stream, every_seconds=10.0)
    console.begin("Evaluating")
    for second in range(100):
        now[0] = float(second)
        console.advance(f"translated {second}/100")
    told = [line.partition("] ")[2] for line in stream.getvalue().splitlines()]
    assert told == ["Evaluating", *(f"translated {n}/100" for n in (30, 60, 90))]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    console = console_of(terminal)
    console.advance("translated 7/100")
    console.close()
    assert "translated 7/100" in terminal.getvalue()


def test_a_terminal_is_shown_figures_each_second_and_a_pipe_as_configured():
    def seconds(stream):
        return Console(7, every_seconds=10.0, stream=stream).every_seconds

    assert seconds(io.StringIO()) == 10.0
    assert seconds(Terminal()) == 1.0


def test_the_time_left_is_judged_by_the_steps_of_this_process(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = console_of(stream, total=100, start=40)
    for step, seconds in ((45, 100.0), (50, 200.0), (55, 210.0)):
        now[0] = seconds
        console.show(record_of(step))
    # Without the first line, which includes compilation: 10 steps in 110 s, 45 to go.
    first, second, third = stream.getvalue().splitlines()
    assert "ETA" not in first
    assert second.endswith("ETA 0:16:40")
    assert third.endswith("ETA 0:08:15")


def test_a_terminal_gets_a_bar_that_leaves_the_text_said(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    console = console_of(stream)
    console.show(record_of(50))
    console.log("dev BLEU [31.5]")
    command = "python -m " + 50 * "long "
    console.log(command)
    console.advance("translated 5/7")
    console.log_evaluation(EVALUATED, "")
    console.close()
    assert command in stream.getvalue()  # rich would break it
    *_, last = stream.getvalue().split("step 50/200")
    assert "perplexity" in last
    assert "translated" not in last
    assert "dev BLEU [31.5]" in stream.getvalue()
    assert "step 50/200" in stream.getvalue()


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
    console.log("one")
    console.show(record_of(50))
    stream.fails = False
    console.log("two")
    console.close()
    assert stream.getvalue().endswith("] two\n")
    assert stream.getvalue().count("\n") == 1


class Utf8Terminal(Terminal):
    encoding = "utf-8"


def evaluated(stream, *, history=()):
    """Shows what a console writes at an evaluation after four records."""
    console = Console(200, every_seconds=0.0, stream=stream)
    console.start(0, history=history)
    for step, loss in ((10, 8.0), (20, 4.0), (30, 2.0), (40, 1.0)):
        console.remember({**record_of(step), "loss": loss})
    console.remember({**EVALUATED, "kind": "eval", "bleu": 3.25})
    console.log_evaluation({**EVALUATED, "bleu": 30.5}, "")
    console.close()
    return stream.getvalue()


def test_a_terminal_shows_loss_and_bleu_so_far_at_an_evaluation(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = evaluated(Utf8Terminal())
    assert "loss █▄▂▁ 8.00 to 1.00  BLEU ▁█ 3.25 to 30.50" in shown


def test_a_resumed_run_shows_the_history_of_its_records(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    history = [{**record_of(5), "loss": 9.0}, {"step": 7, "kind": "skipped"}]
    shown = evaluated(Utf8Terminal(), history=history)
    assert "loss █▇▄▂▁ 9.00 to 1.00" in shown


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_elsewhere_there_is_no_sparkline(stream):
    def unread():
        yield pytest.fail("the history was read")

    assert not set("▁▂▃▄▅▆▇█") & set(evaluated(stream, history=unread()))


@pytest.mark.parametrize("total", [200, 100_000])
def test_each_number_has_its_name_in_a_bar_of_80_columns(monkeypatch, total):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Utf8Terminal()
    console = Console(total, every_seconds=0.0, stream=stream)
    console.start(0)
    for step in range(1, 101):
        console.remember({**record_of(step), "loss": 100.0 / step})
    console.show(record_of(99))
    console.show(record_of(100))
    console.close()
    *_, last = stream.getvalue().split("step 100/")
    for part in (
        *("loss 2.500 █▂▂▁▁▁▁▁", "perplexity 7.25", "lr 1.25e-03", "|grad| 0.75"),
        *("12,346 target tokens/s", "padding 3.5 %", "ETA "),
    ):
        assert part in last


def test_a_perplexity_beyond_a_billion_is_not_written_out():
    stream = io.StringIO()
    console_of(stream).show({**record_of(50), "perplexity": 1e304})
    assert "perplexity (not smoothed) > 1e9  lr" in stream.getvalue()


def test_an_interval_of_0_seconds_is_never(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = console_of(stream, every_seconds=0.0)
    for second in range(1000):
        now[0] = float(second)
        console.advance("translated 1/100")
    assert (stream.getvalue(), console.every_seconds) == ("", float("inf"))


def test_control_characters_of_samples_do_not_reach_the_terminal():
    stream = io.StringIO()
    console_of(stream).log_evaluation(EVALUATED, "a\tb\x1b[2J\x9b31m\r\x7f")
    assert stream.getvalue().endswith("\na\tb\\x1b[2J\\x9b31m\\x0d\\x7f\n")
