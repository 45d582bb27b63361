"""Who is asked at a prompt, and what commands do; a terminal is tests/integration's.

Seen to fail: without each flag of `is_interactive`; without the end of `run_prompt` for
what was cancelled, or with it always; without each branch of `_Prompt`; with a setting
that counts before it is warmed up, or is warmed up in the main thread; with the streams
left as the locale has them; and with the mode of the history left to the umask.
"""

import builtins
import dataclasses
import io
import signal
import sys
import threading
from contextlib import contextmanager, suppress

import pytest

from t2t_jax.cli.translation import prompt
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.processes import Processes
from t2t_jax.errors import UserError
from tests.cli.translations import Loud, options_of

pytestmark = pytest.mark.usefixtures("place")


@pytest.mark.parametrize(
    ("argv", "ends", "asked"),
    [
        (["--beam_size=2", "--n_best=2"], (True, True), True),
        ([], (True, False), False),
        ([], (False, True), False),
        ([], (None, True), False),
        *(
            ([flag], (True, True), False)
            for flag in (
                *("--stream", "--output=x", "--input=in", "--format=tsv", "--strict"),
                *("--prefixes=x", "--shards=2", "--token_scores", "--alignments"),
            )
        ),
    ],
)
def test_terminals_without_batch_flags_get_a_prompt(monkeypatch, argv, ends, asked):
    for name, is_terminal in zip(("stdin", "stdout"), ends, strict=True):
        stream = None if is_terminal is None else io.StringIO()
        if stream is not None:
            stream.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, name, stream)
    options = options_of("--input=-", *argv)
    assert prompt.is_interactive(options) == asked
    several = dataclasses.replace(options, processes=Processes(index=0, count=2))
    assert not prompt.is_interactive(several)


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


class CtrlC(KeyboardInterrupt):
    """Ctrl-C, where something may stand on the line."""

    def __init__(self, on=""):
        super().__init__("SIGINT")
        self.args, self.on = ("SIGINT",), on


@pytest.fixture
def ended(monkeypatch):
    """Lists the codes with which this process would have been ended at once."""
    codes = []
    monkeypatch.setattr(prompt, "hard_exit", codes.append)
    return codes


@pytest.fixture
def converse(monkeypatch, ended, capsys):
    """Holds a conversation; returns what was said on stdout and on stderr."""

    def hold(*typed, model=None):
        rest, model, line = iter(typed), model or Model(), [""]

        @contextmanager
        def history():
            yield lambda: line[0]

        def read(asked):
            said = next(rest)
            line[0] = getattr(said, "on", "")
            if isinstance(said, BaseException):
                raise said
            return said

        monkeypatch.setattr(builtins, "input", read)
        monkeypatch.setattr(prompt, "readline_history", history)
        monkeypatch.setattr(prompt, "load_one", lambda *a, **k: model)
        several = ("--beam_size=2", "--n_best=2")  # as no text file can have
        assert prompt.run_prompt(options_of("--input=-", *several)) == 0
        return capsys.readouterr()

    return hold


@pytest.mark.parametrize(
    "last", [EOFError(), ":quit", " :quit ", ":q", "quit", "exit", ":exit"]
)
def test_lines_are_translated_until_the_user_quits(converse, ended, last):
    model = Model()
    said = converse("a", "", "  ", "b c", last, model=model)
    # Each line has its number, so that samples differ.
    assert (said.out, ended) == ("0:A\n1:B C\n", [])
    assert said.err.count("  score -1.000, 3 tokens, ") == 2
    assert [first for first, _ in model.calls] == [0, 0, 1]  # the first to warm up


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ([CtrlC(), CtrlC()], []),
        ([CtrlC("half"), CtrlC()], []),
        ([CtrlC(), "a", CtrlC(), "b", CtrlC(), CtrlC()], ["a", "b"]),
        ([CtrlC("half"), CtrlC("another"), "a", CtrlC(), CtrlC()], ["a"]),
    ],
)
def test_two_interrupts_in_a_row_quit_without_an_error(converse, typed, lines):
    said = converse(*typed, "not read any more")
    assert said.out == "".join(f"{n}:{x.upper()}\n" for n, x in enumerate(lines))
    assert "error" not in said.err


def test_another_signal_ends_the_process_as_everywhere(converse):
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        converse(KeyboardInterrupt("SIGTERM"))


def test_a_line_of_unseen_words_is_warned_of_and_controls_are_escaped(converse):
    class Unseen(Model):
        def iter_translations(self, lines, **options):
            for number, found in super().iter_translations(lines, **options):
                share = 0.6 if "new" in lines[number] else 1 / 3
                yield number, dataclasses.replace(found, unseen_words=share)

    said = converse("new", "known\x1b[2J", EOFError(), model=Unseen())
    assert "ms, unfamiliar\n  warning: 60% of these words did not occur in" in said.err
    assert said.err.count("unfamiliar") == said.err.count("warning") == 1
    assert said.out == "0:NEW\n1:KNOWN\\x1b[2J\n"


