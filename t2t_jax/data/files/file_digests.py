"""What reading a whole file has told, so that no later start reads it for that again.

Facts lie in one small file under the user's own cache directory, whatever
`data.cache_dir` says: that may be shared, and what a user reads is nobody else's
business. They hold for a file's path, size, inode and both times of change: `ctime`,
which nobody can set, tells what was written over and got its old `mtime` back.
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

from t2t_jax.data.files.cache_paths import cache_home
from t2t_jax.errors import UserError
from t2t_jax.files import atomic_write

Fact = TypeVar("Fact", str, int)
_Facts: TypeAlias = dict[str, dict[str, Any]]

# Of a file system with coarse clocks, as FAT's of two seconds, a second change within a
# tick leaves no trace: what has just been changed is not remembered.
_SETTLED_NS = 2_000_000_000
_WORTH_BYTES = 1 << 20  # a millisecond of reading
_MOST_FILES = 1_000


def digest(path: Path) -> bytes:
    """Returns the SHA-256 of a file's bytes.

    Training and development text may be slices of one file, and every start asks for
    both: at the size of WMT each reading is seconds, and with it the file is read once.
    """
    return bytes.fromhex(cached_fact(path, "sha256", _sha256))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_fact(path: Path, name: str, find: Callable[[Path], Fact]) -> Fact:
    """Returns a fact of a file's content: remembered, or found by reading it.

    Nothing that is wrong with the memory is an error, only a reason to read again.

    Args:
      find: reads the file; what it raises is raised.
    """
    place = os.path.abspath(path)
    now = path.stat()
    version = [now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns]
    changed = max(now.st_mtime_ns, now.st_ctime_ns)
    settled = changed + _SETTLED_NS < time.time_ns()
    if now.st_size < _WORTH_BYTES or not settled:
        return find(path)
    known = _read().get(place, {})
    if known.get("version") == version and name in known:
        fact: Fact = known[name]
        return fact
    fact = find(path)
    # Read anew: another process may have written meanwhile. Should it do so now, one of
    # the two facts is lost and found again.
    facts = _read()
    known = facts.pop(place, {})
    if known.get("version") != version:
        known = {"version": version}
    _write({**facts, place: {**known, name: fact}})
    return fact


def _memory() -> Path:
    return cache_home() / "file_facts.json"


def _read() -> _Facts:
    """Reads all facts; none where the file is damaged or could be another user's."""
    with contextlib.suppress(OSError, ValueError, UserError):
        path = _memory()
        owner = path.stat()
        if owner.st_uid == os.geteuid() and not owner.st_mode & 0o022:
            checksum, _, content = path.read_text(encoding="utf-8").partition("\n")
            if checksum == _checksum(content):
                facts: _Facts = json.loads(content)
                return facts
    return {}


def _write(facts: _Facts) -> None:
    """Writes the facts of files that are there, the last thousand of them."""
    there = [place for place in facts if os.path.exists(place)][-_MOST_FILES:]
    content = json.dumps({place: facts[place] for place in there})
    with contextlib.suppress(OSError, UserError):  # a home that cannot be written
        path = _memory()
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, f"{_checksum(content)}\n{content}")
        path.chmod(0o600)


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
