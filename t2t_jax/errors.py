"""Errors that a user can cause, and their exit codes.

Every such error is a `UserError` with one message or several, each in the form "<what
failed>: <reason>. <what to change>". `t2t_jax.main` prints the messages without a
traceback and exits with the code of the class (the numbers of sysexits.h).
"""

from __future__ import annotations

import errno
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class UserError(ValueError):
    """An error that the user can fix.

    Args:
      problems: one message or several, each of at most three lines.
      unlisted: number of further messages of the same kind that are only counted.

    Attributes:
      problems: the messages, in the order in which they were found.
      exit_code: the exit status of the process (64, usage, unless a subclass sets it).

    Example:
      >>> import t2t_jax
      >>> try:
      ...     t2t_jax.load("runs/nowhere")
      ... except t2t_jax.UserError as error:
      ...     print(error.exit_code, *error.problems)
      66 ...runs/nowhere...
    """

    exit_code = 64

    def __init__(self, problems: str | Iterable[str], *, unlisted: int = 0):
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.unlisted = unlisted
        more = [f"and {unlisted} more."] if unlisted else []
        super().__init__("\n".join([*self.problems, *more]))


class DataError(UserError):
    """Text, a vocabulary or a checkpoint is not valid."""

    exit_code = 65


class InputMissingError(UserError):
    """An input file does not exist or cannot be read."""

    exit_code = 66


class UnavailableError(UserError):
    """A device or another process of the run is not available."""

    exit_code = 69


class OutputError(UserError):
    """A file or directory cannot be written."""

    exit_code = 73


class StorageError(UserError):
    """The disk is full or fails."""

    exit_code = 74


class StoppedError(UserError):
    """A signal stopped the run; the same command resumes it."""

    exit_code = 75


class DivergedError(UserError):
    """The loss or the gradient is not finite any more."""

    exit_code = 76


class ConfigError(UserError):
    """A configuration value is not valid."""

    exit_code = 78


@contextmanager
def rewording(change: Callable[[str], str]) -> Iterator[None]:
    """Changes the messages of a `UserError`: the same fault, named for another caller.

    Example:
      >>> with rewording(lambda problem: f"init_from={problem}"):
      ...     raise DataError("runs/a is damaged.")
      Traceback (most recent call last):
      t2t_jax.errors.DataError: init_from=runs/a is damaged.
    """
    try:
        yield
    except UserError as error:
        problems = map(change, error.problems)
        raise type(error)(problems, unlisted=error.unlisted) from error


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, then its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def one_of(*values: Any) -> Any:
    """Makes a field of a configuration that accepts these values, by default the first.

    `ErrorCollector` checks it.

    Example:
      >>> import dataclasses
      >>> @dataclasses.dataclass
      ... class Config:
      ...     layout: str = one_of("packed", "buckets")
      >>> ErrorCollector("data", Config("rows")).messages
      ["data.layout='rows' is not known; known are 'packed', 'buckets'. Change ..."]
    """
    return field(default=values[0], metadata={"choices": values})


def checked(
    default: Any,
    rule: str,
    holds: Callable[[Any], object],
    *,
    most: float = math.inf,
    why: str = "",
) -> Any:
    """Makes a field of a configuration that accepts what passes a test.

    `ErrorCollector` checks it.

    Args:
      rule, most, why: as of `ErrorCollector.of` and `ErrorCollector.limit`.

    Example:
      >>> import dataclasses
      >>> @dataclasses.dataclass
      ... class Config:
      ...     rows: int = checked(8, "be even", lambda x: x % 2 == 0, most=100)
      >>> ErrorCollector("data", Config(7)).messages
      ['data.rows=7 must be even. Change config.data.rows.']
    """
    return field(default=default, metadata={"checks": (rule, holds, most, why)})


def at_least_1(default: float, rule: str = "be at least 1", **limit: Any) -> Any:
    """Makes a field for a number of at least 1."""
    return checked(default, rule, lambda x: x >= 1, **limit)


def at_least_0(default: float, rule: str = "be 0 or more", **limit: Any) -> Any:
    """Makes a field for a finite number of at least 0."""
    return checked(default, rule, lambda x: 0 <= x < math.inf, **limit)


