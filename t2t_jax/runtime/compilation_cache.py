"""Compiled programs, kept from one start to the next.

JAX keeps them where its environment variables say, if they do. Here they get values,
before JAX is imported, so that a second start does not compile again. A compiled
program is code: whoever writes into the directory decides what this process does.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import itertools
import logging
import os
import platform
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from t2t_jax.data.files.cache_paths import cache_home
from t2t_jax.errors import ConfigError, UserError

DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
"""The environment variable that names another directory than the default one."""

SWITCH = "JAX_ENABLE_COMPILATION_CACHE"
"""The environment variable that is false where nothing is to be kept."""

# Small programs are most of the start of a small run, so they are kept too.
_THRESHOLDS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_FALSE = ("n", "no", "f", "false", "off", "0")  # as JAX reads it
_ENTRIES = "*-cache"
_UNUSED_SECONDS = 30 * 24 * 3600
_SWEEP_SECONDS = 24 * 3600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# What /proc/cpuinfo says of a kind of processor, and not of this one now.
_KIND_OF_CPU = re.compile(
    r"(vendor_id|cpu family|model|model name|stepping|flags|Features"
    r"|CPU (?:implementer|architecture|variant|part))\s*:"
)
_COMPLAINT = re.compile(
    r"Error (reading|writing) persistent compilation cache entry for '(.*?)': (.*)"
)
_LOGGER = logging.getLogger(__name__)


def enable_compilation_cache(
    environ: MutableMapping[str, str] = os.environ,
) -> Path | None:
    """Lets JAX keep what it compiles, if it is imported after this.

    The directory is the one that JAX_COMPILATION_CACHE_DIR names, or one in the user's
    cache directory, where what has not been used for 30 days is removed.

    Args:
      environ: the environment, to which JAX's variables are added.

    Returns:
      The directory; None if none is kept here: it is switched off, it is no directory
      of this machine (`gs://…`), or the default one cannot be used, which is said.

    Raises:
      UserError: the directory that was named is not private, or cannot be made.
    """
    if environ.get(SWITCH, "").lower() in _FALSE:
        return None
    named = environ.get(DIRECTORY, "")
    if "://" in named:
        return None
    if named:
        folder = Path(named)
        _make_private(folder)
    else:
        try:
            folder = _default_directory(environ)
        except (UserError, OSError) as error:
            _LOGGER.warning(
                "Compiled programs are not kept: %s Or set %s=false, which ends this "
                "warning.",
                error,
                SWITCH,
            )
            return None
    environ[DIRECTORY] = str(folder)
    for name, value in _THRESHOLDS.items():
        environ.setdefault(name, value)
    # Each, also where the words are the same as before.
    warnings.filterwarnings("always", message=_COMPLAINT.pattern)
    warnings.showwarning = _Mending(folder, warnings.showwarning)
    return folder


def disable_cache_on_multiprocess_cpu(count: int) -> None:
    """Keeps nothing for several processes on CPUs; to be called when they have met.

    There JAX keeps the programs of the first process only, under keys that no other
    has. The first would wait for the others, which compile, and gloo gives up waiting
    after 30 s.
    """
    if count == 1:
        return
    import jax

    if jax.default_backend() == "cpu":
        jax.config.update("jax_enable_compilation_cache", False)


def machine_key(cpu_lines: Iterable[str], *, cpus: int, jaxlib: str) -> str:
    """Names the programs that one kind of machine can run and another may not.

    JAX's own key does not tell processors apart, nor how many there are, and both are
    compiled into a program.

    Args:
      cpu_lines: what /proc/cpuinfo says of one; nothing on a system without it.
      cpus: how many processors this process may use.

    Returns:
      A file name.

    Example:
      >>> one = machine_key(["flags : avx2"], cpus=2, jaxlib="0.10.2")
      >>> other = machine_key(["flags : avx512f"], cpus=2, jaxlib="0.10.2")
      >>> one.split("-")[:2], one == other
      (['0.10.2', '2cpus'], False)
    """
    kind = [platform.machine(), platform.processor()]
    kind += [line.strip() for line in cpu_lines if _KIND_OF_CPU.match(line)]
    digest = hashlib.sha256("\n".join(kind).encode()).hexdigest()
    return f"{jaxlib}-{cpus}cpus-{digest[:16]}"


def evict_unused(home: Path) -> None:
    """Removes the programs that no run has used for 30 days; looks once a day.

    Where a file system does not note when a file was read, 30 days after it was made.

    Args:
      home: the directory of the directories of all kinds of machine.
    """
    stamp, now = home / "swept", time.time()
    with contextlib.suppress(OSError):  # a full disk, one that is only read
        # Either way: a stamp of the future is that of a wrong clock.
        if stamp.exists() and abs(now - stamp.stat().st_mtime) < _SWEEP_SECONDS:
            return
        stamp.touch()
    # Downwards, so that what is in a directory goes before it.
    for path in sorted(home.rglob("*"), reverse=True):
        with contextlib.suppress(OSError):  # another process sweeps too; not empty
            facts = path.lstat()
            is_directory = stat.S_ISDIR(facts.st_mode)
            # Looking for programs is no use of the directory that they are in.
            read = 0.0 if is_directory else facts.st_atime
            if now - max(read, facts.st_mtime) < _UNUSED_SECONDS:
                continue
            path.rmdir() if is_directory else path.unlink()


def _default_directory(environ: Mapping[str, str]) -> Path:
    try:
        home = cache_home(environ) / "compiled"
    except ConfigError as error:
        raise UserError(
            f"There is no home directory. Set {DIRECTORY} to a directory."
        ) from error
    _make_private(home)
    evict_unused(home)
    cpus = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    key = machine_key(_cpu_lines(), cpus=len(cpus), jaxlib=version("jaxlib"))
    _make_private(home / key)
    return home / key


def _cpu_lines() -> list[str]:
    """Reads what Linux says of the first processor."""
    try:
        with Path("/proc/cpuinfo").open(errors="replace") as lines:
            return list(itertools.takewhile(str.strip, lines))
    except OSError:  # macOS
        return []


def _make_private(folder: Path) -> None:
    """Makes a directory that nobody else can write to, or refuses the one there is."""
    rule = f"Compiled programs are code, and {folder} is where they are kept"
    choose = f"Or set {DIRECTORY} to another directory."
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError as error:
        raise UserError(
            f"{rule}, but it cannot be made: {error.strerror}. {choose}"
        ) from error
    if facts.st_uid != os.geteuid():
        raise UserError(
            f"{rule}, but it belongs to user {facts.st_uid}, and this is user "
            f"{os.geteuid()}. Remove it, if you may. {choose}"
        )
    if facts.st_mode & _OTHERS_WRITE:
        raise UserError(
            f"{rule}, but others can write to it (mode {facts.st_mode & 0o777:o}). "
            f"If nobody has, do: chmod 700 {folder}. {choose}"
        )


class _Mending:
    """Takes the place of `warnings.showwarning`, to mend what JAX only warns of.

    A program that was cut off, by a kill or a full disk, would be read in vain by every
    run: JAX never writes one again that is there. So it is removed as soon as JAX has
    met it, which is before it writes.
    """

    def __init__(self, folder: Path, show: Callable[..., None]):
        self._folder = folder
        self._show = show
        self._said: set[str] = set()

    def __call__(self, message: Warning | str, *rest: Any, **more: Any) -> None:
        found = _COMPLAINT.match(str(message))
        if not found:
            self._show(message, *rest, **more)
            return
        act, program, reason = found.groups()
        for entry in self._folder.glob(f"{glob.escape(program)}-{_ENTRIES}"):
            with contextlib.suppress(OSError):
                entry.unlink()
        if act not in self._said:
            self._said.add(act)
            _LOGGER.warning(
                "A compiled program could not be %s %s (%s). Nothing is lost but time.",
                {"reading": "read from", "writing": "kept in"}[act],
                self._folder,
                reason,
            )
