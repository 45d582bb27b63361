"""Reads the arrays of an item of a checkpoint, without Orbax.

Orbax stores an array as Zarr in a key-value store of TensorStore, named by its path
with dots: `encoder.layer_0.…`. Importing Orbax takes ten times as long as importing
TensorStore, and is left to what saves, and to what restores a training state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore

from t2t_jax.checkpointing.checksums import describe_differences


def read_arrays(directory: Path, expected: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Reads arrays to the host, all at once.

    Their content is not verified: a missing chunk of an array, for one, is read as
    zeros.

    Args:
      directory: of the item, such as `checkpoints/7/params`.
      expected: by path, such as `encoder/layer_0/…`, dtype and shape, as of
        `checksums.dtype_shapes`. An array of other ones is not read.

    Returns:
      The arrays by path.

    Raises:
      ValueError: an array is missing, cannot be read, or is not as expected.
    """
    context = tensorstore.Context()
    opening = {
        path: tensorstore.open(
            _spec(directory, path.replace("/", ".")), read=True, context=context
        )
        for path in expected
    }
    opened = {path: array.result() for path, array in opening.items()}
    found = {path: _dtype_shape(array) for path, array in opened.items()}
    if reason := describe_differences(expected, found):
        raise ValueError(reason)
    reading = {path: array.read() for path, array in opened.items()}
    return {path: array.result() for path, array in reading.items()}


def _spec(directory: Path, name: str) -> dict[str, Any]:
    # TensorStore refuses paths with "..".
    base = {"driver": "file", "path": f"{directory.resolve()}/"}
    return {
        "driver": "zarr",
        "kvstore": {"driver": "ocdbt", "base": base, "path": f"{name}/"},
    }


def _dtype_shape(array: tensorstore.TensorStore) -> str:
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