def positive(default: float) -> Any:
    """Makes a field for a finite number above 0."""
    return checked(default, "be a positive number", lambda x: 0 < x < math.inf)


def below_1(default: float, rule: str = "lie in [0, 1)") -> Any:
    """Makes a field for a number of at least 0, and below 1."""
    return checked(default, rule, lambda x: 0 <= x < 1)


def off_or_more(default: float, **limit: Any) -> Any:
    """Makes a field for a finite number; 0 is off."""
    return at_least_0(default, "be 0 (off) or more", **limit)


def choices_of(config: Any) -> dict[str, tuple[Any, ...]]:
    """Returns the known values of the fields that `one_of` made.

    Args:
      config: a dataclass, or an object of one.
    """
    known = {one.name: one.metadata.get("choices") for one in fields(config)}
    return {name: values for name, values in known.items() if values}


class ErrorCollector:
    """Collects error messages, so that all of them are reported at once.

    Args:
      section: of the configuration, whose keys `of` and `limit` check by their names;
        "" for keys without one.
      config: its values; those that `one_of` and `checked` refuse are the first errors.
      root: before a key in what to change; "" for arguments of a function.

    Attributes:
      messages: the messages collected so far.

    Example:
      >>> errors = ErrorCollector()
      >>> errors.check(7 % 2 == 0, "rows=7 must be even. Change config.rows.")
      >>> errors.messages
      ['rows=7 must be even. Change config.rows.']
    """

    def __init__(
        self, section: str = "", config: Any = None, *, root: str = "config."
    ) -> None:
        self._prefix, self._config = section and f"{section}.", config
        self._root = root
        self.messages: list[str] = []
        self._kind: type[UserError] = ConfigError
        self._unlisted = 0
        for name, known in choices_of(config).items() if config is not None else ():
            key, value = f"{self._prefix}{name}", getattr(config, name)
            words = ", ".join(map(repr, known))
            about = f"{key}={value!r} is not known; known are {words}."
            self.check(value in known, f"{about} Change {root}{key}.")
        for one in fields(config) if config is not None else ():
            if checks := one.metadata.get("checks"):
                rule, holds, most, why = checks
                self.of(rule, holds, one.name)
                if most < math.inf and holds(getattr(config, one.name)):
                    self.limit(most, one.name, why=why)

    def check(self, holds: bool, message: str) -> None:
        """Adds `message` unless `holds`."""
        if not holds:
            self.messages.append(message)

    def require(self, key: str, value: object, holds: bool, rule: str) -> None:
        """Adds the message of a configuration value that breaks a rule.

        Args:
          key: of the configuration, `section.name`.
          rule: what the value must be, with the reason.

        Example:
          >>> errors = ErrorCollector()
          >>> errors.require("data.row_length", 7, 7 % 2 == 0, "be even")
          >>> errors.messages
          ['data.row_length=7 must be even. Change config.data.row_length.']
        """
        self.check(holds, f"{key}={value} must {rule}. Change {self._root}{key}.")

    def of(self, rule: str, holds: Callable[[Any], object], *names: str) -> None:
        """Adds the messages of the section's keys whose values a test does not accept.

        Args:
          rule: as in `require`.
        """
        for name in names:
            value = getattr(self._config, name)
            self.require(f"{self._prefix}{name}", repr(value), bool(holds(value)), rule)

    def limit(self, most: int, *names: str, why: str = "") -> None:
        """Adds the messages of keys whose values are above a limit.

        Args:
          why: a clause for the message.

        Example:
          >>> import dataclasses
          >>> config = dataclasses.make_dataclass("DataConfig", ["workers"])(5_000)
          >>> errors = ErrorCollector("data", config)
          >>> errors.limit(1_024, "workers")
          >>> errors.messages
          ['data.workers=5,000 must be at most 1,024. Change config.data.workers.']
        """
        rule = f"be at most {most:,}" + f": {why}" * bool(why)
        for name in names:
            value = getattr(self._config, name)
            self.require(f"{self._prefix}{name}", f"{value:,}", value <= most, rule)

    def used(self, name: str, by: str, is_used: object, *, only: str = "") -> None:
        """Adds the message of a key that was changed and has no effect.

        Args:
          by: the key that decides whether it has one.
          only: a clause for the message: with which values it has.
        """
        config, prefix = self._config, self._prefix
        value, default = getattr(config, name), getattr(type(config), name)
        self.check(
            bool(is_used) or value == default,
            f"{prefix}{name}={value} has no effect with {prefix}{by}="
            f"{getattr(config, by)}{only}. Change config.{prefix}{by}, or leave "
            f"config.{prefix}{name} out.",
        )

    def try_call(
        self, function: Callable[..., Any], argument: Any, **options: Any
    ) -> Any:
        """Calls a function and adds the messages of a `UserError` that it raises.

        Args:
          argument: None, the result of a call that failed, skips this call too.

        Returns:
          `function(argument, **options)`; None if it failed or was skipped.

        Example:
          >>> errors = ErrorCollector()
          >>> errors.try_call(int, "7"), errors.try_call(int, None)
          (7, None)
        """
        if argument is None:
            return None
        try:
            return function(argument, **options)
        except UserError as error:
            if not self.messages:
                self._kind = type(error)
            self.messages.extend(error.problems)
            self._unlisted += error.unlisted
            return None

    def raise_if_any(self, kind: type[UserError] | None = None) -> None:
        """Raises one error with all messages, each listed once, if there are any.

        Args:
          kind: of the error; None means that of the first call that failed, or
            `ConfigError` for checks.
        """
        if self.messages:
            messages = dict.fromkeys(self.messages)
            raise (kind or self._kind)(messages, unlisted=self._unlisted)


