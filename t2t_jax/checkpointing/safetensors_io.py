"""Reads and writes parameters as one file, `model.safetensors`.

Each array is named by its path, such as `encoder/layer_0/self_attention/query/kernel`.
The header holds the checksums of a checkpoint. Reading executes no code.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.checksums import checksums, shapes_of
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.step_dirs import SAFETENSORS, Meta, is_safetensors_dir
from t2t_jax.devices.sharding.rules import (
    describe_differences,
    dtype_shapes,
    leaves_by_path,
)
from t2t_jax.errors import DataError, InputMissingError, require_package, short_repr
from t2t_jax.files import (
    check_size,
    damage_as_data_error,
    map_file,
    read_json_object,
    unique_names,
)
from t2t_jax.types import Params, PyTree

_DTYPES: Mapping[str, npt.DTypeLike] = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16},
    **{"BF16": ml_dtypes.bfloat16, "I64": np.int64, "I32": np.int32},
}
_MAX_BYTES = 64 << 30
_MAX_HEADER_BYTES = 8 << 20  # some 60,000 arrays
_CHECKSUMS = "checksums"
_ADVICE = "Restore the file from a copy, or export the model again."


def require_safetensors() -> None:
    """Raises a UserError if the package safetensors is not installed."""
    require_package("safetensors", user=SAFETENSORS, extra="export")


def write_safetensors(
    path: Path, params: Params, *, metadata: dict[str, str] | None = None
) -> None:
    """Writes parameters, a nested dict of float32 arrays, with their checksums.

    Args:
      metadata: in place of the checksums.

    Raises:
      UserError: the package is not installed.
    """
    require_safetensors()
    from safetensors.numpy import save_file

    leaves = leaves_by_path(params)
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in leaves.items()}
    path.touch()
    mode = path.stat().st_mode  # That of the umask; the package sets 0600.
    own = metadata or {_CHECKSUMS: json.dumps(checksums(arrays))}
    save_file(arrays, path, metadata=own)
    path.chmod(stat.S_IMODE(mode))


def read_safetensors(
    path: Path, *, advice: str = ""
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Maps the arrays of a file, of which only the header is read.

    Args:
      advice: what to do about a damaged file, a sentence.

    Returns:
      Read-only arrays by name, and the metadata.

    Raises:
      DataError: the file is larger than 64 GiB, truncated or malformed, or has other
        types than numbers of 16 to 64 bits.
      UnavailableError: it does not fit into the address space.
      OSError: it cannot be read.
    """
    size = check_size(path, max_bytes=_MAX_BYTES, advice=advice)
    with damage_as_data_error(f"{path} is damaged", advice=advice):
        places, begin, metadata = _read_header(path, size)
    content = map_file(path)[begin:]
    arrays = {
        name: content[first:end].view(dtype).reshape(shape)
        for name, (first, end, dtype, shape) in places.items()
    }
    return arrays, metadata


def _read_header(
    path: Path, size: int
) -> tuple[dict[str, tuple[int, int, Any, list[int]]], int, dict[str, Any]]:
    """Checks that the arrays of the header take the whole file.

    Returns:
      First byte, end, dtype and shape of each array, the position of the arrays in the
      file, and the metadata.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 1 < length <= min(size - 8, _MAX_HEADER_BYTES):
            raise ValueError(f"its header has {length:,} bytes")
        header = json.loads(file.read(length), object_pairs_hook=unique_names)
    metadata = header.pop("__metadata__", {})
    places, position = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        shape, (first, end) = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in _DTYPES:
            kind, known = short_repr(entry["dtype"]), ", ".join(_DTYPES)
            raise ValueError(f"{name} has type {kind}, and supported are {known}")
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        if any(type(length) is not int or length < 0 for length in shape) or (
            [first, end] != [position, position + math.prod(shape) * dtype.itemsize]
        ):
            raise ValueError(f"{name} has another size than its shape")
        places[name] = (first, end, dtype, shape)
        position = end
    if position != size - 8 - length:
        raise ValueError("its arrays do not take the whole file")
    return places, 8 + length, metadata


class DamagedFileError(CorruptCheckpointError):
    """`model.safetensors` differs from what was written."""

    _words = "{path} is damaged: {reason}. " + _ADVICE


class SafetensorsFile(CheckpointReader):
    """The parameters of a model directory, as its only checkpoint.

    Args:
      directory: of the model; `model.json` there holds the step.
    """

    _error = DamagedFileError
    _most_times = 1

    def path(self, step: int) -> Path:
        """Returns the file."""
        return self.directory / SAFETENSORS

    def steps(self) -> list[int]:
        """Lists the only step; see `meta`."""
        return [self.meta(0)["step"]]

    def meta(self, step: int) -> Meta:
        """Reads `model.json`, the JSON object of the parameters.

        Raises:
          DataError: `model.json` is damaged.
          InputMissingError: `model.json` does not exist.
        """
        path = self.directory / "model.json"
        if not path.exists():
            missing = f"{path} does not exist, and holds the step"
            raise InputMissingError(f"{missing}. {_ADVICE}")
        meta = read_json_object(path, advice=_ADVICE)
        if not isinstance(meta.get("step"), int):
            raise DataError(f"{path} is damaged: it has no step\n{_ADVICE}")
        return meta

    def read_verified_meta(self, step: int) -> Meta:
        """Reads `model.json`, and the checksums of the file."""
        with self._diagnosed(step):
            mapped, metadata = read_safetensors(self.path(step))
            shapes = dtype_shapes(mapped)
            # A file written by another program has no checksums.
            sums = json.loads(metadata.get(_CHECKSUMS, "{}")) or shapes
            if shapes_of(sums) != shapes:
                raise ValueError("its checksums are those of other arrays")
        return {**self.meta(step), "checksums": {"params": sums}}

    def check(self, step: int, items: Mapping[str, PyTree], meta: Meta) -> None:
        """Does nothing: each process verifies what it reads, on the host."""

    def _arrays(
        self, step: int, item: str, expected: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        with self._diagnosed(step):
            mapped, metadata = read_safetensors(self.path(step))
            # Copies: JAX may use an array where it is, and the file may change.
            arrays = {name: np.array(array) for name, array in mapped.items()}
            saved = json.loads(metadata.get(_CHECKSUMS, "{}"))
            if saved and (fault := describe_differences(saved, checksums(arrays))):
                raise ValueError(fault)
            return arrays


def open_parameters(directory: Path) -> CheckpointReader:
    """Opens the checkpoints, or `model.safetensors`, of a run or model directory."""
    if is_safetensors_dir(directory):
        return SafetensorsFile(directory)
    return CheckpointReader(directory / "checkpoints")