@pytest.mark.parametrize(
    ("given_up", "answer"), [(":beam 9", "0:A\n"), ("long", "1:A\n")]
)
def test_a_cancelled_translation_is_not_heard_of_again(
    converse, monkeypatch, ended, given_up, answer
):
    release, log = threading.Event(), prompt._log

    class Slow(Model):
        def iter_translations(self, lines, **how):
            if self.decoding.beam_size == 9 or lines == ["long"]:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                assert release.wait(20)
            yield from super().iter_translations(lines, **how)

    def hear(text):
        log(text)
        if "cancelled" in text:
            release.set()

    monkeypatch.setattr(prompt, "_log", hear)
    said = converse(given_up, "a", ":alpha 0.5", EOFError(), model=Slow())
    assert said.out == answer
    assert said.err.count("(finishing the cancelled translation …)") == 1
    assert "beam_size 9" not in said.err
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err
    assert ended == []
    # Whoever leaves does not wait for it either.
    release.clear()
    monkeypatch.setattr(prompt, "_CLOSE_SECONDS", 0.05)
    converse(given_up, EOFError(), model=Slow())
    assert ended == [0]
    release.set()


def test_a_refused_command_is_named_and_has_no_effect(converse):
    typed = (":beam 901", ":beam many", ":n 0", ":quit now", ":alpha 0.5", " ::n a")
    said = converse(*typed, ":help", EOFError())
    assert "error: too many beams\n" in said.err
    assert "error: :beam must be followed by a number" in said.err
    assert "error: decoding.n_best=0 must be" in said.err
    assert f"error: ':quit now' is not a command.\n{prompt._HELP}\n" in said.err
    assert said.err.count(prompt._HELP) == 2
    assert said.err.count("error") == 4
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err
    assert said.out == "0: :N A\n"  # two colons stand for one


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ([":n 7"], "n_best 7, beam_size 7"),
        ([":n 3", ":beam 9"], "n_best 3, beam_size 9"),
        ([":n 3", ":beam 2"], "n_best 2, beam_size 2"),
    ],
)
def test_a_setting_changes_the_other_so_that_both_fit(converse, typed, shown):
    assert shown in converse(*typed, EOFError()).err.splitlines()[-2]


def test_text_of_any_language_is_read_and_written_whatever_the_locale(
    converse, monkeypatch
):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2)]
    for name, stream in zip(("stdin", "stdout"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    converse("ü\udcff", EOFError())
    assert streams[1].buffer.getvalue().decode() == "0:Ü?\n"
    assert (streams[0].encoding, streams[0].errors) == ("utf-8", "surrogateescape")


@pytest.fixture
def history(tmp_path, monkeypatch):
    """The file of the history, which is not there yet, and Python's own is empty."""
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    readline.clear_history()
    yield tmp_path / "state" / "t2t_jax" / "history"
    readline.clear_history()


@pytest.mark.parametrize("mode", [None, 0o644])
def test_the_history_is_kept_for_the_owner_alone(history, monkeypatch, mode):
    import readline

    write = readline.write_history_file

    def written(path):
        assert path.stat().st_mode & 0o777 == 0o600  # before anything is in it
        write(path)

    monkeypatch.setattr(readline, "write_history_file", written)
    monkeypatch.setattr(prompt, "_HISTORY_LINES", 2)
    if mode:
        history.parent.mkdir(0o700, parents=True)
        history.touch(mode)
    # A signal ends the conversation.
    with suppress(KeyboardInterrupt), prompt.readline_history():
        for line in ("a", "b", "Zwei Männer."):
            readline.add_history(line)
        raise KeyboardInterrupt
    assert history.read_text("utf-8").splitlines()[-2:] == ["b", "Zwei Männer."]
    assert [path.stat().st_mode & 0o777 for path in (history, history.parent)] == [
        *(0o600, 0o700),
    ]
    readline.clear_history()
    with prompt.readline_history() as typed_so_far:
        assert readline.get_history_item(2) == "Zwei Männer."
        assert typed_so_far() == ""


@pytest.mark.parametrize("is_there", [True, False])
def test_a_history_that_cannot_be_kept_is_no_error(history, monkeypatch, is_there):
    if is_there:
        history.parents[1].write_text("in the way")
    else:
        monkeypatch.setitem(sys.modules, "readline", None)
    with prompt.readline_history() as typed_so_far:
        assert typed_so_far() == ""
    assert not history.exists()
