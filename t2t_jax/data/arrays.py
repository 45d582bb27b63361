"""Types of NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Lengths: TypeAlias = tuple[Integers, Integers]
"""[N] tokens of each pair's source side, and [N] of its target side."""

Rng: TypeAlias = np.random.Generator | None

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: its multiples are spread evenly over 64 bits."""
