"""Who is asked at a prompt, and what commands do; a terminal is tests/integration's."""

import builtins
import io
import sys
from types import SimpleNamespace

import pytest

from t2t_jax.cli import prompt
from t2t_jax.decoding.config import DecodingConfig
from tests.cli.translations import Loud, options_of

pytestmark = pytest.mark.usefixtures("place")


def screen(is_terminal=True):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    return stream


@pytest.mark.parametrize(
    ("argv", "ends", "asked"),
    [
        ([], (True, True), True),
        ([], (True, False), False),
        ([], (False, True), False),
        (["--stream"], (True, True), False),
        (["--output=x"], (True, True), False),
        (["--input=in"], (True, True), False),
        (["--format=tsv"], (True, True), False),
        (["--prefixes=x"], (True, True), False),
        (["--beam_size=2", "--n_best=2"], (True, True), True),
    ],
)
def test_who_sits_at_both_ends_and_wants_no_more_is_asked(
    monkeypatch, argv, ends, asked
):
    monkeypatch.setattr(sys, "stdin", screen(ends[0]))
    monkeypatch.setattr(sys, "stdout", screen(ends[1]))
    assert prompt.is_wanted(options_of("--input=-", *argv)) == asked


def test_closed_streams_are_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert not prompt.is_wanted(options_of("--input=-"))


class Model(Loud):
    def __init__(self):
        super().__init__()
        self.decoding = DecodingConfig()

    def translator(self):
        return self

    def translate(self, lines):
        return [found.text for found in self.translations(lines)]


@pytest.fixture
def converse(monkeypatch):
    """Holds a conversation; returns the exit code, and the model."""

    def hold(*typed):
        rest, model = iter(typed), Model()

        def read(asked):
            said = next(rest)
            if isinstance(said, BaseException):
                raise said
            return said

        monkeypatch.setattr(builtins, "input", read)
        monkeypatch.setattr(prompt, "load_one", lambda *a, **k: model)
        return prompt.converse(options_of("--input=-")), model

    return hold


@pytest.mark.parametrize("last", [EOFError(), ":quit", " :quit "])
def test_lines_are_answered_until_somebody_leaves(converse, capsys, last):
    code, model = converse("a", "", "  ", "b c", last)
    assert code == 0
    said = capsys.readouterr()
    # Each line has its number, so that samples differ.
    assert said.out == "0:A\n1:B C\n"
    assert said.err.count("  score -1.000, 3 tokens, ") == 2
    assert [first for first, _ in model.calls] == [0, 0, 1]  # the first to warm up


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ([KeyboardInterrupt("SIGINT")] * 2, []),
        ([KeyboardInterrupt("SIGINT"), "a", *[KeyboardInterrupt("SIGINT")] * 2], ["a"]),
        ([KeyboardInterrupt("SIGTERM")], []),
    ],
)
def test_two_interrupts_in_a_row_or_another_signal_leave(
    converse, capsys, typed, lines
):
    with pytest.raises(KeyboardInterrupt):
        converse(*typed)
    assert capsys.readouterr().out == "".join(f"0:{x.upper()}\n" for x in lines)


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("n_best", 7, (7, 7)),
        ("n_best", 2, (2, 4)),
        ("beam_size", 9, (3, 9)),
        ("beam_size", 2, (2, 2)),
    ],
)
def test_a_setting_takes_the_other_with_it(name, number, expected):
    before = DecodingConfig(n_best=1 if name == "n_best" else 3)
    found = prompt._changed(before, name, number)
    assert (found.n_best, found.beam_size) == expected


def test_what_is_compiled_for_a_line_does_not_count(monkeypatch):
    made = SimpleNamespace(count=0)
    monkeypatch.setattr(prompt, "_CompilationCount", lambda: made)
    model = Model()
    talk = prompt._Conversation(model)
    inner = model.translations

    def compiling(lines, *, first=0):
        made.count += len(model.calls) < 1
        return inner(lines, first=first)

    model.translations = compiling
    found, seconds = talk._timed("a", 3)
    assert (found.text, len(model.calls)) == ("3:A", 2)
    assert seconds > 0
    assert talk.background.closed(seconds=20)
