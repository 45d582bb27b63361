"""Checks disks, file locks and caches; writes at most 16 MB, and removes them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.files.cache_paths import cache_home
from t2t_jax.data.files.quantities import format_bytes
from t2t_jax.environment.check import Check, Status
from t2t_jax.errors import UserError

_GROUP = "storage"
_CHUNK, _CHUNKS = 1 << 20, 16
_WRITE_SECONDS = 1.0
_SCAN_SECONDS = 1.0
_LITTLE_SPACE, _LEAST_SPACE = 2 << 30, 200 << 20  # bytes
_SLOW_BYTES = 5e6  # a second
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre", "beegfs", "gpfs")


def check_storage(
    workdir: Path, *, is_given: bool, environ: Mapping[str, str] = os.environ
) -> Iterator[Check]:
    """Checks the disk of a workdir, which need not exist, and the caches.

    Args:
      is_given: whether the user chose `workdir`; otherwise a directory that cannot be
        written to is only a warning.
    """
    yield from _check_disk(workdir, is_given=is_given)
    yield from _check_caches(environ)
    yield _check_tfds(environ)
    yield _check_temporary()


def _check_disk(workdir: Path, *, is_given: bool) -> Iterator[Check]:
    folder = existing_parent(workdir)
    denied: Status = "error" if is_given else "warning"
    choose = "Fix permissions, or pass --workdir with another directory."
    if not folder.is_dir():
        message = f"{folder} is a file, and {workdir} cannot be a directory"
        yield Check(_GROUP, "workdir", denied, message, choose)
        return
    yield _check_space("workdir", folder)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            yield _check_speed(file.fileno(), folder)
            yield _check_lock(file.fileno(), folder)
    except OSError as error:
        yield Check(
            _GROUP,
            "write",
            denied,
            f"{folder} cannot be written to: {error.strerror}",
            choose,
            {"path": str(folder)},
        )


def existing_parent(path: Path) -> Path:
    """Returns a path, or the nearest one above it that exists."""
    path = Path(os.path.abspath(path))
    for parent in (path, *path.parents):
        with suppress(OSError):
            if parent.exists():
                return parent
    return Path("/")


def _check_space(name: str, folder: Path) -> Check:
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        message = f"the free space of {folder} is not known: {error.strerror}"
        return Check(_GROUP, name, "warning", message)
    status: Status = "ok"
    if usage.free < _LITTLE_SPACE:
        status = "error" if usage.free < _LEAST_SPACE else "warning"
    return Check(
        _GROUP,
        name,
        status,
        f"{folder}: {format_bytes(usage.free)} free of {format_bytes(usage.total)}",
        ""
        if status == "ok"
        else "A checkpoint takes 12 bytes a parameter. Free disk space.",
        {"path": str(folder), "free": usage.free, "total": usage.total},
    )


def _check_speed(file: int, folder: Path) -> Check:
    """Writes up to 16 MB for up to a second, and syncs them."""
    content, written, began = os.urandom(_CHUNK), 0, time.perf_counter()
    while written < _CHUNK * _CHUNKS:
        written += os.write(file, content)
        if time.perf_counter() - began > _WRITE_SECONDS:
            break
    os.fsync(file)
    speed = written / max(time.perf_counter() - began, 1e-6)
    is_slow = speed < _SLOW_BYTES
    return Check(
        _GROUP,
        "write",
        "warning" if is_slow else "ok",
        f"{folder}: {format_bytes(speed)}/s, synced",
        "Checkpoints take long. Use a faster disk, or raise "
        "config.checkpoint.every_minutes."
        if is_slow
        else "",
        {"path": str(folder), "bytes_per_second": round(speed)},
    )


def _check_lock(file: int, folder: Path) -> Check:
    """Locks a file, and checks that it cannot be locked twice."""
    kind = file_system(folder)
    details = {"path": str(folder), "file_system": kind}
    on = f"on {folder}" + (f" ({kind})" if kind else "")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return Check(
            _GROUP,
            "locks",
            "error",
            f"file locks do not work {on}: {error.strerror}",
            "A run needs them. Choose a workdir on another file system.",
            details,
        )
    if _locks_twice(file):
        return Check(
            _GROUP,
            "locks",
            "error",
            f"file locks have no effect {on}",
            "Two runs could write to one workdir. Choose another file system.",
            details,
        )
    is_remote = kind in _NETWORK
    return Check(
        _GROUP,
        "locks",
        "ok",
        f"file locks work {on}",
        "Whether other hosts see them depends on how it is mounted (NFS: not with "
        "local_lock or nolock)."
        if is_remote
        else "",
        details,
    )


def _locks_twice(file: int) -> bool:
    """Returns whether a second description of a locked file can be locked too."""
    try:
        again = os.open(f"/proc/self/fd/{file}", os.O_RDWR)
    except OSError:  # Not on Linux, or the file has no name there.
        return False
    try:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(again)


def file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Returns the type of the file system that holds a path; "" if unknown."""
    found = ("", "")
    with suppress(OSError):
        for line in mounts.read_text(errors="replace").splitlines():
            words = line.split(" ")
            if len(words) < 3:
                continue
            point = words[1].replace("\\040", " ")
            # The last of several mounts at one point hides the others.
            if path.is_relative_to(point) and len(point) >= len(found[0]):
                found = (point, words[2])
    return found[1]


