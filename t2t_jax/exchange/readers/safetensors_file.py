"""Reads all tensors of a `.safetensors` file of another toolkit.

The package safetensors checks the header against the size of the file: no tensor is
larger than it, and none overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.safetensors_io import require_safetensors
from t2t_jax.errors import DataError
from t2t_jax.files import check_size

Array: TypeAlias = npt.NDArray[Any]

_MAX_BYTES = 64 << 30

_DTYPES: Mapping[str, npt.DTypeLike] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I64": np.int64,
    "I32": np.int32,
}


def read_safetensors(path: Path) -> dict[str, Array]:
    """Reads a file of safetensors.

    Returns:
      Arrays of numbers by name.

    Raises:
      DataError: the file is truncated or malformed, or has an unsupported type.
      OSError: it cannot be read.
      UserError: the package safetensors is not installed.
    """
    require_safetensors()
    import safetensors

    check_size(path, max_bytes=_MAX_BYTES, advice="Pass another model.")
    try:
        found = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise DataError(
            f"{path} is not a readable file of safetensors: {error}. Pass a complete "
            "file."
        ) from error
    return {name: _array(tensor, f"{path}: {name}") for name, tensor in found}


def _array(tensor: Mapping[str, Any], name: str) -> Array:
    if tensor["dtype"] not in _DTYPES:
        raise DataError(
            f"{name} has elements of type {tensor['dtype']}; supported are "
            f"{', '.join(_DTYPES)}. Pass a model that is not quantized."
        )
    elements = np.frombuffer(tensor["data"], _DTYPES[tensor["dtype"]])
    try:
        return elements.reshape(tensor["shape"])
    except (OverflowError, ValueError) as error:
        raise DataError(f"{name} has an absurd shape: {error}.") from error
