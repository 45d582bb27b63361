"""Configures JAX's persistent compilation cache, in a private directory.

JAX reads its environment variables when it is imported, so they are set before that. A
compiled program is code: write access to the directory is code execution here.

JAX's own eviction (`jax_compilation_cache_max_size`) is not used: one entry without its
time stamp, which a kill, a full disk or a run without the limit leaves, makes every
later write fail. It also needs the package `filelock`, and never enters the directories
of other machines and versions.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
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

from t2t_jax.devices.processor import processor_lines
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.files import cache_home
from t2t_jax.quantities import usable_processors

DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
"""The environment variable that sets the cache directory."""

SWITCH = "JAX_ENABLE_COMPILATION_CACHE"
"""The environment variable that disables the cache if it is false."""

# Small programs dominate the startup of a small run, so they are cached too.
_THRESHOLDS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_FALSE = ("n", "no", "f", "false", "off", "0")  # as JAX reads it
_UNUSED_SECONDS = 30 * 24 * 3600
_SWEEP_SECONDS = 24 * 3600
# The lines of /proc/cpuinfo about the processor's model, not its current state.
_CPU_MODEL = re.compile(
    r"(vendor_id|cpu family|model|model name|stepping|flags|Features"
    r"|CPU (?:implementer|architecture|variant|part))\s*:"
)
_CACHE_WARNING = re.compile(
    r"Error (reading|writing) persistent compilation cache entry for '(.*?)': (.*)"
)
_NOT_CACHED = (
    "Compiled programs are not cached: %s Or set %s=false to have neither cache nor "
    "warning."
)
_LOGGER = logging.getLogger(__name__)


def enable_compilation_cache(
    environ: MutableMapping[str, str] = os.environ,
) -> Path | None:
    """Enables JAX's persistent compilation cache; to be called before importing JAX.

    The directory is JAX_COMPILATION_CACHE_DIR, or one in the user's cache directory,
    from which entries unused for 30 days are removed.

    Args:
      environ: changed in place: JAX's variables are added.

    Returns:
      The directory; None if the cache is disabled, remote (`gs://…`, left to JAX), or
      the default directory cannot be used, which is logged.

    Raises:
      UserError: the given directory is not private, or cannot be created.
    """
    named = environ.get(DIRECTORY, "")
    if environ.get(SWITCH, "").lower() in _FALSE or "://" in named:
        return None
    if (folder := Path(named) if named else _default_directory(environ)) is None:
        environ[SWITCH] = "false"  # not tried again where a model is loaded
        return None
    _make_private(folder)
    environ[DIRECTORY] = str(folder)
    for name, value in _THRESHOLDS.items():
        environ.setdefault(name, value)
    # Every one, even if its text repeats: each names an entry to remove.
    warnings.filterwarnings("always", message=_CACHE_WARNING.pattern)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addFilter(_corrupt_entry_remover(folder))
    return folder


def enable_cache_in_process(environ: Mapping[str, str] = os.environ) -> None:
    """Enables the cache for a program that may have imported JAX, unless it has one.

    A directory or a switch that the program has set, in JAX's configuration or in the
    environment, is left as it is, as are the programs of several processes.
    """
    import jax

    if (
        jax.config.values["jax_compilation_cache_dir"]
        or not jax.config.values["jax_enable_compilation_cache"]
        or environ.get(DIRECTORY)
        or environ.get(SWITCH, "").lower() in _FALSE
        or jax.distributed.is_initialized()
    ):
        return
    if (folder := _default_directory(environ)) is None:
        # Asked once: the next model would be told the same.
        jax.config.update("jax_enable_compilation_cache", False)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    for name, value in _THRESHOLDS.items():
        if name not in environ:
            jax.config.update(name.lower(), int(value))


def disable_cache_on_multiprocess_cpu(count: int) -> None:
    """Disables the cache for several processes on CPUs.

    To be called after `jax.distributed` is initialized. JAX caches the programs of
    process 0 only, under keys of its own: it would wait for the others to compile, and
    gloo times out after 30 s.
    """
    if count == 1:
        return
    import jax

    if jax.default_backend() == "cpu":
        jax.config.update("jax_enable_compilation_cache", False)


def machine_key(cpu_lines: Iterable[str], *, cpus: int, jaxlib: str) -> str:
    """Returns a directory name for programs that only one kind of machine can run.

    JAX's own key ignores the processor's model and the number of processors, and both
    are compiled into a program.

    Args:
      cpu_lines: of /proc/cpuinfo, about one processor; empty on systems without it.

    Example:
      >>> one = machine_key(["flags : avx2"], cpus=2, jaxlib="0.10.2")
      >>> other = machine_key(["flags : avx512f"], cpus=2, jaxlib="0.10.2")
      >>> one.split("-")[:2], one == other
      (['0.10.2', '2cpus'], False)
    """
    kind = [platform.machine(), platform.processor()]
    kind += [line.strip() for line in cpu_lines if _CPU_MODEL.match(line)]
    digest = hashlib.sha256("\n".join(kind).encode()).hexdigest()
    return f"{jaxlib}-{cpus}cpus-{digest[:16]}"


def evict_unused(home: Path) -> None:
    """Removes cache entries unused for 30 days; scans at most once a day.

    On file systems that do not record read times: 30 days after they were written.

    Args:
      home: the directory that holds one directory per kind of machine.
    """
    stamp, now = home / "swept", time.time()
    with contextlib.suppress(OSError):  # a full or read-only disk
        # abs: a stamp in the future comes from a wrong clock.
        if stamp.exists() and abs(now - stamp.stat().st_mtime) < _SWEEP_SECONDS:
            return
        stamp.touch()
    # In reverse order, so that files are removed before their directory.
    for path in sorted(home.rglob("*"), reverse=True):
        with contextlib.suppress(OSError):  # removed by another process; not empty
            facts = path.lstat()
            is_directory = stat.S_ISDIR(facts.st_mode)
            # A scan updates the access time of directories.
            read = 0.0 if is_directory else facts.st_atime
            if now - max(read, facts.st_mtime) < _UNUSED_SECONDS:
                continue
            path.rmdir() if is_directory else path.unlink()


def _default_directory(environ: Mapping[str, str]) -> Path | None:
    """Returns the user's own directory; logs why there is none, and returns None."""
    try:
        home = cache_home(environ) / "compiled"
        _make_private(home)
        evict_unused(home)
        cpus = usable_processors()
        key = machine_key(processor_lines(), cpus=cpus, jaxlib=version("jaxlib"))
        _make_private(home / key)
    except (UserError, OSError) as error:
        no_home = f"There is no home directory. Set {DIRECTORY} to a directory."
        problem = no_home if isinstance(error, ConfigError) else error
        _LOGGER.warning(_NOT_CACHED, problem, SWITCH)
        return None
    return home / key


