"""Distinguishes corrupt checkpoints from I/O and permission errors.

A corrupt checkpoint may be quarantined and another one used. After a system error
(permissions, memory, a failing disk) the checkpoint may be valid: restoring stops.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path

from t2t_jax.errors import (
    DataError,
    InputMissingError,
    StorageError,
    UnavailableError,
    UserError,
    error_chain,
)

# Raised for files that are missing, truncated or of another kind than those saved.
_CORRUPTION_ERRNOS = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL),
    *(errno.ELOOP, errno.ENODATA, errno.ENOTEMPTY),
}
# TensorStore writes the errno into its message, JAX the name of a status.
_ERRNO_IN_TEXT = re.compile(r"(?:OS error |os_error_code=')(\d+)")
_SYSTEM_STATUS = re.compile("RESOURCE_EXHAUSTED|PERMISSION_DENIED|UNAVAILABLE")


class CorruptCheckpointError(DataError):
    """A checkpoint differs from what was saved.

    Args:
      reason: one line.
      others: the other steps of the directory, for the message.
    """

    _words = (
        "Checkpoint {path} is corrupt: {reason}.\nOther steps there: {others}. Choose "
        "one of them; training resumes from the newest valid one."
    )

    def __init__(self, path: Path, reason: str, *, others: Sequence[int] = ()):
        self.path, self.reason = path, reason
        steps = ", ".join(map(str, others)) or "none"
        super().__init__(self._words.format(path=path, reason=reason, others=steps))


class RemovedCheckpointError(CorruptCheckpointError):
    """A checkpoint was removed while it was read: its run keeps others."""

    _words = (
        "Checkpoint {path} was removed while it was read: its run keeps only some of "
        "its checkpoints. Now there: {others}. Choose last or best, or raise "
        "config.checkpoint.keep."
    )


def as_io_error(error: BaseException, path: Path) -> Exception | None:
    """Returns the error to raise if a system error prevented reading a checkpoint.

    Returns:
      None if the checkpoint itself is corrupt.

    Example:
      >>> as_io_error(MemoryError(), Path("run/checkpoints/7"))
      UnavailableError('Checkpoint run/checkpoints/7 cannot be read: MemoryError...)
      >>> as_io_error(FileNotFoundError(2, "No such file"), Path("7")) is None
      True
    """
    for cause in error_chain(error):
        number = _errno_of(cause)
        is_system = number is not None and number not in _CORRUPTION_ERRNOS
        is_system |= isinstance(cause, MemoryError)
        if is_system or _SYSTEM_STATUS.search(str(cause)):
            return _error_type(number, str(cause))(
                f"Checkpoint {path} cannot be read: {short_reason(error)}.\nThis is "
                "a system error; the checkpoint was not modified. Fix the cause and "
                "rerun the command."
            )
    return None


def short_reason(error: BaseException) -> str:
    """Describes in one line why a checkpoint could not be read or written.

    Example:
      >>> short_reason(ValueError("Failed to write [os_error_code='28']"))
      'No space left on device'
    """
    for cause in error_chain(error):
        if (number := _errno_of(cause)) is not None:
            name = getattr(cause, "filename", None)
            return os.strerror(number) + (f": {name}" if name else "")
    # An error of Orbax names the path, its cause the fault; a `UserError` names both.
    while error.__cause__ and not isinstance(error, UserError):
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0]}"[:300].rstrip(" :.")


def _error_type(number: int | None, text: str) -> type[Exception]:
    if number in (errno.EACCES, errno.EPERM) or "PERMISSION_DENIED" in text:
        return InputMissingError
    return StorageError if number == errno.EIO else UnavailableError


def _errno_of(error: BaseException) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = _ERRNO_IN_TEXT.search(str(error))
    return int(match[1]) if match else None
