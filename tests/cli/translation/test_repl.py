"""Who is asked at a prompt, and what commands do; a terminal is tests/integration's.

Seen to fail: without each flag of `is_interactive`; without the end of `run_repl` for
what was cancelled, or with it always; without each branch of `_Repl`; with a setting
that counts before it is warmed up, or is warmed up in the main thread; without each
limit of `_replace_setting`; where nothing is counted that JAX compiles, or the time of
that is not taken off; and with the streams left as the locale has them.
"""

import builtins
import dataclasses
import io
import signal
import sys
import threading

import pytest

from t2t_jax.cli.translation import repl
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, InputMissingError, UserError
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
        (["--shards=2"], (True, True), False),
        (["--strict"], (True, True), False),
        (["--token_scores"], (True, True), False),
        (["--alignments"], (True, True), False),
        (["--beam_size=2", "--n_best=2"], (True, True), True),
    ],
)
def test_who_sits_at_both_ends_and_wants_no_more_is_asked(
    monkeypatch, argv, ends, asked
):
    monkeypatch.setattr(sys, "stdin", screen(ends[0]))
    monkeypatch.setattr(sys, "stdout", screen(ends[1]))
    assert repl.is_interactive(options_of("--input=-", *argv)) == asked


def test_several_processes_ask_nobody(monkeypatch):
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, screen())
    alone = options_of("--input=-")
    several = dataclasses.replace(alone, processes=Processes(index=0, count=2))
    assert [repl.is_interactive(one) for one in (alone, several)] == [True, False]


def test_closed_streams_are_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert not repl.is_interactive(options_of("--input=-"))


@dataclasses.dataclass
class Model(Loud):
    decoding: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)
    calls: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        calls = self.calls
        super().__init__()
        self.calls = calls

    def translator(self):
        if self.decoding.beam_size > 900:
            raise UserError("too many beams")
        return self

    def translate(self, lines):
        return [found.text for found in self.translations(lines)]


@pytest.fixture(autouse=True)
def ended(monkeypatch):
    """Lists the codes with which this process would have been ended at once."""
    codes = []
    monkeypatch.setattr(repl, "hard_exit", codes.append)
    return codes


@pytest.fixture
def converse(monkeypatch):
    """Holds a conversation; returns the exit code, and the model."""

    def hold(*typed):
        rest, model = iter(typed), Model()

        def read(asked):
            said = next(rest)
            on = getattr(said, "on", "")
            monkeypatch.setattr(repl, "current_input", lambda: on)
            if isinstance(said, BaseException):
                raise said
            return said

        monkeypatch.setattr(builtins, "input", read)
        monkeypatch.setattr(repl, "load_one", lambda *a, **k: model)
        return repl.run_repl(options_of("--input=-")), model

    return hold


@pytest.mark.parametrize(
    "last", [EOFError(), ":quit", " :quit ", ":q", "quit", "exit", ":exit"]
)
def test_lines_are_answered_until_somebody_leaves(converse, capsys, ended, last):
    code, model = converse("a", "", "  ", "b c", last)
    assert (code, ended) == (0, [])
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
        ([ctrl_c(), "a", ctrl_c(), "b", ctrl_c(), ctrl_c()], ["a", "b"]),
        ([ctrl_c("half"), ctrl_c("another"), "a", ctrl_c(), ctrl_c()], ["a"]),
    ],
)
def test_two_interrupts_in_a_row_leave_quietly(converse, capsys, typed, lines):
    code, _ = converse(*typed, "not read any more")
    assert code == 0
    said = capsys.readouterr()
    assert said.out == "".join(f"{n}:{x.upper()}\n" for n, x in enumerate(lines))
    assert "error" not in said.err


def test_another_signal_ends_the_process_as_everywhere(converse):
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        converse(KeyboardInterrupt("SIGTERM"))


