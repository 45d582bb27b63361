"""A prompt on a terminal: a line in, its translation and what it took out.

Ctrl-C gives up the translation under way, or clears the line; a second one in a row,
with nothing typed in between, leaves. Ctrl-D leaves too.
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.shared_model import load_one
from t2t_jax.cli.translation.formats import STATUS_WORDS
from t2t_jax.cli.translation.interruptible import InterruptibleWorker
from t2t_jax.cli.translation.job import require_models
from t2t_jax.decoding.text.translation import UNFAMILIAR
from t2t_jax.distributed.rendezvous import hard_exit
from t2t_jax.errors import UserError
from t2t_jax.run.example_sentences import example_sentences
from t2t_jax.training.health.stop_signals import raise_on_signals

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.decoding.text.translation import Translation
    from t2t_jax.decoding.text.translator import Translator
    from t2t_jax.inference.model import TranslationModel


_MOST_LINES = 1_000


def history_place(environ: Mapping[str, str] = os.environ) -> Path:
    """Names the file: `t2t_jax/history` in XDG_STATE_HOME, or in ~/.local/state.

    Raises:
      RuntimeError: there is no home directory.

    Example:
      >>> history_place({"XDG_STATE_HOME": "/var/state"}).as_posix()
      '/var/state/t2t_jax/history'
    """
    home = environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path("~/.local/state").expanduser()
    return base / "t2t_jax" / "history"


def current_input() -> str:
    """Returns what stands on the line that is being typed; "" without readline."""
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()


@contextmanager
def readline_history() -> Iterator[None]:
    """Lets lines be edited and called back, and keeps the newest of them.

    The file is its owner's alone. Nothing that is wrong with it is an error; where
    Python has no readline, lines are read without all this.
    """
    try:
        import readline
    except ImportError:
        yield
        return
    # A locale of ASCII would make commands of the bytes of an umlaut.
    for setting in ("input-meta on", "output-meta on", "convert-meta off"):
        readline.parse_and_bind(f"set {setting}")
    with suppress(OSError, RuntimeError):
        readline.read_history_file(history_place())
    readline.set_history_length(_MOST_LINES)
    try:
        yield
    finally:
        with suppress(OSError, RuntimeError):
            place = history_place()
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # GNU's readline makes it private by itself, others as the umask says.
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
            place.chmod(0o600)
            readline.write_history_file(place)


_Done = TypeVar("_Done")

_PROMPT = "> "
_HELP = """\
A line is translated. Commands:
  :n 5        shows the 5 best from now on
  :beam 8     keeps 8 hypotheses alive
  :alpha 0.6  sets the length penalty
  ::word      translates what begins with a colon, here ":word"
  :help       shows this
  :quit       leaves, as :q, quit, exit and Ctrl-D do, or Ctrl-C twice"""
_SETTINGS: dict[str, tuple[str, Callable[[str], float]]] = {
    ":n": ("n_best", int),
    ":beam": ("beam_size", int),
    ":alpha": ("length_penalty", float),
}
_LEAVING = (":quit", ":q", ":exit", "quit", "exit")
_LEAVING_SECONDS = 5.0


def is_interactive(options: Options) -> bool:
    """Tells whether somebody sits at both ends of this process, and asked for no more.

    Args:
      options: any flag that says how lines are read or written is such a wish.
    """
    wishes = (
        *(options.stream, options.format, options.prefixes, options.shards),
        options.strict,
        *(options.token_scores, options.alignments, options.processes.count > 1),
    )
    places = (options.input, options.output)
    return (
        not any(wishes)
        and places == ("-", "-")
        and _is_terminal(sys.stdin)
        and _is_terminal(sys.stdout)
    )


def run_repl(options: Options) -> int:
    """Translates what is typed, until somebody leaves.

    Returns:
      The exit code, 0.

    Raises:
      UserError: there is no model.
      KeyboardInterrupt: another signal than that of Ctrl-C.
    """
    _read_and_write_utf8()
    require_models(options)
    _say("Loading …")
    model = load_one(
        options, checkpoint=options.checkpoint, decoding=options.config.decoding
    )
    conversation = _Conversation(model)
    conversation.begin()
    if examples := example_sentences(options.workdir):
        _say(f"Examples: {'  '.join(examples)}")
    _say(":help lists what can be typed beside text.")
    background = conversation.background
    with ExitStack() as context:
        context.enter_context(readline_history())
        context.enter_context(raise_on_signals())
        conversation.run()
    if not background.closed(seconds=_LEAVING_SECONDS):
        hard_exit(0)  # What was given up is not waited for.
    return 0


class _Conversation:
    """What was set by commands, and what answers."""

    def __init__(self, model: TranslationModel):
        self._model, self._lines, self._was_interrupted = model, 0, False
        self._translator = model.translator()
        self._compiled = _CompilationCount()
        self.background = InterruptibleWorker()

    def begin(self) -> None:
        """Compiles what a short line needs, so that its time is that of translating."""
        _warm_up(self._translator)

    def run(self) -> None:
        """Answers line after line."""
        while True:
            try:
                self._answer_until_quit()
                return
            except EOFError:
                _say("")
                return
            except UserError as error:
                for problem in error.problems:
                    _say(f"error: {problem}")
            except KeyboardInterrupt as signalled:
                if signalled.args != ("SIGINT",):
                    raise
                if self._was_interrupted and not current_input():
                    _say("")
                    return
                self._was_interrupted = True
                _say("\n(Ctrl-C again leaves, as Ctrl-D does)")

    def _answer_until_quit(self) -> None:
        while (line := input(_PROMPT)).strip() not in _LEAVING:
            self._was_interrupted = False
            self._answer(line)

    def _answer(self, line: str) -> None:
        command, *values = line.split() or [""]
        if command in _SETTINGS:
            self._set(command, " ".join(values))
        elif command.startswith(":") and not command.startswith("::"):
            if command != ":help":
                _say(f"error: {line.strip()!r} is no command.")
            _say(_HELP)
        elif command:
            text = line.replace("::", ":", 1) if command.startswith("::") else line
            number, self._lines = self._lines, self._lines + 1
            _show(*self._in_background(lambda: self._timed(text, number)))

    def _in_background(self, act: Callable[[], _Done]) -> _Done:
        """Has something done where Ctrl-C can give it up, and says if it must wait."""
        if self.background.is_busy:
            _say("(finishing what was given up …)")
        return self.background.do(act)

    def _set(self, command: str, value: str) -> None:
        name, read = _SETTINGS[command]
        try:
            number = read(value)
        except ValueError as error:
            raise UserError(
                f"{command} wants a number, such as {command} 2, and got {value!r}."
            ) from error
        changed = _changed(self._model.decoding, name, number)
        model = dataclasses.replace(self._model, decoding=changed)
        translator = model.translator()
        self._in_background(lambda: _warm_up(translator))
        # Only now: what is given up, or fails, leaves all as it was.
        self._model, self._translator = model, translator
        _say(
            f"n_best {changed.n_best}, beam_size {changed.beam_size}, length_penalty "
            f"{changed.length_penalty:g}"
        )

    def _timed(self, line: str, number: int) -> tuple[Translation, float]:
        """Translates a line, again if something was compiled for it."""
        while True:
            before, began = self._compiled.count, time.perf_counter()
            (found,) = self._translator.translations([line], first=number)
            if self._compiled.count == before:
                return found, time.perf_counter() - began


class _CompilationCount:
    """Counts the programs that JAX has compiled since, or found among those kept."""

    def __init__(self) -> None:
        from jax import monitoring

        self.count = 0
        monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        self.count += "backend_compile" in event


def _warm_up(translator: Translator) -> None:
    _say("Warming up …")
    translator.translate(["a"])


def _changed(config: DecodingConfig, name: str, number: float) -> DecodingConfig:
    """Changes a setting, and the one that must not be above or below it."""
    values = {name: number}
    if name == "n_best" and not config.sample:
        values["beam_size"] = max(config.beam_size, int(number))
    if name == "beam_size":
        values["n_best"] = min(config.n_best, max(1, int(number)))
    return dataclasses.replace(config, **values)  # type: ignore[arg-type]


def _show(found: Translation, seconds: float) -> None:
    hypotheses = found.hypotheses
    if len(hypotheses) == 1:
        print(found.text)
    for rank, one in enumerate(hypotheses, start=1):
        if len(hypotheses) > 1:
            print(f"{rank:>3}  {one.score:8.3f}  {one.text}")
    word = STATUS_WORDS.get(found.status, "")
    _say(
        f"  score {found.score:.3f}, {found.num_tokens} tokens, "
        f"{1_000 * seconds:.0f} ms{f', {word}' if word else ''}"
    )
    if found.unseen_words is not None and found.unseen_words > UNFAMILIAR:
        _say(
            f"  warning: {found.unseen_words:.0%} of these words were never seen in "
            "training, so expect a poor translation."
        )


def _read_and_write_utf8() -> None:
    """Uses UTF-8 in the locale of a bare machine, ASCII, and any other as it is.

    What is typed and cannot be decoded is reported with its translation.
    """
    streams = [s for s in (sys.stdin, sys.stdout) if isinstance(s, io.TextIOWrapper)]
    for stream in streams:
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8", errors="replace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _say(text: str) -> None:
    sys.stdout.flush()  # Both are one terminal.
    log(text)