class Size(NamedTuple):
    """The size of a directory.

    Attributes:
      is_complete: whether everything was counted in the given time.
    """

    bytes: int
    is_complete: bool


def directory_size(folder: Path, *, seconds: float = _SCAN_SECONDS) -> Size:
    """Sums the sizes of the files in a directory, for a limited time."""
    total, until = 0, time.monotonic() + seconds
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
        if time.monotonic() > until:
            return Size(total, False)
    return Size(total, True)


def _check_caches(environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        home = cache_home(environ)
    except UserError as error:
        message, _, advice = error.problems[0].partition(". ")
        yield Check(_GROUP, "caches", "error", message, f"{advice} Set XDG_CACHE_HOME.")
        return
    parent = existing_parent(home)
    if not os.access(parent, os.W_OK | os.X_OK):
        yield Check(
            _GROUP,
            "caches",
            "error",
            f"{parent} is not writable, and the caches are in {home}",
            "Set XDG_CACHE_HOME to a writable directory.",
            {"path": str(home)},
        )
    named = environ.get("JAX_COMPILATION_CACHE_DIR", "")
    remote = "://" in named
    compiled = home / "compiled" if not named else Path(named)
    if not remote:
        yield _check_private(compiled)
        yield _cache("compiled programs", [compiled])
    token_caches = [p for p in _children(home) if p.name.startswith("tokens-")]
    yield _cache("token caches", token_caches, at=home)
    if parent == home or home.exists():
        yield _check_space("cache disk", home)


def _children(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _check_private(folder: Path) -> Check:
    name = "cache of programs"
    try:
        facts = folder.stat()
    except OSError:
        return Check(_GROUP, name, "ok", f"{folder} does not exist yet")
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
        return Check(
            _GROUP,
            name,
            "error",
            f"{folder} belongs to another user, or others can write to it",
            "Compiled programs are code. Run chmod 700 on it, or set "
            "JAX_COMPILATION_CACHE_DIR to a directory of your own.",
            {"path": str(folder)},
        )
    return Check(_GROUP, name, "ok", f"{folder} is private", "", {"path": str(folder)})


def _cache(name: str, folders: list[Path], *, at: Path | None = None) -> Check:
    sizes = [directory_size(folder) for folder in folders]
    total = sum(size.bytes for size in sizes)
    at_least = "" if all(size.is_complete for size in sizes) else "at least "
    path = at or folders[0]
    count = f"{len(folders)} in " if at else ""
    return Check(
        _GROUP,
        name,
        "ok",
        f"{count}{path}: {at_least}{format_bytes(total)}; can be removed at any time",
        details={"path": str(path), "bytes": total, "is_complete": not at_least},
    )


def _check_tfds(environ: Mapping[str, str]) -> Check:
    named = environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    try:
        folder = Path(named).expanduser()
    except RuntimeError:
        advice = "Set TFDS_DATA_DIR to a directory."
        message = f"{named} has no home directory"
        return Check(_GROUP, "tfds", "warning", message, advice)
    details = {"path": str(folder), "exists": folder.is_dir()}
    if not folder.is_dir():
        message = f"{folder} does not exist; prepared TFDS sets are looked for there"
        return Check(_GROUP, "tfds", "ok", message, details=details)
    names = sorted(path.name for path in _children(folder) if path.is_dir())
    sets = [name for name in names if name != "downloads" and name[:1] != "."]
    message = f"{folder}: {', '.join(sets[:5]) or 'no sets'}" + ", …" * (len(sets) > 5)
    return Check(_GROUP, "tfds", "ok", message, details={**details, "sets": sets})


def _check_temporary() -> Check:
    try:
        return _check_space("temporary files", Path(tempfile.gettempdir()))
    except OSError as error:  # None of the usual directories can be written to.
        message = f"no directory for temporary files: {error.strerror}"
        advice = "Set TMPDIR to a writable directory."
        return Check(_GROUP, "temporary files", "error", message, advice)
