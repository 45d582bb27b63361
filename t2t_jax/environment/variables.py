"""Checks the environment variables that change what the program does."""

from __future__ import annotations

import locale
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from t2t_jax.environment.check import Check, Status

_GROUP = "variables"
_PREFIXES = ("JAX_", "XLA_", "T2T_JAX_", "TFDS_", "LIBTPU_")
_NAMES = (
    *("CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES", "HF_HOME", "HF_HUB_OFFLINE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "LD_LIBRARY_PATH", "LD_PRELOAD"),
    *("MALLOC_ARENA_MAX", "NO_COLOR", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUTF8", "SOURCE_DATE_EPOCH"),
    *("TF_CPP_MIN_LOG_LEVEL", "TMPDIR", "XDG_CACHE_HOME"),
)
_MAX_SHOWN = 200
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


class _Harm(NamedTuple):
    """A value of a variable that slows the program down, or breaks it.

    Attributes:
      pattern: of the whole value, in lower case.
    """

    name: str
    pattern: str
    effect: str
    status: Status = "warning"


_HARMS = (
    _Harm("JAX_DISABLE_JIT", "|".join(_TRUE), "nothing is compiled: very slow"),
    _Harm("JAX_DEBUG_NANS", "|".join(_TRUE), "every step is checked: slow"),
    _Harm("JAX_DEBUG_INFS", "|".join(_TRUE), "every step is checked: slow"),
    _Harm("JAX_ENABLE_X64", "|".join(_TRUE), "64-bit numbers where 32 are meant"),
    _Harm("JAX_CHECK_TRACER_LEAKS", "|".join(_TRUE), "compilation is slow"),
    _Harm("JAX_LOG_COMPILES", "|".join(_TRUE), "every compilation is logged"),
    _Harm(
        "JAX_ENABLE_COMPILATION_CACHE",
        "|".join(_FALSE),
        "programs are compiled at every start",
    ),
    _Harm(
        "JAX_DEFAULT_MATMUL_PRECISION",
        "bfloat16|bf16_bf16_f32",
        "float32 products are rounded to bfloat16",
    ),
    _Harm("XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "device memory is slow to get"),
    _Harm(
        "XLA_FLAGS",
        r".*xla_force_host_platform_device_count=(?!1\b)\d+.*",
        "the processor is divided into simulated devices: slower",
    ),
    _Harm(
        "XLA_FLAGS",
        ".*xla_cpu_multi_thread_eigen=false.*",
        "matrix products use one processor",
    ),
    _Harm(
        "XLA_FLAGS",
        ".*xla_backend_optimization_level=0.*",
        "programs are not optimised: very slow",
    ),
    _Harm("NVIDIA_TF32_OVERRIDE", "0", "float32 products on GPUs are slower"),
    _Harm("OMP_NUM_THREADS", "1", "libraries with OpenMP use one processor"),
    _Harm("T2T_JAX_FAULT", ".+", "a fault is injected into training", "error"),
    _Harm("LD_PRELOAD", ".+", "a library is loaded into every program"),
)
_SECRET = re.compile(r"(?<=://)[^/@\s]+@")


def check_variables(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Yields a check of each variable that is set, and one of the encoding."""
    names = [name for name in sorted(environ) if _matters(name)]
    for name in names:
        value = environ[name]
        harm = _harm_of(name, value)
        # A proxy's address may contain a password.
        shown = _SECRET.sub("…@", value)
        shown = shown[:_MAX_SHOWN] + "…" * (len(shown) > _MAX_SHOWN)
        yield Check(
            _GROUP,
            name,
            harm.status if harm else "ok",
            f"{name}={shown!r}" + (f": {harm.effect}" if harm else ""),
            f"Unset {name} unless you mean that." if harm else "",
            {"value": shown},
        )
    if not names:
        yield Check(_GROUP, "none", "ok", "none is set that matters here")
    yield _check_encoding()


def _matters(name: str) -> bool:
    return name.startswith(_PREFIXES) or name.upper() in _NAMES


def _harm_of(name: str, value: str) -> _Harm | None:
    for harm in _HARMS:
        if harm.name == name and re.fullmatch(harm.pattern, value.strip().lower()):
            return harm
    if name == "CUDA_VISIBLE_DEVICES" and value.strip() in ("", "-1"):
        return _Harm(name, "", "all GPUs are hidden")
    return None


def _check_encoding() -> Check:
    files = sys.getfilesystemencoding()
    preferred = locale.getpreferredencoding(False)
    is_utf8 = all(
        name.lower().replace("-", "") == "utf8" for name in (files, preferred)
    )
    return Check(
        _GROUP,
        "encoding",
        "ok" if is_utf8 else "warning",
        f"the locale's encoding is {preferred}, of file names {files}",
        "" if is_utf8 else "Set LC_ALL=C.UTF-8 and PYTHONUTF8=1.",
        {"locale": preferred, "files": files},
    )
