"""Reads and writes parameters as one file, `model.safetensors`.

Each array is named by its path, such as `encoder/layer_0/self_attention/query/kernel`.
The header holds the checksums of a checkpoint. Reading executes no code.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import ml_dtypes
import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.checksums import checksums
from t2t_jax.checkpointing.diagnosis import as_io_error, short_reason
from t2t_jax.checkpointing.reader import CheckpointReader, place
from t2t_jax.checkpointing.step_dirs import SAFETENSORS, Meta, is_safetensors_dir
from t2t_jax.devices.sharding.rules import (
    describe_differences,
    dtype_shapes,
    leaves_by_path,
)
from t2t_jax.errors import (
    DataError,
    InputMissingError,
    UnavailableError,
    UserError,
    require_package,
    short_repr,
)
from t2t_jax.files import (
    MAX_JSON_BYTES,
    check_size,
    damage_as_data_error,
    read_json_object,
    require_file,
    unique_names,
)
from t2t_jax.types import Params, PyTree

T = TypeVar("T")

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
    path: Path, *, max_bytes: int = _MAX_BYTES
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Maps the arrays of a file, of which only the header is read.

    Returns:
      Read-only arrays by name, and the metadata.

    Raises:
      DataError: the file is larger than `max_bytes`, truncated or malformed, or has
        other types than numbers of 16 to 64 bits.
      UnavailableError: it does not fit into the address space.
      OSError: it cannot be read.
    """
    size = check_size(path, max_bytes=max_bytes, advice=_ADVICE)
    with damage_as_data_error(f"{path} is damaged", advice=_ADVICE):
        places, begin, metadata = _read_header(path, size)
    try:
        content = np.memmap(path, np.uint8, mode="r", shape=(size,))[begin:]
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be mapped into memory, {size:,} bytes: {error.strerror}. "
            "Free memory, or raise the limit of this process (ulimit -v)."
        ) from error
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


class SafetensorsFile:
    """The parameters of a model directory, with the methods of `CheckpointReader`.

    Args:
      directory: of the model; `model.json` there holds the step.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self._path = directory / SAFETENSORS

    def meta(self, step: int) -> Meta:
        """Reads `model.json`, the JSON object of the parameters.

        Raises:
          DataError: `model.json` is damaged, or of another step.
          InputMissingError: `model.json` does not exist.
        """
        self.resolve_step(step)
        return self._read_meta()

    def resolve_step(self, which: str | int) -> int:
        """Returns the only step.

        Raises:
          DataError: `which` is another step.
          InputMissingError: `model.json` does not exist.
        """
        step: int = self._read_meta()["step"]
        if str(which) not in ("best", "last", str(step)):
            raise DataError(
                f"checkpoint={which} must be best, last or {step}: {self.directory} is "
                "a model, and holds no other checkpoint. Pass one of these."
            )
        return step

    def read_chosen(self, which: str | int, read: Callable[[int], T]) -> T:
        """Reads the parameters of the only step; see `CheckpointReader.read_chosen`."""
        return read(self.resolve_step(which))

    def check_size(self, step: int, *, parameters: int) -> None:
        """Checks that the file can hold so many parameters, before they are built.

        Raises:
          DataError: it is too small.
        """
        size = require_file(self._path, advice=_ADVICE)
        if 4 * parameters > size:
            raise self._damaged(f"{size:,} bytes cannot hold {parameters:,} parameters")

    def params(self, step: int, *, like: PyTree) -> Params:
        """Restores the parameters; names, shapes and checksums must match.

        Raises:
          DataError: they differ from what was written, or are of another model.
        """
        self.meta(step)
        try:
            arrays = self._read(like)
        except UserError:
            raise
        except Exception as error:
            if io_error := as_io_error(error, self._path):
                raise io_error from error
            raise self._damaged(short_reason(error)) from error
        return place(arrays, like)

    def _read(self, like: PyTree) -> dict[str, Any]:
        """Reads the arrays; checks names and shapes before, checksums after."""
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
        mapped, metadata = read_safetensors(self._path, max_bytes=size + MAX_JSON_BYTES)
        if reason := describe_differences(dtype_shapes(like), dtype_shapes(mapped)):
            raise DataError(
                f"{self._path} was written for another model: {reason}.\nRestore "
                "the config.json of that model."
            )
        # A copy: JAX may use an array where it is, and the file may change.
        arrays = {name: np.array(array) for name, array in mapped.items()}
        # A file written by another program has no checksums.
        saved = json.loads(metadata.get(_CHECKSUMS, "{}"))
        if saved and (reason := describe_differences(saved, checksums(arrays))):
            raise self._damaged(reason)
        return arrays

    def _read_meta(self) -> Meta:
        path = self.directory / "model.json"
        try:
            meta = read_json_object(path, advice=_ADVICE)
        except FileNotFoundError as error:
            missing = f"{path} does not exist, and holds the step"
            raise InputMissingError(f"{missing}. {_ADVICE}") from error
        if not isinstance(meta.get("step"), int):
            raise DataError(f"{path} is damaged: it has no step\n{_ADVICE}")
        return meta

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self._path} is damaged: {reason}. {_ADVICE}")


def open_parameters(directory: Path) -> CheckpointReader | SafetensorsFile:
    """Opens the checkpoints, or `model.safetensors`, of a run or model directory."""
    if is_safetensors_dir(directory):
        return SafetensorsFile(directory)
    return CheckpointReader(directory / "checkpoints")
