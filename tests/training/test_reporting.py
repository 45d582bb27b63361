import io
import json

import pytest

from t2t_jax.training import reporting
from t2t_jax.training.reporting import (
    Console,
    MetricsFile,
    Reporter,
    clock,
    read_metrics,
)


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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def write(path, *steps, torn=""):
    path.write_text(
        "".join(f'{{"step": {n}, "kind": "train"}}\n' for n in steps) + torn
    )


def steps_in(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_what_is_appended_is_there_at_once(path):
    metrics = MetricsFile(path, step=0)
    metrics.append({"step": 3, "kind": "train", "signature": "größer"})
    assert list(read_metrics(path)) == [
        {"step": 3, "kind": "train", "signature": "größer"}
    ]
    metrics.close()


def test_records_after_the_restored_step_are_cut(path):
    write(path, 3, 5, 7, 11)
    metrics = MetricsFile(path, step=7)
    assert metrics.records == 3
    metrics.append({"step": 8})
    metrics.close()
    assert steps_in(path) == [3, 5, 7, 8]


def test_a_torn_last_line_is_dropped_and_the_next_record_starts_a_line(path):
    write(path, 3, 5, torn='{"step": 7, "lo')
    metrics = MetricsFile(path, step=100)
    metrics.append({"step": 7})
    metrics.close()
    assert steps_in(path) == [3, 5, 7]


def test_reading_leaves_a_torn_last_line_alone(path):
    write(path, 3, torn='{"st')
    assert [record["step"] for record in read_metrics(path)] == [3]
    assert path.read_text().endswith('{"st')


def test_a_file_that_is_not_there_has_no_records(path):
    assert list(read_metrics(path)) == []


def test_cutting_leaves_nothing_else_in_the_directory(path):
    write(path, 3)
    MetricsFile(path, step=3).close()
    assert [p.name for p in path.parent.iterdir()] == ["metrics.jsonl"]


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


def test_the_end_of_a_run_is_forgotten_when_it_goes_on(path):
    write(path, 3)
    with path.open("a") as file:
        file.write('{"step": 3, "kind": "final"}\n')
    MetricsFile(path, step=3).close()
    assert [record["kind"] for record in read_metrics(path)] == ["train"]


def test_a_damaged_line_in_the_middle_costs_that_line_only(path):
    write(path, 3)
    with path.open("ab") as file:
        file.write(b"\xff{\n[1]\n")
    with path.open("a") as file:
        file.write('{"step": 5, "kind": "train"}\n')
    MetricsFile(path, step=9).close()
    assert steps_in(path) == [3, 5]


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


def test_a_report_goes_to_the_file_and_the_events(tmp_path):
    reporter = Reporter(tmp_path, step=0)
    reporter.write(record_of(50))
    reporter.write({"step": 50, "kind": "eval", "bleu": 31.5, "bleu_signature": "x"})
    reporter.close()
    records = list(read_metrics(tmp_path / "metrics.jsonl"))
    assert [(r["step"], r["kind"]) for r in records] == [(50, "train"), (50, "eval")]
    events = next(tmp_path.glob("events.out.*")).read_bytes()
    assert b"train/loss" in events
    assert b"eval/bleu" in events
    assert b"signature" not in events


def test_a_listener_that_leaves_does_not_end_the_run():
    class Gone(io.StringIO):
        tried = 0

        def write(self, text):
            self.tried += 1
            raise BrokenPipeError

    stream = Gone()
    console = console_of(stream)
    console.say("one")
    console.show(record_of(50))
    console.close()
    assert stream.tried == 1  # and then no more
