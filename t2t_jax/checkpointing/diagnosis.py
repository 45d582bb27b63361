"""Whose fault it is that a checkpoint cannot be read: its own, or the machine's.

A damaged checkpoint may be set aside and another one used. Where the machine is at
fault (permissions, memory, a failing disk) the checkpoint may be good: reading ends.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2t_jax.errors import (
    DataError,
    InputMissingError,
    StorageError,
    UnavailableError,
    UserError,
)

# What the system says of files that are missing, cut or something else than they were.
_ABOUT_CONTENT = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EINVAL,
    errno.ELOOP,
    errno.ENODATA,
    errno.ENOTEMPTY,
}
# TensorStore writes the system's error into a message, JAX its own name of it.
_SYSTEM_ERROR = re.compile(r"(?:OS error |os_error_code=')(\d+)")
_OF_THE_MACHINE = re.compile("RESOURCE_EXHAUSTED|PERMISSION_DENIED|UNAVAILABLE")


class CorruptCheckpointError(DataError):
    """A checkpoint is not, or no longer, what was saved.

    Args:
      reason: what is wrong with it, in one line.
      others: the other steps that there are.

    Attributes:
      reason: as given.
    """

    def __init__(self, path: Path, reason: str, *, others: Sequence[int] = ()):
        self.path, self.reason = path, reason
        there = ", ".join(map(str, others)) or "none"
        super().__init__(
            f"Checkpoint {path} is damaged: {reason}.\nOther steps there: {there}. "
            "Choose one of them; training resumes from the newest valid one."
        )


def as_io_error(error: BaseException, path: Path) -> Exception | None:
    """Tells whether the machine is at fault, and with what error reading then ends.

    Args:
      error: what reading a checkpoint has raised.

    Returns:
      The error to raise; None where the checkpoint itself is at fault.

    Example:
      >>> as_io_error(MemoryError(), Path("run/checkpoints/7"))
      UnavailableError('Checkpoint run/checkpoints/7 cannot be read: MemoryError...)
      >>> as_io_error(FileNotFoundError(2, "No such file"), Path("7")) is None
      True
    """
    for one in _chain(error):
        number = _number(one)
        known = number is not None and number not in _ABOUT_CONTENT
        if known or isinstance(one, MemoryError) or _OF_THE_MACHINE.search(str(one)):
            message = (
                f"Checkpoint {path} cannot be read: {short_reason(error)}.\nThis is "
                "a system error; the checkpoint was not modified. Fix the cause and "
                "rerun the command."
            )
            return _kind(number, str(one))(message)
    return None


def short_reason(error: BaseException) -> str:
    """Says in one line why a checkpoint could not be read or written.

    Example:
      >>> short_reason(ValueError("Failed to write [os_error_code='28']"))
      'No space left on device'
    """
    for one in _chain(error):
        number = _number(one)
        if number is not None:
            name = getattr(one, "filename", None)
            return os.strerror(number) + (f": {name}" if name else "")
    # Orbax tells the place in its own error, and what was wrong in that one's cause;
    # our own errors have both.
    while error.__cause__ and not isinstance(error, UserError):
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0]}"[:300].rstrip(" :.")


def _kind(number: int | None, text: str) -> type[Exception]:
    if number in (errno.EACCES, errno.EPERM) or "PERMISSION_DENIED" in text:
        return InputMissingError
    if number == errno.EIO:
        return StorageError
    return UnavailableError


def _number(error: BaseException) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _SYSTEM_ERROR.search(str(error))
    return int(found[1]) if found else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
