"""Who is asked at a prompt, and what commands do; a terminal is tests/integration's.

Seen to fail: without each flag of `is_interactive`; with a setting that counts before
it is warmed up; and with the mode of the history left to the umask.
"""

import builtins
import dataclasses
import io
import sys
from contextlib import nullcontext, suppress

import pytest

from t2t_jax.cli.translation import prompt
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.processes import Processes
from tests.cli.translations import Loud, options_of

pytestmark = pytest.mark.usefixtures("place")


BATCH = "stream output=x input=in format=tsv strict prefixes=x shards=2 token_scores"


@pytest.mark.parametrize(
    ("argv", "ends", "asked"),
    [
        (["--beam_size=2", "--n_best=2"], (True, True), True),
        *(([], ends, False) for ends in ((True, False), (False, True), (None, True))),
        *(([f"--{flag}"], (True, True), False) for flag in BATCH.split()),
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
        return self

    def translate(self, lines, **_):
        return [found.text for found in self.translations(lines)]


@pytest.fixture
def converse(monkeypatch, capsys):
    """Holds a conversation; returns what was said on stdout and on stderr."""

    def hold(*typed, model=None):
        rest, model = iter(typed), model or Model()

        def read(asked):
            said = next(rest)
            if isinstance(said, BaseException):
                raise said
            return said

        monkeypatch.setattr(builtins, "input", read)
        monkeypatch.setattr(prompt, "readline_history", lambda: nullcontext(str))
        monkeypatch.setattr(prompt, "load_one", lambda *a, **k: model)
        several = ("--beam_size=2", "--n_best=2")  # as no text file can have
        prompt.run_prompt(options_of("--input=-", *several))
        return capsys.readouterr()

    return hold


@pytest.mark.parametrize(
    "last", [EOFError(), ":quit", " :quit ", ":q", "quit", "exit", ":exit"]
)
def test_lines_are_translated_until_the_user_quits(converse, last):
    model = Model()
    said = converse("a", "", "  ", "b c", last, model=model)
    # Each line has its number, so that samples differ.
    assert said.out == "0:A\n1:B C\n"
    assert said.err.count("  score -1.000, 2 tokens, ") == 2
    assert [first for first, _ in model.calls] == [0, 0, 1]  # the first to warm up


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
def test_a_cancelled_translation_or_setting_has_no_effect(converse, given_up, answer):
    class Slow(Model):
        def iter_translations(self, lines, **how):
            if self.decoding.beam_size == 9 or lines == ["long"]:
                raise KeyboardInterrupt("SIGINT")
            yield from super().iter_translations(lines, **how)

    said = converse(given_up, "a", ":alpha 0.5", EOFError(), model=Slow())
    assert said.out == answer
    assert "beam_size 9" not in said.err
    assert "n_best 1, beam_size 4, length_penalty 0.5" in said.err


@pytest.fixture
def history(tmp_path, monkeypatch):
    """The file of the history, which is not there yet, and Python's own is empty."""
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    readline.clear_history()
    yield tmp_path / "state" / "t2t_jax" / "history"
    readline.clear_history()


def test_the_history_is_kept_for_the_owner_alone(history, monkeypatch):
    import readline

    write = readline.write_history_file

    def written(path):
        assert path.stat().st_mode & 0o777 == 0o600  # before anything is in it
        write(path)

    monkeypatch.setattr(readline, "write_history_file", written)
    monkeypatch.setattr(prompt, "_HISTORY_LINES", 2)
    history.parent.mkdir(0o700, parents=True)
    history.touch(0o644)
    # A signal ends the conversation.
    with suppress(KeyboardInterrupt), prompt.readline_history():
        for line in ("a", "b", "Zwei Männer."):
            readline.add_history(line)
        raise KeyboardInterrupt
    assert history.read_text("utf-8").splitlines()[-2:] == ["b", "Zwei Männer."]
    readline.clear_history()
    with prompt.readline_history() as typed_so_far:
        assert readline.get_history_item(2) == "Zwei Männer."
        assert typed_so_far() == ""


def test_a_history_that_cannot_be_kept_is_no_error(history, monkeypatch):
    history.parents[1].write_text("in the way")
    with prompt.readline_history():
        pass
    monkeypatch.setitem(sys.modules, "readline", None)
    with prompt.readline_history() as typed_so_far:
        assert typed_so_far() == ""