def _make_private(folder: Path) -> None:
    """Creates a directory that only this user can write to, or checks that it is."""
    fault = ""
    cause: OSError | None = None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts, user = folder.stat(), os.geteuid()
        mode = facts.st_mode & 0o777
        if mode & 0o022:
            fault = f"is writable by other users (mode {mode:o}). If its content can "
            fault += f"be trusted, run chmod 700 {folder}."
        if facts.st_uid != user:
            fault = f"belongs to user {facts.st_uid}, not to user {user}. Remove it."
    except OSError as error:
        fault = f"cannot be created: {error.strerror}. Fix permissions."
        cause = error
    if fault:
        rule = f"Compiled programs are code, and their cache {folder} {fault}"
        raise UserError(f"{rule} Or set {DIRECTORY} to another directory.") from cause


def _corrupt_entry_remover(folder: Path) -> Callable[[logging.LogRecord], bool]:
    """Makes a filter that removes the entries that JAX only warns of.

    JAX never overwrites an entry, so one truncated by a kill or a full disk would fail
    in every run. One line is logged for all.
    """
    acts = {"reading": "read from", "writing": "written to"}  # not yet logged

    def is_another(record: logging.LogRecord) -> bool:
        """Returns whether a warning is another one, and is to be shown."""
        if not (found := _CACHE_WARNING.search(record.getMessage())):
            return True
        act, program, reason = found.groups()
        for entry in folder.glob(f"{glob.escape(program)}-*-cache"):
            with contextlib.suppress(OSError):
                entry.unlink()
        if done := acts.pop(act, ""):
            text = (
                "A compiled program could not be %s %s (%s). It is compiled again when "
                "needed."
            )
            _LOGGER.warning(text, done, folder, reason)
        return False

    return is_another
