"""Files that are there whole or not at all, and that are read within bounds."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from t2t_jax.errors import DataError

SHARED_FS_TIMEOUT = 60.0
"""How long a network file system may go on showing a directory as it was."""

MOST_JSON_BYTES = 64 << 20
"""How large a JSON file may be that is read: ten times a vocabulary of 250,000."""

MOST_VOCABULARY_BYTES = 256 << 20
"""How large a SentencePiece model may be that is read; 37,000 subwords have 0.9 MB."""


def atomic_write(path: Path, content: bytes | str) -> None:
    """Writes a file beside its place and renames it there.

    Whoever reads `path` meanwhile, or after a crash, finds the old content or the new.

    Args:
      path: the file to make or to replace; its directory exists.
      content: bytes, or text to be written as UTF-8.

    Raises:
      OSError: it cannot be written; `path` is its file name.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if isinstance(content, str):
            # A file's name may hold bytes that are not UTF-8; JSON reads the escapes.
            content = content.encode(errors="backslashreplace")
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        if error.errno:
            error.filename = str(path)  # Nobody has named the other one.
        raise
    finally:
        beside.unlink(missing_ok=True)


_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write_once(path: Path, content: bytes | str, *, mend: str) -> None:
    """Creates a file that is never replaced, atomically and durably.

    Does nothing if the file exists with this very content.

    Args:
      path: the file to create; its directory exists.
      content: bytes, or text to be written as UTF-8.
      mend: what the user may do if other content is there, a sentence.

    Raises:
      DataError: something else is there; it is left as it is.
    """
    data = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _create(beside, path)
        _sync_directory(path.parent)
    except FileExistsError as error:
        if not path.is_file() or path.read_bytes() != data:
            raise DataError(
                f"Cannot write {path}: it exists with other content, and is never "
                f"replaced. {mend}"
            ) from error
    finally:
        beside.unlink(missing_ok=True)


def _create(whole: Path, path: Path) -> None:
    """Gives a finished file its name, unless something has that name."""
    try:
        os.link(whole, path)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "File exists", str(path)) from error
        os.rename(whole, path)  # Not atomic with the check: the workdir is locked.


def _sync_directory(path: Path) -> None:
    """Makes a new name in a directory survive a power failure."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError:  # Some network file systems cannot, and need not.
        pass
    finally:
        os.close(opened)


def read_limited(path: Path, *, most: int, mend: str) -> bytes:
    """Reads a file, unless it is larger than what belongs there can be.

    Args:
      most: bytes that it may have.
      mend: what the user may do, a sentence.

    Raises:
      DataError: as for `check_size`.
      OSError: it is not there or cannot be read.
    """
    check_size(path, most=most, mend=mend)
    # What has become a pipe since would block without O_NONBLOCK.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return file.read(most)


def check_size(path: Path, *, most: int, mend: str) -> None:
    """Checks how large a file is, before anybody reads it whole.

    Args:
      most: bytes that it may have.

    Raises:
      DataError: it has more, or is a directory, or a pipe or a device, which may never
        end.
      OSError: it is not there.
    """
    size = require_file(path, mend=mend)
    if size > most:
        raise DataError(
            f"{path} must have at most {most:,} bytes, and has {size:,}. {mend}"
        )


def require_file(path: Path, *, mend: str) -> int:
    """Checks that a path is a regular file, before anything opens it.

    Returns:
      Its size in bytes.

    Raises:
      DataError: it is a directory, a loop of links, or a pipe or a device, which may
        never end.
      OSError: it is not there.
    """
    try:
        found = path.stat()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise DataError(
            f"{path} must be a file, and is a loop of links. {mend}"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "pipe or a device"
        raise DataError(f"{path} must be a file, and is a {kind}. {mend}")
    return found.st_size


def read_json_object(path: Path, *, mend: str) -> dict[str, Any]:
    """Reads a file that holds one JSON object, whoever has written it.

    Args:
      mend: what the user may do, a sentence.

    Raises:
      DataError: it is larger than `MOST_JSON_BYTES`, or something else than a JSON
        object in UTF-8, or nested so deeply that nobody has meant it.
      OSError: it is not there or cannot be read.
    """
    content = read_limited(path, most=MOST_JSON_BYTES, mend=mend)
    try:
        # JSON knows no NaN and no infinity; Python's reader takes them.
        values = json.loads(content.decode(), parse_constant=_refuse)
    except (RecursionError, ValueError) as error:
        reason = json_fault(content, error)
        raise DataError(f"{path} is damaged: {reason}\n{mend}") from error
    if not isinstance(values, dict):
        raise DataError(f"{path} is damaged: it is no JSON object\n{mend}")
    return values


def json_fault(content: bytes, error: RecursionError | ValueError) -> str:
    """Says what is wrong with JSON, in no words of Python's.

    Args:
      error: what decoding or parsing it has raised.

    Example:
      >>> json_fault(b"{,}", json.JSONDecodeError("…", "{,}", 1))
      'not valid JSON at line 1, column 2'
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not content.strip():
        return "it is empty"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        return (
            f"invalid UTF-8 (byte {content[error.start]:#04x}) at line {line}, column "
            f"{column}"
        )
    if isinstance(error, _NoNumberError):
        return str(error)
    return "a number has too many digits"  # The only other one that Python raises.


class _NoNumberError(ValueError):
    """A constant that Python's reader takes, and JSON does not know."""


def safe_child_path(directory: Path, name: str) -> Path:
    """Names a file of a directory by what another file says, and never one elsewhere.

    Args:
      name: its name there, which is not believed.

    Raises:
      DataError: the name leads out of the directory, by itself or because a link of
        that name is there.

    Example:
      >>> safe_child_path(Path("cache"), "source.tokens").as_posix()
      'cache/source.tokens'
    """
    path = directory / name
    if name == ".." or path.parent != directory or path.is_symlink():
        raise DataError(
            f"{directory}: a file there names {name!r}, which is not in it. Remove "
            "the directory."
        )
    return path


def _refuse(constant: str) -> NoReturn:
    raise _NoNumberError(f"{constant} is no number")
