"""Large pages for what a CPU computes with.

XLA takes the temporaries of a step from the system and gives them back, at every step.
The system hands them over, and clears them, in pages of 4 kB: 124,000 of them for one
step of a small model. Where it takes pages of 2 MB there are 500.

glibc asks for large pages where it is told to when a program begins, and only then.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path

_TUNABLES = "GLIBC_TUNABLES"
_BEGUN = "T2T_JAX_BEGUN"
_SINCE = (2, 35)  # of glibc
_WISH = "glibc.malloc.hugetlb"
_ON_REQUEST = "[madvise]"
_MODES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def request_huge_pages(environ: MutableMapping[str, str]) -> bool:
    """Puts the wish for large pages where the programs to be started find it.

    Args:
      environ: where to; what it says of large pages already counts more.

    Returns:
      Whether anything was changed. False also where the system gives large pages
      without being asked, or not at all.
    """
    told = environ.get(_TUNABLES, "")
    if _WISH in told or not _gives_on_request():
        return False
    environ[_TUNABLES] = ":".join(filter(None, [told, f"{_WISH}=1"]))
    return True


def reexec_with_huge_pages(
    *,
    before: Callable[[], None] = lambda: None,
    otherwise: Callable[[], None] = lambda: None,
) -> None:
    """Begins this program anew, with its arguments, if it has to be to get them."""
    # Once, even where something on the way takes the wish out of the environment.
    begun = os.environ.pop(_BEGUN, "")
    if begun or not sys.executable or not request_huge_pages(os.environ):
        return
    # Without them the program is slower, and nothing else.
    before()
    with suppress(OSError):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, _BEGUN: "1"})
    otherwise()


def _gives_on_request() -> bool:
    library, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if library != "glibc" or numbers < _SINCE:
        return False
    try:
        return _ON_REQUEST in _MODES.read_text(encoding="ascii")
    except OSError:
        return False
