"""What a user is told when something is wrong, and the exit code that goes with it.

Every error a user can cause is a `UserError`: one message or several, each saying
the rule, what came, and what to change. `t2t_jax.main` prints them without a
traceback and exits with the class's code (the numbers are those of sysexits.h).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def write_error(
    place: str | Path, error: OSError, *, told: str, change: str
) -> OSError | OutputError:
    """Makes the error that says what cannot be written, and whose fault it is.

    Args:
      place: where it was to be written.
      told: what is not done, such as "the token cache cannot be written".
      change: what the user may do, such as "change config.data.cache_dir".

    Returns:
      An OSError of the same number where the disk is full or fails, for which the
      process has an exit code of its own; an OutputError otherwise.

    Example:
      >>> words = {"told": "the model cannot be written", "change": "name another"}
      >>> write_error("runs/a", PermissionError(errno.EACCES, "not yours"), **words)
      OutputError('runs/a: the model cannot be written (not yours). Name another.')
      >>> write_error("runs/a", OSError(errno.ENOSPC, "disk full"), **words).strerror
      'disk full. Make room, or name another: the model cannot be written'
    """
    if error.errno in _DISK_ERRORS:
        # Whoever shows an OSError puts its place behind it.
        message = f"{error.strerror}. Make room, or {change}: {told}"
        return OSError(error.errno, message, str(place))
    return OutputError(
        f"{place}: {told} ({error.strerror}). {change[:1].upper()}{change[1:]}."
    )


class UserError(ValueError):
    """A mistake that the user can mend.

    Args:
      problems: one message, or all of them; each of at most three lines.
      unlisted: how many more there are that are alike, and not worth a line each.

    Attributes:
      problems: the messages, in the order in which they were found.
      unlisted: as given.
      exit_code: the process's exit status (64, usage, unless a subclass says so).
    """

    exit_code = 64

    def __init__(self, problems: str | Iterable[str], *, unlisted: int = 0):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.unlisted = unlisted
        more = [f"and {unlisted} more."] if unlisted else []
        super().__init__("\n".join([*self.problems, *more]))


class DataError(UserError):
    """Text, a vocabulary or a checkpoint is not what it must be."""

    exit_code = 65


class InputMissingError(UserError):
    """A file that was named is not there or cannot be read."""

    exit_code = 66


class UnavailableError(UserError):
    """A device, or another process of the run, is not there."""

    exit_code = 69


class OutputError(UserError):
    """A file or directory cannot be written."""

    exit_code = 73


class StorageError(UserError):
    """The disk is full, or fails."""

    exit_code = 74


class StoppedError(UserError):
    """A signal ended the run; the same command resumes it."""

    exit_code = 75


class DivergedError(UserError):
    """The loss or the gradient is no longer a number."""

    exit_code = 76


class ConfigError(UserError):
    """A configuration breaks a rule."""

    exit_code = 78


class ErrorCollector:
    """Collects broken rules, so that they are reported together.

    Example:
      >>> problems = ErrorCollector()
      >>> problems.require(7 % 2 == 0, "rows=7 must be even. Change config.rows.")
      >>> problems.found
      ['rows=7 must be even. Change config.rows.']
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    def check(self, holds: bool, message: str) -> None:
        """Notes `message` unless `holds`."""
        if not holds:
            self.found.append(message)

    def limit(self, key: str, value: float, most: int, *, why: str = "") -> None:
        """Notes a value of a configuration key that is absurdly large.

        Args:
          key: of the configuration, `section.name`.
          value: what it is set to.
          most: the largest value that makes sense.
          why: a clause for the message; "" for none.

        Example:
          >>> problems = ErrorCollector()
          >>> problems.limit("data.workers", 5_000, 1_024)
          >>> problems.found
          ['data.workers=5,000 must be at most 1,024. Change config.data.workers.']
        """
        reason = f": {why}" if why else ""
        self.check(
            value <= most,
            f"{key}={value:,} must be at most {most:,}{reason}. Change config.{key}.",
        )

    def raise_if_any(self, error: type[UserError] = ConfigError) -> None:
        """Raises one `error` with all the messages, if there are any."""
        if self.found:
            raise error(self.found)


class Attempts:
    """Goes on after a user's mistake, to find the next one too.

    Example:
      >>> attempts = Attempts()
      >>> attempts.attempt(int, "7"), attempts.attempt(int, None)
      (7, None)
    """

    def __init__(self) -> None:
        self._errors: list[UserError] = []

    def try_call(self, act: Callable[..., Any], subject: Any, **options: Any) -> Any:
        """Returns `act(subject, …)`, or None if that or what it needs went wrong."""
        if subject is None:
            return None
        try:
            return act(subject, **options)
        except UserError as error:
            self._errors.append(error)
            return None

    @property
    def have_failed(self) -> bool:
        """Whether any attempt has met a mistake so far."""
        return bool(self._errors)

    def raise_if_any_failed(self) -> None:
        """Raises all the problems, each once, as an error of the first one's kind."""
        if self._errors:
            problems = [p for error in self._errors for p in error.problems]
            unlisted = sum(error.unlisted for error in self._errors)
            raise type(self._errors[0])(dict.fromkeys(problems), unlisted=unlisted)
