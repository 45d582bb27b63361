"""What people are told when a mode fails, and the exit code that goes with it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from typing import Any

from t2t_jax.distributed.processes import current_processes
from t2t_jax.errors import StoppedError, UnavailableError, UserError

_SHOWN_PROBLEMS = 20
_INTERNAL_ERROR = 70
# What the system refuses, to sysexits: 73 cannot create output, 74 I/O error.
_CODES = {
    errno.EACCES: 73,
    errno.EROFS: 73,
    errno.ENOSPC: 74,
    errno.EFBIG: 74,
    errno.EDQUOT: 74,
    errno.EIO: 74,
}

_flag_prefixes: dict[str, str] = {}


def name_flags(values: Mapping[str, Any]) -> None:
    """Sets the flags that errors about arguments are to name.

    The package words its errors for Python: "runs/x is not a run …", "checkpoint=7
    must be …". On the command line the same argument was a flag.

    Args:
      values: the options of the command line.
    """
    _flag_prefixes.clear()
    if workdir := values.get("workdir"):
        _flag_prefixes[f"{workdir.path} "] = f"--workdir={workdir.path} "
    if which := values.get("checkpoint"):
        _flag_prefixes[f"checkpoint={which} "] = f"--checkpoint={which} "


def _with_flag(problem: str) -> str:
    for start, named in _flag_prefixes.items():
        if problem.startswith(start):
            return named + problem.removeprefix(start)
    return problem


def report_error(error: BaseException) -> int:
    """Says on stderr what went wrong; with a traceback if it is the program's mistake.

    Each line bears the mark of this process, if there are several.

    Args:
      error: what a mode has raised.

    Returns:
      The exit code (see `t2t_jax.errors`; 70 for an internal error, 74 for a full
      disk or a failing one).
    """
    if isinstance(error, KeyboardInterrupt):
        name = error.args[0] if error.args else "SIGINT"
        return _told(StoppedError(f"Stopped by {name}. Give the same command again."))
    if isinstance(error, UserError):
        return _told(error)
    if isinstance(error, BrokenPipeError):
        # The reader of our stdout has had enough, as `head` has. Nothing more may be
        # written there, not even when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError) and error.errno in _CODES:
        where = f": {error.filename}" if error.filename else ""
        _write([f"error: {error.strerror}{where}"])
        return _CODES[error.errno]
    lost = _lost(error)
    if lost:
        return _told(UnavailableError(lost))
    lines = "".join(traceback.format_exception(error)).splitlines()
    _write(
        [
            f"FATAL {lines[0]}" if current_processes().log_prefix else lines[0],
            *lines[1:],
        ]
    )
    return _INTERNAL_ERROR


def _lost(error: BaseException) -> str:
    """Says which other process has gone, if that is why JAX has failed here."""
    if current_processes().count == 1 or type(error).__name__ != "JaxRuntimeError":
        return ""
    silent = current_processes().unresponsive_ranks()
    if not silent:
        return ""
    first = str(error).splitlines()[0][:200]
    return (
        f"Process {', '.join(map(str, silent))} of {current_processes().count} has "
        f"ended, or cannot be reached.\nJAX's error: {first}\n"
        "Read the end of its log, and rerun the same commands."
    )


def _told(error: UserError) -> int:
    counted = Counter(map(_with_flag, error.problems))
    lines = [
        f"error: {problem}" + (f" ({times:,} times)" if times > 1 else "")
        for problem, times in list(counted.items())[:_SHOWN_PROBLEMS]
    ]
    hidden = len(counted) - len(lines) + error.unlisted
    if hidden:
        lines.append(f"error: and {hidden} more.")
    _write(lines)
    return error.exit_code


def _write(lines: list[str]) -> None:
    """Writes lines at once, so that those of other processes do not come between."""
    mark = current_processes().log_prefix
    sys.stderr.write("".join(f"{mark}{line}\n" for line in lines))
    sys.stderr.flush()
