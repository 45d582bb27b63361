"""The processor of this machine: its name, and whether it multiplies bfloat16."""

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


def bfloat16_hint(dtype: str, *, begins: bool) -> str:
    """Returns what a training on this processor should know of its precision.

    Args:
      dtype: of the products, "float32" or "bfloat16".
      begins: whether no step has been made, so that it can still be chosen.

    Returns:
      One sentence, or "".
    """
    is_fast = not set(BFLOAT16_FLAGS).isdisjoint(_value("flags").split())
    if dtype == "float32" and is_fast and begins:
        return (
            "This processor multiplies bfloat16: with model.compute_dtype=bfloat16 a "
            "step takes about two thirds of the time, and rounds more."
        )
    if dtype == "bfloat16" and not is_fast:
        return "This processor does not multiply bfloat16: float32 is faster here."
    return ""


def _value(key: str) -> str:
    pairs = (line.partition(":") for line in processor_lines())
    return next((text.strip() for name, _, text in pairs if name.strip() == key), "")
