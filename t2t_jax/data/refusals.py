"""What is said where the system does not let something be written."""

from __future__ import annotations

import errno
from pathlib import Path

from t2t_jax.errors import OutputError

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def refusal(
    place: str | Path, error: OSError, *, told: str, change: str
) -> OSError | OutputError:
    """Makes the error that says what cannot be written, and whose fault it is.

    Args:
      place: where it was to be written.
      error: what the system said.
      told: what is not done, such as "the token cache cannot be written".
      change: what the user may do, such as "change config.data.cache_dir".

    Returns:
      An OSError of the same number where the disk is full or fails, for which the
      process has an exit code of its own; an OutputError otherwise.

    Example:
      >>> words = {"told": "the model cannot be written", "change": "name another"}
      >>> refusal("runs/a", PermissionError(errno.EACCES, "not yours"), **words)
      OutputError('runs/a: the model cannot be written (not yours). Name another.')
      >>> refusal("runs/a", OSError(errno.ENOSPC, "disk full"), **words).strerror
      'disk full. Make room, or name another: the model cannot be written'
    """
    if error.errno in _DISK_ERRORS:
        # Whoever shows an OSError puts its place behind it.
        message = f"{error.strerror}. Make room, or {change}: {told}"
        return OSError(error.errno, message, str(place))
    return OutputError(
        f"{place}: {told} ({error.strerror}). {change[:1].upper()}{change[1:]}."
    )
