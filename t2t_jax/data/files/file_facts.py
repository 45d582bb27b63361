"""Digests and line counts of files; those of large files are cached.

The cache is one small file in the user's own cache directory, whatever
`data.cache_dir` is: that directory may be shared, and file names are private. An entry
is valid for a path, size, inode, mtime and ctime; `ctime` cannot be set, so it detects
a file that was overwritten and got its old `mtime` back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from t2t_jax.data.files.lines import GZIP_ERRORS, gzip_fault, open_bytes
from t2t_jax.errors import DataError, InputMissingError, UserError
from t2t_jax.files import atomic_write, cache_home, sha256_of

Fact = TypeVar("Fact", str, int)
_Facts: TypeAlias = dict[str, dict[str, Any]]

# On a file system with coarse timestamps, such as FAT's two seconds, a second change
# within a tick is undetectable: recently modified files are not cached.
_SETTLED_NS = 2_000_000_000
_MIN_BYTES = 1 << 20  # a millisecond of reading
_MAX_FILES = 1_000
_CACHE_FILE = "file_facts.json"
_BLOCK = 1 << 22


def digest(path: Path) -> bytes:
    """Returns the SHA-256 of a file's bytes."""
    return bytes.fromhex(cached_fact(path, "sha256", sha256_of))


def cached_fact(path: Path, name: str, find: Callable[[Path], Fact]) -> Fact:
    """Returns a property of a file's content, from the cache or computed by `find`.

    A missing, damaged or unwritable cache is not an error; the property is computed.
    """
    key = os.path.abspath(path)
    now = path.stat()
    version = [now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns]
    is_settled = max(version[2:]) + _SETTLED_NS < time.time_ns()
    if now.st_size < _MIN_BYTES or not is_settled:
        return find(path)
    known = _read().get(key, {})
    if known.get("version") == version and name in known:
        fact: Fact = known[name]
        return fact
    fact = find(path)
    # Read again: another process may have written meanwhile. If it writes right now,
    # one of the two entries is lost and computed again.
    facts = _read()
    if (known := facts.pop(key, {})).get("version") != version:
        known = {"version": version}
    _write({**facts, key: {**known, name: fact}})
    return fact


def _read() -> _Facts:
    """Reads all entries; {} if the file is damaged or writable by other users."""
    with contextlib.suppress(OSError, ValueError, UserError):
        path = cache_home() / _CACHE_FILE
        if (owner := path.stat()).st_uid == os.geteuid() and not owner.st_mode & 0o022:
            checksum, _, content = path.read_text(encoding="utf-8").partition("\n")
            if checksum == _checksum(content):
                facts: _Facts = json.loads(content)
                return facts
    return {}


def _write(facts: _Facts) -> None:
    """Writes the newest 1,000 entries of files that exist."""
    existing = [path for path in facts if os.path.exists(path)][-_MAX_FILES:]
    content = json.dumps({path: facts[path] for path in existing})
    with contextlib.suppress(OSError, UserError):  # an unwritable home directory
        path = cache_home() / _CACHE_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, f"{_checksum(content)}\n{content}")
        path.chmod(0o600)


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def count_lines(path: Path) -> int:
    """Counts the lines of a file without decoding them.

    Raises:
      DataError: the file is broken gzip.
      InputMissingError: the file cannot be read.
    """
    try:
        return cached_fact(path, "lines", _count_lines)
    except GZIP_ERRORS as error:
        raise DataError(f"{path}: broken gzip: {gzip_fault(error)}.") from error
    except OSError as error:
        fault = f"{path}: cannot be read ({error.strerror})."
        raise InputMissingError(fault) from error


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")  # The last line may lack its LF.
