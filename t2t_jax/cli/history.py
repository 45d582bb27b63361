"""What is typed at the prompt: the line that is there, and those of earlier starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_MOST_LINES = 1_000


def history_place(environ: Mapping[str, str] = os.environ) -> Path:
    """Names the file: `t2t_jax/history` in XDG_STATE_HOME, or in ~/.local/state.

    Args:
      environ: the environment variables.

    Raises:
      RuntimeError: there is no home directory.

    Example:
      >>> history_place({"XDG_STATE_HOME": "/var/state"}).as_posix()
      '/var/state/t2t_jax/history'
    """
    home = environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path("~/.local/state").expanduser()
    return base / "t2t_jax" / "history"


def half_typed() -> str:
    """Returns what stands on the line that is being typed; "" without readline."""
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()


@contextmanager
def kept_history() -> Iterator[None]:
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
