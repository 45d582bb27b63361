"""Atomic writing of files, reading with a size limit, locks, templates and caches."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from t2t_jax.errors import (
    ConfigError,
    DataError,
    UnavailableError,
    UserError,
    writing,
)

if TYPE_CHECKING:  # Jinja is imported when a page is written.
    from jinja2 import Environment

SHARED_FS_TIMEOUT = 60.0
"""Seconds for which a network file system may show an outdated directory."""

MAX_JSON_BYTES = 64 << 20
"""Size limit of a JSON file: ten times that of a vocabulary of 250,000 subwords."""

MAX_VOCABULARY_BYTES = 256 << 20
"""Size limit of a SentencePiece model; 37,000 subwords take 0.9 MB."""

_POLL_SECONDS = 0.2
"""Seconds between two looks at a shared file system."""

_LOCK_PAUSE = 0.05
"""Seconds between two attempts to lock a file."""

_KINDS = {stat.S_IFDIR: "directory", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}

_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def atomic_write(path: Path, content: bytes | str) -> None:
    """Writes a temporary file in the same directory and renames it to `path`.

    A concurrent reader, or one after a crash, gets the old content or the new.

    Args:
      path: the file to create or replace; its directory exists.
      content: bytes, or text to be written as UTF-8.

    Raises:
      OSError: the file cannot be written; the error names `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if isinstance(content, str):
            # A file name may hold bytes that are not UTF-8; JSON reads the escapes.
            content = content.encode(errors="backslashreplace")
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        if error.errno:
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_output(path: str | Path, content: bytes | str, *, what: str) -> None:
    """Writes a file that a flag names, atomically.

    Args:
      what: the content, in the plural, for messages.

    Raises:
      OSError: the disk is full or fails.
      OutputError: the file cannot be written.
    """
    problem = f"the {what} cannot be written"
    with writing(path, problem=problem, advice="choose another file"):
        atomic_write(Path(path), content)


def write_once(path: Path, content: bytes | str, *, advice: str) -> None:
    """Creates a file that is never replaced, atomically and durably.

    Does nothing if the file exists with the same content.

    Args:
      path: the file to create; its directory exists.
      content: bytes, or text to be written as UTF-8.
      advice: a sentence for the error message.

    Raises:
      DataError: the path exists with other content, and is left unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _link_or_rename(temporary, path)
        fsync_directory(path.parent)
    except FileExistsError as error:
        if not path.is_file() or path.read_bytes() != data:
            reason = "it exists with other content, and is never replaced"
            raise DataError(f"Cannot write {path}: {reason}. {advice}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _link_or_rename(temporary: Path, path: Path) -> None:
    """Gives a complete file its final name; raises FileExistsError if that exists."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "File exists", str(path)) from error
        os.rename(temporary, path)  # Not atomic with the check: the workdir is locked.


def fsync_directory(path: Path) -> None:
    """Syncs the names in a directory to disk, where its file system can."""
    descriptor = os.open(path, os.O_RDONLY)
    with suppress(OSError):  # Not supported, nor needed, on some network file systems.
        os.fsync(descriptor)
    os.close(descriptor)


def wait_until_visible(
    is_visible: Callable[[], bool], *, seconds: float = SHARED_FS_TIMEOUT
) -> bool:
    """Waits until this process sees what another has written; returns whether it does.

    Args:
      seconds: timeout.
    """
    deadline = time.monotonic() + seconds
    while not is_visible():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


@contextmanager
def locked(
    path: Path, *, wait: float = 0, is_shared: bool = False, is_directory: bool = False
) -> Iterator[int]:
    """Locks a file or directory; the system releases the lock when the process ends.

    An exclusive lock creates a missing file, which its owner may remove again. A link
    is not followed, and a pipe does not block.

    Args:
      wait: seconds for which other processes are waited for.
      is_shared: whether others may hold a shared lock at the same time; the file must
        exist.
      is_directory: whether to lock a directory, which must exist, and not a file.

    Yields:
      The descriptor; of a file that is locked exclusively, opened for appending.

    Raises:
      BlockingIOError: another process holds the lock.
      OSError: the file cannot be opened, or its file system has no locks.
    """
    flags = os.O_RDONLY | (os.O_DIRECTORY if is_directory else 0)
    if not (is_shared or is_directory):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    end = time.monotonic() + wait
    while (file := _try_lock(path, flags, is_shared=is_shared)) is None:
        if time.monotonic() >= end:
            raise BlockingIOError(errno.EWOULDBLOCK, "in use elsewhere", str(path))
        time.sleep(min(_LOCK_PAUSE, max(0.0, end - time.monotonic())))
    try:
        yield file
    finally:
        os.close(file)


def _try_lock(path: Path, flags: int, *, is_shared: bool) -> int | None:
    """Returns the descriptor of a locked file; None if another process has the lock."""
    file = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
    operation = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    is_mine = False
    try:
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(file, operation | fcntl.LOCK_NB)
            # The owner may have removed the file between the two calls.
            is_mine = os.path.samestat(os.fstat(file), os.lstat(path))
    finally:
        if not is_mine:
            os.close(file)
    return file if is_mine else None


def read_limited(path: Path, *, max_bytes: int, advice: str) -> bytes:
    """Reads a file of at most `max_bytes` bytes.

    Raises:
      DataError: as for `check_size`.
      OSError: the file does not exist or cannot be read.
    """
    check_size(path, max_bytes=max_bytes, advice=advice)
    # The file may have been replaced by a pipe, which blocks without O_NONBLOCK.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return file.read(max_bytes)


def read_text(path: Path, *, advice: str) -> str:
    """Reads a file of text in UTF-8, of at most `MAX_VOCABULARY_BYTES` bytes.

    Raises:
      DataError: it is not UTF-8, or as for `check_size`.
      OSError: the file does not exist or cannot be read.
    """
    content = read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=advice)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        is_gzip = content.startswith(b"\x1f\x8b")
        what = "is compressed; unpack it" if is_gzip else "is not text in UTF-8"
        raise DataError(f"{path}: {what}. {advice}") from error


def check_size(path: Path, *, max_bytes: int, advice: str) -> int:
    """Checks the size of a file before it is read, and returns it.

    Raises:
      DataError: the file is larger than `max_bytes`, or is not a regular file.
      OSError: the file does not exist.
    """
    if (size := require_file(path, advice=advice)) > max_bytes:
        raise DataError(
            f"{path} must have at most {max_bytes:,} bytes, and has {size:,}. {advice}"
        )
    return size


def require_file(path: Path, *, advice: str) -> int:
    """Checks that a path is a regular file, without opening it.

    Returns:
      Its size in bytes.

    Raises:
      DataError: it is a directory, a loop of links, a pipe or a device; reading the
        last two may block for ever.
      OSError: it does not exist.
    """
    try:
        status = path.stat()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        reason = "must be a file, and is a loop of links"
        raise DataError(f"{path} {reason}. {advice}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "device")
        raise DataError(f"{path} must be a file, and is a {kind}. {advice}")
    return status.st_size


def map_file(path: Path) -> Any:
    """Maps a file into memory, as read-only bytes of a NumPy array.

    Raises:
      UnavailableError: it does not fit into the address space.
    """
    import numpy as np

    size = path.stat().st_size
    try:
        # An empty file cannot be mapped.
        return np.memmap(path, np.uint8, mode="r") if size else np.empty(0, np.uint8)
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be mapped into memory, {size:,} bytes: {error.strerror}. "
            "Free memory, or raise the limit of this process (ulimit -v)."
        ) from error


@contextmanager
def damage_as_data_error(what: str, *, advice: str = "") -> Iterator[None]:
    """Converts what a parser raises for content that is not trusted.

    Args:
      what: that is wrong, such as "model.npz is not a readable .npz file".
      advice: a sentence.

    Raises:
      DataError: a parser raised anything but a `UserError`, which passes.
      OSError: the content cannot be read.

    Example:
      >>> with damage_as_data_error("a.txt has no number", advice="Pass another."):
      ...     int("b")
      Traceback (most recent call last):
      t2t_jax.errors.DataError: a.txt has no number: invalid literal ... Pass another.
    """
    try:
        yield
    except (UserError, AssertionError, NameError):
        raise  # A user's, or the program's own.
    except Exception as error:  # of any kind: a file may hold anything
        # To seek a negative position is invalid, too.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        words = " ".join(str(error).split())[:400].rstrip(".")
        reason = f"it lacks {words}" if isinstance(error, KeyError) else words
        reason = reason or type(error).__name__
        raise DataError(f"{what}: {reason}. {advice}".rstrip()) from error


def read_json_object(path: Path, *, advice: str) -> dict[str, Any]:
    """Reads a file that holds one JSON object; the content is not trusted.

    Raises:
      DataError: the file is larger than `MAX_JSON_BYTES`, is not a JSON object in
        UTF-8, or is nested too deeply for Python.
      OSError: the file does not exist or cannot be read.
    """
    content = read_limited(path, max_bytes=MAX_JSON_BYTES, advice=advice)
    # NaN and Infinity are not JSON, but Python's parser accepts them.
    hooks: Any = {"parse_constant": reject_constant, "object_pairs_hook": unique_names}
    try:
        values: dict[str, Any] = json.loads(content.decode(), **hooks)
        if not isinstance(values, dict):
            raise ValueError("it is not a JSON object")
    except (RecursionError, ValueError) as error:
        fault = json_fault(error)
        raise DataError(f"{path} is damaged: {fault}\n{advice}") from error
    return values


def read_json_if_valid(path: Path) -> dict[str, Any]:
    """Reads a file that holds one JSON object; {} if it is missing or damaged."""
    with suppress(OSError, DataError):
        return read_json_object(path, advice="")
    return {}


def reject_constant(constant: str) -> NoReturn:
    """Refuses NaN and Infinity: the `parse_constant` of parsers.

    Raises:
      ValueError: always.
    """
    raise ValueError(f"{constant} is not a number")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object whose names are unique: the `object_pairs_hook` of parsers.

    Raises:
      ValueError: a name occurs twice.
    """
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return values


def json_fault(error: RecursionError | ValueError) -> str:
    """Describes an error of decoding or parsing JSON for a user.

    Args:
      error: raised by `bytes.decode` or `json.loads`.

    Example:
      >>> json_fault(json.JSONDecodeError("Expecting a name", "{,}", 1))
      'Expecting a name: line 1 column 2 (char 1)'
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError) and not error.doc.strip():
        return "it is empty"
    has_digits = "set_int_max_str_digits" in str(error)
    return "a number has too many digits" if has_digits else str(error)


def template_environment(
    package: str, path: str = "templates", **how: Any
) -> Environment:
    """Returns Jinja's environment of the templates in a folder of a package.

    Args:
      path: of the folder.
      how: options of the environment, such as `autoescape=True` for HTML.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    how |= {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=PackageLoader(package, path), **how)


def free_path(paths: Iterable[Path]) -> Path:
    """Returns the first path that does not exist, not even as a broken link."""
    return next(path for path in paths if not os.path.lexists(path))


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_child_path(directory: Path, name: str) -> Path:
    """Joins a directory and an untrusted file name that must lie in it.

    Raises:
      DataError: the name leads out of the directory, by itself or as a symbolic link.

    Example:
      >>> safe_child_path(Path("cache"), "source.tokens").as_posix()
      'cache/source.tokens'
    """
    path = directory / name
    if name == ".." or path.parent != directory or path.is_symlink():
        reason = f"names {name!r}, which is not in it. Remove the directory."
        raise DataError(f"{directory}: a file there {reason}")
    return path


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns t2t_jax in XDG_CACHE_HOME, or in ~/.cache if that is not set.

    Raises:
      ConfigError: XDG_CACHE_HOME is not set and there is no home directory.
    """
    home = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "t2t_jax"
    return expand_user("~/.cache", "The user's cache directory") / "t2t_jax"


def expand_user(path: str, name: str, change: str = "config.data.cache_dir") -> Path:
    """Replaces `~` and `~user` at the beginning of a path.

    Args:
      name: of the path, for the message.
      change: what to change, for the message.

    Raises:
      ConfigError: the home directory does not exist.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"{name} is under {Path(path).parts[0]}, which is not a home directory. "
            f"Change {change}."
        ) from error
