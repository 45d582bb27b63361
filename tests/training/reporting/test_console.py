import io
import re
from types import SimpleNamespace

import pytest

from t2t_jax.training.reporting import console as reporting
from t2t_jax.training.reporting.console import Console, shows_sparklines


class Terminal(io.StringIO):
    encoding = "utf-8"

    def __init__(self, encoding="utf-8", is_terminal=True):
        super().__init__()
        self.encoding, self.isatty = encoding, lambda: is_terminal


TRAINED = {
    **{"step": 50, "kind": "train", "loss": 2.5, "perplexity": 7.25},
    **{"learning_rate": 0.00125, "gradient_norm": 0.75, "padding_fraction": 0.035},
    "target_tokens_per_second": 12_345.6,
}
EVALUATED = dict(step=8, loss=2.5, perplexity=7.25, sentences=64, seconds=3.0)
STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \+0:00:00\] "


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(reporting.time, "monotonic", lambda: clock.now)
    return clock


def console_of(stream, *, total=200, start=0, history=(), seconds=0.0, **how):
    console = Console(total, every_seconds=seconds, stream=stream, **how)
    console.start(start, history=history)
    return console


def lines_of(use, **how):
    """Returns what a console writes to a pipe."""
    stream = io.StringIO()
    use(console_of(stream, **how))
    return stream.getvalue().splitlines()


def test_a_line_has_the_time_and_each_figure_with_its_unit():
    def use(console):
        console.log("one\n  more of one")
        console.show({**TRAINED, "step": 49})
        console.show({**TRAINED, "perplexity": 1e304})

    one, more, first, second = lines_of(use)
    assert re.match(STAMP + "one$", one)
    assert more == "  more of one"
    assert re.match(STAMP + r"step 49/200 \(24 %\) .*loss \(smoothed\) 2\.500", first)
    assert "perplexity (not smoothed) 7.25  lr 1.25e-03  |grad| 0.75" in first
    assert "12,346 target tokens/s  padding 3.5 %" in first
    assert "(not smoothed) > 1e9  lr" in second
    assert "ETA " in second
    assert not {"\x1b", "\r"} & set(first + second)


def test_an_evaluation_has_its_scores_or_says_why_not():
    def use(console):
        console.log_evaluation({**EVALUATED, "bleu": 1.0}, "")
        console.log_evaluation(
            {**EVALUATED, "bleu_skipped": "no end"}, "x\x1b[2J\x9b\r"
        )

    scored, skipped, why, samples = lines_of(use)
    assert "development loss (smoothed) 2.500  perplexity (not smoothed)" in scored
    assert "BLEU 1.00" in scored
    assert skipped.endswith("BLEU not computed  (64 sentences, 3 s)")
    assert why == "  no end."
    assert samples == r"x\x1b[2J\x9b\r"  # no control characters for the terminal


def test_the_time_left_is_judged_by_the_steps_of_this_process(clock):
    def use(console):
        for step, clock.now in ((45, 100.0), (50, 200.0), (55, 210.0)):
            console.show({**TRAINED, "step": step})

    # Without the first line, which includes compilation: 10 steps in 110 s, 45 to go.
    first, second, third = lines_of(use, total=100, start=40)
    assert "ETA" not in first
    assert second.endswith("ETA 0:16:40")
    assert third.endswith("ETA 0:08:15")


def test_a_terminal_gets_a_bar_that_leaves_the_text_said():
    stream = Terminal()
    console = console_of(stream)
    console.show(TRAINED)
    command = "python -m [31.5] " + 50 * "long "
    console.log(command)
    console.advance("translated 5/7")
    console.log_evaluation(EVALUATED, "")
    console.close()
    assert command in stream.getvalue()  # rich would break it
    *_, last = stream.getvalue().split("step 50/200")
    assert "perplexity" in last
    assert "translated" not in last


def test_a_terminal_shows_loss_and_bleu_of_the_run_so_far():
    stream, before = Terminal(), {"step": 7, "kind": "skipped"}
    console = console_of(stream, history=[{**TRAINED, "loss": 9.0}, before])
    for loss in (8.0, 4.0, 2.0, 1.0):
        console.remember({**TRAINED, "loss": loss})
    console.remember({**EVALUATED, "kind": "eval", "bleu": 3.25})
    console.log_evaluation({**EVALUATED, "bleu": 30.5}, "")
    console.close()
    assert "loss █▇▄▂▁ 9.00 to 1.00  BLEU ▁█ 3.25 to 30.50" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "environ", "shown"),
    [
        (Terminal(), {}, True),
        (Terminal(is_terminal=False), {}, False),
        *((Terminal(name), {}, False) for name in ("ascii", None, "no such encoding")),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
    ],
)
def test_only_a_terminal_with_the_characters_gets_blocks(stream, environ, shown):
    assert shows_sparklines(stream, environ) is shown


@pytest.mark.parametrize("total", [200, 100_000])
def test_each_number_has_its_name_in_a_bar_of_80_columns(monkeypatch, total):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    console = console_of(stream, total=total)
    for step in range(1, 101):
        console.remember({**TRAINED, "loss": 100.0 / step})
    for step in (99, 100):
        console.show({**TRAINED, "step": step})
    console.close()
    *_, last = stream.getvalue().split("step 100/")
    for part in (
        *("loss 2.500 █▂▂▁▁▁▁▁", "perplexity 7.25", "lr 1.25e-03", "|grad| 0.75"),
        *("12,346 target tokens/s", "padding 3.5 %", "ETA "),
    ):
        assert part in last
