"""The processor of this machine: its name, and what it multiplies by itself."""

from __future__ import annotations

import itertools
import platform
from pathlib import Path

BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
"""Instructions with which XLA multiplies bfloat16, as /proc/cpuinfo names them."""


def processor_lines() -> list[str]:
    """Returns the lines of /proc/cpuinfo about the first processor.

    They are "key : value". There are none on systems without that file, such as macOS.
    """
    try:
        with Path("/proc/cpuinfo").open(errors="replace") as lines:
            return list(itertools.takewhile(str.strip, lines))
    except OSError:
        return []


def processor_name() -> str:
    """Returns the name of the processor, as far as the system has one."""
    found = _value("model name")
    return found or platform.processor() or platform.machine()


def bfloat16_hint(dtype: str, *, key: str, begins: bool) -> str:
    """Returns what a training on this processor should know of its precision.

    Args:
      dtype: of the products, "float32" or "bfloat16".
      key: the setting of it.
      begins: whether no step has been made, so that it can still be chosen.

    Returns:
      A sentence; "" where there is nothing to choose, or nothing is known.
    """
    flags = _value("flags").split()
    is_fast = not set(BFLOAT16_FLAGS).isdisjoint(flags)
    if dtype == "float32" and is_fast and begins:
        return (
            f"This processor multiplies bfloat16: with {key}=bfloat16 a step took 0.6 "
            "to 0.8 of the time on such ones. Factors are rounded to 8 bits."
        )
    if dtype == "bfloat16" and flags and not is_fast:
        return (
            "This processor does not multiply bfloat16: a step took 1.25 times as long "
            "as in float32 on such a one."
        )
    return ""


def lacks_vnni() -> bool:
    """Returns whether this is an x86 processor without 8-bit dot products (VNNI).

    CTranslate2's int8 was less exact on one: exports of toy models failed.
    """
    flags = _value("flags")
    return bool(flags) and "vnni" not in flags


def _value(key: str) -> str:
    pairs = (line.partition(":") for line in processor_lines())
    return next((text.strip() for name, _, text in pairs if name.strip() == key), "")
