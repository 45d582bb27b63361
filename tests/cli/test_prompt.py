"""Who is asked at a prompt, and what commands do; a terminal is tests/integration's."""

import builtins
import dataclasses
import io
import signal
import sys
import threading
from types import SimpleNamespace

import pytest

from t2t_jax.cli import prompt
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import UserError
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


@dataclasses.dataclass
class Model(Loud):
    decoding: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)
    calls: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        calls = self.calls
        super().__init__()
        self.calls = calls

    def translator(self):
        if self.decoding.beam_size > 1000:
            raise UserError("too many beams")
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
            on = getattr(said, "on", "")
            monkeypatch.setattr(prompt, "half_typed", lambda: on)
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


def ctrl_c(on=""):
    """Ctrl-C, where something may stand on the line."""
    signalled = KeyboardInterrupt("SIGINT")
    signalled.on = on
    return signalled


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ([ctrl_c(), ctrl_c()], []),
        ([ctrl_c("half"), ctrl_c()], []),
        ([ctrl_c(), "a", ctrl_c(), ctrl_c()], ["a"]),
        ([ctrl_c("half"), ctrl_c("another"), "a", ctrl_c(), ctrl_c()], ["a"]),
    ],
)
def test_two_interrupts_in_a_row_leave_quietly(converse, capsys, typed, lines):
    code, _ = converse(*typed, "not read any more")
    assert code == 0
    said = capsys.readouterr()
    assert said.out == "".join(f"0:{x.upper()}\n" for x in lines)
    assert "error" not in said.err


def test_another_signal_ends_the_process_as_everywhere(converse):
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        converse(KeyboardInterrupt("SIGTERM"))


@pytest.mark.parametrize("line", ["::n 5", " ::n 5"])
def test_two_colons_stand_for_one_that_is_translated(converse, capsys, line):
    converse(line, ":: ::", EOFError())
    translated = capsys.readouterr().out.split("\n")
    assert [text.replace(" ", "") for text in translated] == ["0::N5", "1::::", ""]


def test_a_setting_that_is_given_up_is_none(converse, monkeypatch, capsys):
    release, say, translate = threading.Event(), prompt._say, Model.translate

    def hear(text):
        say(text)
        if "given up" in text:
            release.set()

    def compile_for_long(self, lines):
        if self.decoding.beam_size == 9:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert release.wait(20)
        return translate(self, lines)

    monkeypatch.setattr(prompt, "_say", hear)
    monkeypatch.setattr(Model, "translate", compile_for_long)
    assert converse(":beam 9", "a", ":alpha 0.5", EOFError())[0] == 0
    said = capsys.readouterr()
    assert said.out == "0:A\n"
    assert said.err.count("(finishing what was given up …)") == 1
    assert "beam_size 9" not in said.err
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err


def test_a_setting_that_is_refused_is_none_either(converse, capsys):
    converse(":beam 1001", ":alpha 0.5", "a", EOFError())
    said = capsys.readouterr()
    assert "error: too many beams\n" in said.err
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err
    assert said.out == "0:A\n"


def test_any_language_is_spoken_whatever_the_locale(converse, monkeypatch):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    for name, stream in zip(("stdin", "stdout"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    converse("ü\udcff", EOFError())
    assert streams[1].buffer.getvalue().decode() == "0:Ü?\n"
    assert (streams[0].encoding, streams[0].errors) == ("utf-8", "replace")


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