def require_package(name: str, *, user: str, extra: str, package: str = "") -> None:
    """Checks that a package of an extra is installed, before it is needed.

    Args:
      name: of the module.
      user: what requires it, for the message.
      package: its name for pip, if pip does not know the module's.

    Raises:
      UserError: it is not installed.

    Example:
      >>> require_package("nothing", user="--mode=none", extra="all")
      Traceback (most recent call last):
      t2t_jax.errors.UserError: --mode=none requires the package nothing, ...
    """
    if find_spec(name) is None:
        raise UserError(
            f"{user} requires the package {package or name}, which is not installed. "
            f"Run: pip install 't2t-jax[{extra}]'"
        )


def short_repr(value: object) -> str:
    """Returns a value of an untrusted file for a message, of at most 100 characters.

    Nested values that refer to one another can have billions.

    Example:
      >>> short_repr({"layers": [6, "six"]})
      "{'layers': [6, 'six']}"
    """
    try:
        return reprlib.repr(value)[:100]
    except ValueError:  # Python writes no integer of over 4,300 digits.
        return f"a too large {type(value).__name__}"


@contextmanager
def writing(path: str | Path, *, problem: str, advice: str) -> Iterator[None]:
    """Says of errors of the system what cannot be written, and what to do.

    Args:
      problem: what failed, such as "the token cache cannot be written".
      advice: what the user can do, such as "change config.data.cache_dir".

    Raises:
      OSError: the disk is full or fails, which has its own exit code.
      OutputError: another error of the system.

    Example:
      >>> words = {"problem": "cannot write the model", "advice": "choose another path"}
      >>> with writing("runs/a", **words):
      ...   raise PermissionError(errno.EACCES, "not yours")
      Traceback (most recent call last):
      t2t_jax.errors.OutputError: runs/a: cannot write the model (not yours). Choose ...
      >>> with writing("runs/a", **words):
      ...   raise OSError(errno.ENOSPC, "disk full")
      Traceback (most recent call last):
      OSError: [Errno 28] disk full. Free disk space, or choose another path: ...
    """
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_ERRORS:
            # The path of an OSError is printed after its message.
            message = f"{error.strerror}. Free disk space, or {advice}: {problem}"
            raise OSError(error.errno, message, str(path)) from error
        advice = f"{advice[:1].upper()}{advice[1:]}"
        message = f"{path}: {problem} ({error.strerror}). {advice}."
        raise OutputError(message) from error
