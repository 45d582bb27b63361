"""Requests huge pages for host memory.

On CPUs, XLA allocates and frees the temporaries of a step at every step, and the kernel
zeroes each page: 124,000 pages of 4 kB for one step of a small model, or 500 of 2 MB.

glibc reads the setting only when a process starts, hence the re-execution.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from t2t_jax.devices.distributed.signals import block_signals, install_early_handlers

_TUNABLES = "GLIBC_TUNABLES"
_REEXECUTED = "T2T_JAX_BEGUN"
_TUNABLE = "glibc.malloc.hugetlb"
_MODES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def request_huge_pages(environ: MutableMapping[str, str]) -> bool:
    """Requests huge pages in the environment of a process to be started.

    Args:
      environ: changed in place; an existing setting takes precedence.

    Returns:
      Whether `environ` was changed: not if the kernel provides huge pages without a
      request, or never.
    """
    tunables = environ.get(_TUNABLES, "")
    if _TUNABLE in tunables or not _needs_request():
        return False
    environ[_TUNABLES] = ":".join(filter(None, [tunables, f"{_TUNABLE}=1"]))
    return True


def reexec_with_huge_pages() -> None:
    """Re-executes the process with huge pages enabled, if needed.

    Stop signals that arrive meanwhile are delivered afterwards.
    """
    # Only once, even if a wrapper drops the setting from the environment.
    reexecuted = os.environ.pop(_REEXECUTED, "")
    if reexecuted or not sys.executable or not request_huge_pages(os.environ):
        return
    block_signals()
    with suppress(OSError):  # Without huge pages the program is only slower.
        os.execve(sys.executable, sys.orig_argv, {**os.environ, _REEXECUTED: "1"})
    install_early_handlers()


def _needs_request() -> bool:
    library, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if library != "glibc" or numbers < (2, 35):  # the first that has the tunable
        return False
    with suppress(OSError):
        return "[madvise]" in _MODES.read_text(encoding="ascii")
    return False
