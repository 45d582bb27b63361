"""The processor of this machine: its name, and what it multiplies by itself."""

from __future__ import annotations

import itertools
import os
import platform
from contextlib import suppress
from pathlib import Path

from t2t_jax.errors import ConfigError

BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
"""Instructions with which XLA multiplies bfloat16, as /proc/cpuinfo names them."""

CPU_DTYPE = "T2T_JAX_CPU_DTYPE"
"""The variable that says what "auto" computes in on a CPU, whatever it multiplies."""


def processor_lines() -> list[str]:
    """Returns the lines of /proc/cpuinfo about the first processor.

    They are "key : value". There are none on systems without that file, such as macOS.
    """
    with suppress(OSError), Path("/proc/cpuinfo").open(errors="replace") as lines:
        return list(itertools.takewhile(str.strip, lines))
    return []


def processor_name() -> str:
    """Returns the name of the processor, as far as the system has one."""
    return _value("model name") or platform.processor() or platform.machine()


def multiplies_bfloat16() -> bool:
    """Returns whether this processor multiplies bfloat16 by itself.

    `T2T_JAX_CPU_DTYPE` decides if it is set: for tests, and for clusters of different
    processors.

    Raises:
      ConfigError: it is neither "float32" nor "bfloat16".
    """
    asked = os.environ.get(CPU_DTYPE, "")
    if asked not in ("", "float32", "bfloat16"):
        raise ConfigError(
            f"{CPU_DTYPE}={asked!r} must be float32 or bfloat16. Change or unset it."
        )
    has_flag = not set(BFLOAT16_FLAGS).isdisjoint(_value("flags").split())
    return asked == "bfloat16" or (not asked and has_flag)


def resolve_compute_dtype(dtype: str, platform: str) -> str:
    """Returns what activations are computed in, "float32" or "bfloat16".

    Args:
      dtype: one of these, or "auto": bfloat16 on GPUs, TPUs, and CPUs that multiply it.
      platform: of the devices, as in `jax.Device.platform`. If it is "cpu", they are
        the processor of this machine.

    Example:
      >>> [resolve_compute_dtype("auto", name) for name in ("gpu", "tpu")]
      ['bfloat16', 'bfloat16']
    """
    if dtype != "auto":
        return dtype
    fast = platform in ("gpu", "cuda", "rocm", "tpu")
    fast |= platform == "cpu" and multiplies_bfloat16()
    return "bfloat16" if fast else "float32"


def resolve_search_dtype(dtype: str, platform: str) -> str:
    """Returns what a search computes in, or "auto" for what its model does.

    Args:
      dtype: `decoding.compute_dtype`; "auto" is float32 on a CPU that does not multiply
        bfloat16, also if another processor trained the model in it.
    """
    is_slow = dtype == "auto" and platform == "cpu" and not multiplies_bfloat16()
    return "float32" if is_slow else dtype


def is_slow_in_bfloat16() -> bool:
    """Returns whether this processor is known not to multiply bfloat16."""
    is_known = bool(os.environ.get(CPU_DTYPE) or _value("flags"))
    return is_known and not multiplies_bfloat16()


def lacks_vnni() -> bool:
    """Returns whether this is an x86 processor without 8-bit dot products (VNNI).

    CTranslate2's int8 was less exact on one: exports of toy models failed.
    """
    flags = _value("flags")
    return bool(flags) and "vnni" not in flags


def _value(key: str) -> str:
    pairs = (line.partition(":") for line in processor_lines())
    return next((text.strip() for name, _, text in pairs if name.strip() == key), "")
