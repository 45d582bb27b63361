"""Checks the processor, the memory and their limits (Linux; less elsewhere)."""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.files.quantities import format_bytes
from t2t_jax.environment.check import Check, Status

_GROUP = "machine"
_ROOT = Path("/")
_FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "asimd")
_LEAST_MEMORY = 2 << 30  # bytes; the embedded experiment peaks at about half of it
_UNLIMITED = 1 << 60
_MIN_OPEN_FILES = 256


class Cgroup(NamedTuple):
    """The limits of the control groups of this process; None for no limit.

    Attributes:
      cpus: processors, by quota.
      memory: bytes.
    """

    cpus: float | None
    memory: int | None


def check_machine(root: Path = _ROOT) -> Iterator[Check]:
    """Checks processor, memory, huge pages and open files.

    Args:
      root: of /proc and /sys.
    """
    limits = read_cgroup(root)
    yield _check_cores(limits)
    if (check := _check_features(root)) is not None:
        yield check
    yield _check_memory(root, limits)
    if (check := _check_huge_pages(root)) is not None:
        yield check
    yield _check_open_files()


def read_cgroup(root: Path = _ROOT) -> Cgroup:
    """Reads the limits of the control groups, version 1 or 2, and of those above."""
    cpus: list[float] = []
    memory: list[int] = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for group in _with_parents(path):
            if not controllers:
                base = root / "sys/fs/cgroup" / group
                cpus += _quota(_read(base / "cpu.max").split())
                memory += _bytes(_read(base / "memory.max"))
            if "cpu" in controllers.split(","):
                base = root / "sys/fs/cgroup/cpu" / group
                words = [
                    _read(base / f"cpu.cfs_{name}_us").strip()
                    for name in ("quota", "period")
                ]
                cpus += _quota(words)
            if "memory" in controllers.split(","):
                base = root / "sys/fs/cgroup/memory" / group
                memory += _bytes(_read(base / "memory.limit_in_bytes"))
    return Cgroup(min(cpus, default=None), min(memory, default=None))


def _with_parents(path: str) -> Iterator[str]:
    """Yields a control group and those above; in a container its path is another."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    for end in range(len(parts), -1, -1):
        yield "/".join(parts[:end])


def _quota(words: list[str]) -> list[float]:
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return []  # "max", or -1
    quota, period = map(int, words)
    return [quota / period] if period else []


def _bytes(text: str) -> list[int]:
    text = text.strip()
    return [int(text)] if text.isdecimal() and int(text) < _UNLIMITED else []


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _check_cores(limits: Cgroup) -> Check:
    total = os.cpu_count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else total
    quota = limits.cpus
    usable = allowed if quota is None else min(allowed, quota)
    text = f"{usable:g} of {total} processors can be used"
    status: Status = "ok"
    advice = ""
    if quota is not None and quota < allowed:
        text += f" (quota of the control group; {allowed} are visible)"
        # XLA starts as many threads as processors are visible.
        status = "warning"
        cores = max(1, int(quota))
        advice = (
            f"Start the program with taskset --cpu-list 0-{cores - 1}, or raise the "
            "quota: XLA starts a thread for each visible processor."
        )
    elif allowed < total:
        text += " (affinity)"
    details = {"processors": total, "affinity": allowed, "quota": quota}
    return Check(_GROUP, "processors", status, text, advice, details)


def _check_features(root: Path) -> Check | None:
    info = _read(root / "proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", info, re.MULTILINE)
    model = re.search(r"^(?:model name|CPU part)\s*:\s*(.*)$", info, re.MULTILINE)
    if flags is None:
        return None
    words = set(flags[1].split())
    found = [feature for feature in _FEATURES if feature in words]
    name = model[1] if model else platform.machine()
    is_slow = platform.machine() == "x86_64" and "avx2" not in words
    return Check(
        _GROUP,
        "instructions",
        "warning" if is_slow else "ok",
        f"{name}: {', '.join(found) or 'no vector instructions'}",
        "Without AVX2 matrix products are several times slower. Use another machine."
        if is_slow
        else "",
        {"model": name, "features": found},
    )


def _check_memory(root: Path, limits: Cgroup) -> Check:
    info = _read(root / "proc/meminfo")
    sizes = {
        name: int(size) * 1024
        for name, size in re.findall(r"^(\w+):\s+(\d+) kB", info, re.MULTILINE)
    }
    total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    bounds = {
        "the machine": total,
        "the control group": limits.memory,
        "ulimit -v": None if soft == resource.RLIM_INFINITY else soft,
    }
    known = {name: size for name, size in bounds.items() if size}
    details = {"total": total, "available": available, **limits._asdict()}
    if not known:
        return Check(_GROUP, "memory", "ok", "its size is not known", details=details)
    tightest = min(known, key=known.__getitem__)
    usable = known[tightest]
    free = min(usable, available or usable)
    text = f"{format_bytes(usable)} (limit of {tightest})"
    if available:
        text += f", {format_bytes(available)} available now"
    is_little = free < _LEAST_MEMORY
    return Check(
        _GROUP,
        "memory",
        "warning" if is_little else "ok",
        text,
        "Training may be killed. Free memory, raise the limit, or lower "
        "config.data.tokens_per_batch."
        if is_little
        else "",
        details,
    )


def _check_huge_pages(root: Path) -> Check | None:
    text = _read(root / "sys/kernel/mm/transparent_hugepage/enabled")
    mode = re.search(r"\[(\w+)\]", text)
    if mode is None:
        return None
    requested = "glibc.malloc.hugetlb" in os.environ.get("GLIBC_TUNABLES", "")
    library, version = platform.libc_ver()
    words = {
        "always": "given to every program",
        "madvise": "requested by this program"
        if requested
        else "given on request, and not requested",
        "never": "turned off",
    }[mode[1]]
    lacking = mode[1] == "never" or (mode[1] == "madvise" and not requested)
    advice = {
        "never": "Training on the processor is slower. As root: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "madvise": f"It needs glibc 2.35 or later, and this is {library} {version}.",
    }.get(mode[1], "")
    return Check(
        _GROUP,
        "huge pages",
        "warning" if lacking else "ok",
        f"transparent huge pages are {words} ({mode[1]})",
        advice if lacking else "",
        {"mode": mode[1], "requested": requested},
    )


def _check_open_files() -> Check:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_low = 0 <= soft < _MIN_OPEN_FILES
    return Check(
        _GROUP,
        "open files",
        "warning" if is_low else "ok",
        f"{soft:,} files may be open at once",
        "Run ulimit -n 1024 before the program." if is_low else "",
        {"limit": soft},
    )
