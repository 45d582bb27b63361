"""What a compiled step needs of a device's memory, and how much there is."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import Mesh

_USABLE = 0.92
"""Of a device's memory; fragments and what is sent ahead take the rest."""


def bytes_needed(compiled: jax.stages.Compiled) -> int:
    """Adds up what must fit on one device at once, by the compiler's analysis."""
    found: Any = compiled.memory_analysis()
    return int(
        found.argument_size_in_bytes
        + found.temp_size_in_bytes
        + found.output_size_in_bytes
        - found.alias_size_in_bytes
    )


def bytes_usable(mesh: Mesh) -> int:
    """Asks this process's devices for the memory that a step may take on each.

    Returns:
      Bytes on the device that has the least; 0 where they do not tell, as CPUs.
    """
    limits = [
        (device.memory_stats() or {}).get("bytes_limit", 0)
        for device in mesh.local_devices
    ]
    return int(_USABLE * min(limits))
