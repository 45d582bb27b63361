"""The interactive prompt: reads a line, prints its translation, score and time.

Ctrl-C cancels the current translation, or clears the line; a second one in a row quits,
as Ctrl-D does.
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import load_one
from t2t_jax.cli.translation.job import require_ensemble
from t2t_jax.cli.translation.progress import STATUS_WORDS
from t2t_jax.data.files.progress_bar import escape_controls
from t2t_jax.decoding.text.translation import UNFAMILIAR
from t2t_jax.errors import UserError
from t2t_jax.run.text import example_sentences
from t2t_jax.training.stopping import raise_on_signals

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Translation
    from t2t_jax.run.inference.model import TranslationModel

_HISTORY_LINES = 1_000
_HELP = """\
Enter a line to translate it. Commands:
  :n 5        show the 5 best translations
  :beam 8     set the beam size
  :alpha 0.6  set the length penalty
  ::word      translate text that begins with a colon, here ":word"
  :help       show this help
  :quit       quit; also :q, quit, exit, Ctrl-D, or Ctrl-C twice"""
_SETTINGS: dict[str, tuple[str, Callable[[str], float]]] = {
    ":n": ("n_best", int),
    ":beam": ("beam_size", int),
    ":alpha": ("length_penalty", float),
}
_QUIT_COMMANDS = (":quit", ":q", ":exit", "quit", "exit")


def is_interactive(options: TranslateOptions) -> bool:
    """Returns whether stdin and stdout are terminals and no batch flags were given."""
    names = "stream format prefixes terms shards strict token_scores alignments".split()
    return (
        not any(getattr(options, name) for name in names)
        and options.processes.count == 1
        and (options.input, options.output) == ("-", "-")
        and all(file is not None and file.isatty() for file in (sys.stdin, sys.stdout))
    )


def run_prompt(options: TranslateOptions) -> None:
    """Translates typed lines until the user quits.

    Raises:
      UserError: there is no model.
      KeyboardInterrupt: a signal other than SIGINT.
    """
    _read_and_write_utf8()
    options.workdir.require()
    require_ensemble(options)
    _log("Loading …")
    prompt = _Prompt(load_one(options), options.languages)
    if examples := example_sentences(options.workdir):
        _log(f"Examples: {'  '.join(examples)}")
    _log(":help lists the commands.")
    with readline_history() as typed_so_far, raise_on_signals():
        prompt.run(typed_so_far)


class _Prompt:
    """The model, its translator and settings."""

    def __init__(self, model: TranslationModel, languages: dict[str, str | None]):
        self._lines, self._was_interrupted = 0, False
        self._languages = languages
        self._use(model)

    def _use(self, model: TranslationModel) -> None:
        """Compiles the shapes of a short line, so that times exclude compilation."""
        translator = model.translator()
        _log("Warming up …")
        target = self._languages["target_language"] or ""
        translator.translate(["a"], **{**self._languages, "target_language": target})
        # Only now: a cancelled or failed change has no effect.
        self._model, self._translator = model, translator

    def run(self, typed_so_far: Callable[[], str]) -> None:
        """Reads and translates lines until the user quits."""
        while True:
            try:
                while (line := input("> ")).strip() not in _QUIT_COMMANDS:
                    self._was_interrupted = False
                    self._process(line)
                return
            except EOFError:
                return _log("")
            except UserError as error:
                for problem in error.problems:
                    _log(f"error: {problem}")
            except KeyboardInterrupt as signalled:
                if signalled.args != ("SIGINT",):
                    raise
                if self._was_interrupted and not typed_so_far():
                    return _log("")
                self._was_interrupted = True
                _log("\n(press Ctrl-C again or Ctrl-D to quit)")

    def _process(self, line: str) -> None:
        command, *values = line.split() or [""]
        if command in _SETTINGS:
            self._set(command, " ".join(values))
        elif command.startswith(":") and not command.startswith("::"):
            if command != ":help":
                _log(f"error: {line.strip()!r} is not a command.")
            _log(_HELP)
        elif command:
            text = line.replace("::", ":", 1) if command.startswith("::") else line
            number, self._lines = self._lines, self._lines + 1
            began, translate = time.perf_counter(), self._translator.translations
            (translation,) = translate([text], first=number, **self._languages)
            _show(translation, time.perf_counter() - began)

    def _set(self, command: str, value: str) -> None:
        name, read = _SETTINGS[command]
        try:
            number = read(value)
        except ValueError as error:
            raise UserError(
                f"{command} must be followed by a number ({command} 2), not {value!r}."
            ) from error
        old = self._model.decoding
        values: dict[str, Any] = {name: number}
        if name == "n_best" and not old.sample:  # n_best <= beam_size
            values["beam_size"] = max(old.beam_size, int(number))
        if name == "beam_size":
            values["n_best"] = min(old.n_best, max(1, int(number)))
        new = dataclasses.replace(old, **values)
        self._use(dataclasses.replace(self._model, decoding=new))
        sizes = f"n_best {new.n_best}, beam_size {new.beam_size}"
        _log(f"{sizes}, length_penalty {new.length_penalty:g}")


def _show(found: Translation, seconds: float) -> None:
    hypotheses = found.hypotheses
    for rank, one in enumerate(hypotheses, start=1):
        score = f"{rank:>3}  {one.score:8.3f}  " * (len(hypotheses) > 1)
        print(f"{score}{escape_controls(one.text)}")
    words = [STATUS_WORDS[one] for one in found.statuses if one in STATUS_WORDS]
    facts = [f"{found.num_tokens} tokens", f"{1_000 * seconds:.0f} ms", *words]
    _log(f"  score {found.score:.3f}, {', '.join(facts)}")
    if found.unseen_words is not None and found.unseen_words > UNFAMILIAR:
        _log(
            f"  warning: {found.unseen_words:.0%} of these words did not occur in the "
            "training text: expect a poor translation."
        )


@contextmanager
def readline_history() -> Iterator[Callable[[], str]]:
    """Enables line editing and a history file, if Python has readline.

    The file is readable by its owner only. Errors with it are ignored.

    Yields:
      A function that returns the text typed so far on the current line.
    """
    try:
        import readline
    except ImportError:
        yield str
        return
    # In an ASCII locale readline would interpret bytes of umlauts as commands.
    for setting in ("input-meta on", "output-meta on", "convert-meta off"):
        readline.parse_and_bind(f"set {setting}")
    with suppress(OSError, RuntimeError):
        readline.read_history_file(_history_path())
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield readline.get_line_buffer
    finally:
        with suppress(OSError, RuntimeError):
            path = _history_path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Only GNU readline restricts the permissions itself.
            path.touch(0o600)
            path.chmod(0o600)
            readline.write_history_file(path)


def _history_path() -> Path:
    """Returns `t2t_jax/history` in XDG_STATE_HOME, or in ~/.local/state.

    Raises:
      RuntimeError: there is no home directory.
    """
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = home if home.is_absolute() else Path("~/.local/state").expanduser()
    return base / "t2t_jax" / "history"


def _read_and_write_utf8() -> None:
    """Uses UTF-8 instead of ASCII, and any other encoding as it is.

    Undecodable input becomes surrogates, which the translator reports.
    """
    streams = [s for s in (sys.stdin, sys.stdout) if isinstance(s, io.TextIOWrapper)]
    for stream in streams:
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8", errors="replace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")


def _log(text: str) -> None:
    sys.stdout.flush()  # stdout and stderr share the terminal
    log(text)
