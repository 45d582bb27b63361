"""What a contestant of this package tells of its process: devices, versions, memory."""

from __future__ import annotations

from typing import Any

import jax
from step_figures import peak_resident_megabytes, versions


def surroundings(*more: str) -> dict[str, Any]:
    """Tells what computes, and with what.

    Args:
      more: packages whose versions matter too.
    """
    settings: Any = jax.config  # JAX does not declare what it holds.
    return {
        "device": jax.devices()[0].device_kind,
        "versions": versions(["jax", "jaxlib", "flax", "numpy", *more]),
        # A program that was compiled before is only read.
        "compilation_cache": bool(settings.jax_compilation_cache_dir),
    }


def peak_megabytes() -> float:
    """Returns the most memory so far: of the device, or of the process on a CPU."""
    told = jax.devices()[0].memory_stats()
    if told:
        return float(told["peak_bytes_in_use"]) / 1e6
    return peak_resident_megabytes()
