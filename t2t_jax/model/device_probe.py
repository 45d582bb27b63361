"""Describes JAX's devices as JSON: a program of its own, which may fail or hang.

``python -m t2t_jax.model.device_probe``. A broken installation of JAX may raise, end
the process by a signal, or wait for a driver; the process that starts this one reports
any of these.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any


def describe_devices() -> dict[str, Any]:
    """Imports JAX, describes the devices, and computes on each of them."""
    began = time.perf_counter()
    import jax
    import jax.numpy as jnp

    from t2t_jax.devices.processor import resolve_compute_dtype
    from t2t_jax.model.attention_kernels import resolve_attention
    from t2t_jax.model.config import TransformerConfig

    imported = time.perf_counter()
    devices = jax.local_devices()
    platform = devices[0].platform
    for device in devices:
        ones = jax.device_put(jnp.ones((8, 8)), device)
        if float((ones @ ones).sum()) != 512.0:
            raise ArithmeticError(f"{device} computes wrong sums")
    config = TransformerConfig()
    return {
        "jax": jax.__version__,
        "platform": platform,
        "devices": [_describe(device) for device in devices],
        "compute_dtype": resolve_compute_dtype(config.compute_dtype, platform),
        "attention": resolve_attention(config, platform, mesh={}).kernel,
        "import_seconds": round(imported - began, 2),
        "device_seconds": round(time.perf_counter() - imported, 2),
    }


def _describe(device: Any) -> dict[str, Any]:
    stats: dict[str, Any] = {}
    with suppress(Exception):  # Not on every platform, with various exceptions.
        stats = device.memory_stats() or {}
    return {
        "id": device.id,
        "kind": device.device_kind,
        "memory_bytes": stats.get("bytes_limit"),
        "memory_in_use_bytes": stats.get("bytes_in_use"),
    }


if __name__ == "__main__":
    print(json.dumps(describe_devices()))
    sys.stdout.flush()
