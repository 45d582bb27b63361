"""Types of NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
