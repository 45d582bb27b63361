"""The environment that a run was trained in, and the files that it left."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.errors import UserError
from t2t_jax.evaluation.protocol import installed_versions
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir
from t2t_jax.version import __version__

ENVIRONMENT = "environment.json"

_PACKAGES = (
    *("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy"),
    *("sentencepiece", "sacrebleu"),
)
_MAX_HASHED = 256 << 20  # bytes: half a second
# These change while the page is written, or say nothing about the run.
_UNLISTED = ("lock", "report.html")


class File(NamedTuple):
    """A file or a folder of a run.

    Attributes:
      size: in bytes, of a folder that of all its files.
      sha256: None of a folder, or of a file that is too large to hash each time.
    """

    name: str
    size: int
    sha256: str | None


def describe_environment(*, processes: int = 1) -> dict[str, Any]:
    """Describes this machine, its devices, and the packages that matter.

    Imports JAX, and initializes its devices.

    Args:
      processes: of the run.
    """
    import jax

    devices = jax.devices()
    return {
        "t2t_jax": __version__,
        "python": platform.python_version(),
        "packages": installed_versions(_PACKAGES),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "devices": f"{len(devices)} x {devices[0].device_kind}",
        "platform": devices[0].platform,
        "processes": processes,
    }


def read_environment(workdir: Workdir) -> dict[str, Any]:
    """Reads what the training has recorded; empty if nothing or nothing readable."""
    with suppress(OSError, UserError):
        return read_json_object(workdir.path / ENVIRONMENT, advice="")
    return {}


def files_of(workdir: Workdir) -> list[File]:
    """Lists the files of a run with their hashes, and its folders with their sizes."""
    found = []
    for path in sorted(workdir.path.iterdir()):
        if path.name in _UNLISTED or path.name.startswith("."):
            continue
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                found.append(File(f"{path.name}/", sum(_sizes(path)), None))
            elif path.is_file():
                size = path.stat().st_size
                found.append(File(path.name, size, _sha256(path, size)))
    return found


def _sizes(folder: Path) -> Iterator[int]:
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield os.lstat(os.path.join(directory, name)).st_size


def _sha256(path: Path, size: int) -> str | None:
    if size > _MAX_HASHED:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _processor() -> str:
    """Returns the name of the CPU, as far as the system has one."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
