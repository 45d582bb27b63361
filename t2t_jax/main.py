"""The command line: `python -m t2t_jax.main --config=configs/own_text.py`.

Flags become options, and a file of `cli/` does the rest. A user's mistake ends here
in its messages and its exit code; only a mistake of the program shows a traceback.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

from t2t_jax.errors import StoppedError, UserError

_SHOWN_PROBLEMS = 20
_INTERNAL_ERROR = 70
# What the system refuses, to sysexits: 73 cannot create output, 74 I/O error.
_CODES = {
    errno.EACCES: 73,
    errno.EROFS: 73,
    errno.ENOSPC: 74,
    errno.EDQUOT: 74,
    errno.EIO: 74,
}


def main(argv: Sequence[str]) -> int:
    """Does what the command line asks.

    Args:
      argv: the arguments, without the program's name.

    Returns:
      The exit code (see `t2t_jax.errors`; 70 for an internal error, 74 for a full
      disk or a failing one).
    """
    # Where there is nothing to save, a signal ends the process. The training loop
    # puts its own handlers in the place of these.
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, _stop)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    # Orbax speaks there, of its own settings; what it fails at comes as exceptions.
    logging.getLogger("absl").setLevel(logging.ERROR)
    try:
        return _run(argv)
    except KeyboardInterrupt as stopped:
        name = stopped.args[0] if stopped.args else "SIGINT"
        return _report(StoppedError(f"Stopped by {name}. Give the same command again."))
    except UserError as error:
        return _report(error)
    except BrokenPipeError:
        # The reader of our stdout has had enough, as `head` has. Nothing more may be
        # written there, not even when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in _CODES:
            traceback.print_exc()
            return _INTERNAL_ERROR
        where = f": {error.filename}" if error.filename else ""
        print(f"error: {error.strerror}{where}", file=sys.stderr)
        return _CODES[error.errno]
    except Exception:
        traceback.print_exc()
        return _INTERNAL_ERROR


def _run(argv: Sequence[str]) -> int:
    from t2t_jax.cli import flags
    from t2t_jax.cli.options import usage

    if {"--help", "-h", "-help", "--helpfull"} & set(argv):
        print(usage(), end="")
        return 0
    options = flags.parse_argv(argv)
    mode = import_module(f"t2t_jax.cli.{options.mode}")
    code: int = mode.run(options)
    return code


def _stop(number: int, frame: FrameType | None) -> None:
    # No Exception: whoever catches those must not take it for a damaged file.
    raise KeyboardInterrupt(signal.Signals(number).name)


def _report(error: UserError) -> int:
    shown = error.problems[:_SHOWN_PROBLEMS]
    for problem in shown:
        print(f"error: {problem}", file=sys.stderr)
    hidden = len(error.problems) - len(shown) + error.unlisted
    if hidden:
        print(f"error: and {hidden} more.", file=sys.stderr)
    return error.exit_code


def console() -> None:
    """Runs the command line of this process, as the script `t2t-jax` does."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    console()