def test_a_line_of_unseen_words_is_warned_of(converse, capsys, monkeypatch):
    class Unseen(Model):
        def iter_translations(self, lines, **options):
            for number, found in super().iter_translations(lines, **options):
                share = 0.6 if "new" in lines[number] else 1 / 3
                yield number, dataclasses.replace(found, unseen_words=share)

    monkeypatch.setitem(globals(), "Model", Unseen)
    converse("new", "known", EOFError())
    said = capsys.readouterr().err
    assert "ms, unfamiliar\n  warning: 60% of these words did not occur in" in said
    assert said.count("unfamiliar") == said.count("warning") == 1


def test_help_lists_the_commands_and_nothing_else(converse, capsys):
    converse(":beam many", ":help", EOFError())
    said = capsys.readouterr().err
    assert said.count(":beam must be followed by a number") == said.count("error") == 1
    assert said.endswith(f"{repl._HELP}\n\n")


@pytest.mark.parametrize("line", [":beem 8", ":", ":quit now"])
def test_a_command_that_there_is_not_is_named(converse, capsys, line):
    converse(line, "a", EOFError())
    said = capsys.readouterr()
    assert f"error: '{line}' is not a command.\n{repl._HELP}\n" in said.err
    assert said.out == "0:A\n"


@pytest.mark.parametrize("line", ["::n 5", " ::n 5"])
def test_two_colons_stand_for_one_that_is_translated(converse, capsys, line):
    converse(line, ":: ::", "a::b", EOFError())
    translated = capsys.readouterr().out.replace(" ", "").split("\n")
    assert translated == ["0::N5", "1::::", "2:A::B", ""]


@pytest.fixture
def slow(monkeypatch):
    """Interrupts what takes long; that goes on until the event is set."""
    release = threading.Event()

    def iter_translations(self, lines, **how):
        if self.decoding.beam_size == 9 or lines == ["long"]:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert release.wait(20)
        yield from Loud.iter_translations(self, lines, **how)

    monkeypatch.setattr(Model, "iter_translations", iter_translations)
    yield release
    release.set()


@pytest.mark.parametrize(
    ("given_up", "answer"), [(":beam 9", "0:A\n"), ("long", "1:A\n")]
)
def test_what_is_given_up_is_not_heard_of_again(
    converse, monkeypatch, capsys, slow, given_up, answer
):
    say = repl._log

    def hear(text):
        say(text)
        if "cancelled" in text:
            slow.set()

    monkeypatch.setattr(repl, "_log", hear)
    assert converse(given_up, "a", ":alpha 0.5", EOFError())[0] == 0
    said = capsys.readouterr()
    assert said.out == answer
    assert said.err.count("(finishing the cancelled translation …)") == 1
    assert "beam_size 9" not in said.err
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err


def test_whoever_leaves_does_not_wait_for_what_was_given_up(
    converse, monkeypatch, slow, ended
):
    monkeypatch.setattr(repl, "_CLOSE_SECONDS", 0.05)
    converse("long", EOFError())
    assert ended == [0]


def test_a_setting_that_is_refused_is_none_either(converse, capsys):
    converse(":beam 901", ":alpha 0.5", "a", EOFError())
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
    assert (streams[0].encoding, streams[0].errors) == ("utf-8", "surrogateescape")


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
    found = repl._replace_setting(before, name, number)
    assert (found.n_best, found.beam_size) == expected


def test_as_many_samples_as_asked_for_need_no_beam():
    found = repl._replace_setting(DecodingConfig(sample=True), "n_best", 7)
    assert (found.n_best, found.beam_size) == (7, 4)


def test_a_beam_of_nothing_is_told_and_nothing_that_follows_from_it():
    with pytest.raises(ConfigError) as raised:
        repl._replace_setting(DecodingConfig(), "beam_size", 0)
    (problem,) = raised.value.problems
    assert problem.startswith("decoding.beam_size=0 must be")


def test_a_prompt_without_a_run_asks_nothing(converse, place):
    (place / "run").rename(place / "elsewhere")
    with pytest.raises(InputMissingError, match="is not a run or a model"):
        converse("a")


def test_sentences_to_try_are_shown(converse, capsys, monkeypatch):
    examples = ("The cat sleeps.", "Who is it?")
    monkeypatch.setattr(repl, "example_sentences", lambda workdir: examples)
    converse(":quit")
    assert "Examples: The cat sleeps.  Who is it?\n" in capsys.readouterr().err
