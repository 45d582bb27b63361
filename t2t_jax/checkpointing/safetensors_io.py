"""Reads and writes parameters as one file, `model.safetensors`.

Each array is named by its path, such as `encoder/layer_0/self_attention/query/kernel`.
The header holds the checksums of a checkpoint. Reading executes no code.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from t2t_jax.checkpointing.checksums import (
    checksums,
    describe_differences,
    dtype_shapes,
)
from t2t_jax.checkpointing.diagnosis import as_io_error
from t2t_jax.checkpointing.step_dirs import SAFETENSORS, Meta
from t2t_jax.errors import DataError, InputMissingError, UserError
from t2t_jax.files import MAX_JSON_BYTES, check_size, read_json_object
from t2t_jax.sharding.rules import path_of
from t2t_jax.types import Params, PyTree

_DTYPES = {"F32": "float32"}
_CHECKSUMS = "checksums"
_ADVICE = "Restore the file from a copy, or export the model again."


def require_safetensors() -> None:
    """Raises a UserError if the package safetensors is not installed."""
    if find_spec("safetensors") is None:
        raise UserError(
            f"{SAFETENSORS} requires the package safetensors, which is not installed. "
            "Run: pip install 't2t-jax[export]'"
        )


def write_safetensors(path: Path, params: Params) -> None:
    """Writes parameters, a nested dict of float32 arrays, with their checksums.

    Raises:
      UserError: the package is not installed.
    """
    require_safetensors()
    from safetensors.numpy import save_file

    arrays = {
        name: np.ascontiguousarray(leaf) for name, leaf in _by_name(params).items()
    }
    path.touch()
    mode = path.stat().st_mode  # That of the umask; the package sets 0600.
    save_file(arrays, path, metadata={_CHECKSUMS: json.dumps(checksums(arrays))})
    path.chmod(stat.S_IMODE(mode))


class SafetensorsFile:
    """The parameters of a model directory, with the methods of `Checkpoints`.

    Args:
      directory: of the model; `model.json` there holds the step.

    Raises:
      UserError: the package is not installed.
    """

    def __init__(self, directory: Path):
        require_safetensors()
        self.directory = directory
        self._path = directory / SAFETENSORS

    def meta(self, step: int) -> Meta:
        """Reads `model.json`, the JSON object of the parameters.

        Raises:
          DataError: `model.json` is damaged, or of another step.
          InputMissingError: `model.json` does not exist.
        """
        meta = self._read_meta()
        if meta["step"] != step:
            raise self._wrong_step(str(step), meta["step"])
        return meta

    def resolve_step(self, which: str | int) -> int:
        """Returns the only step.

        Raises:
          DataError: `which` is another step.
          InputMissingError: `model.json` does not exist.
        """
        step: int = self._read_meta()["step"]
        if str(which) not in ("best", "last", str(step)):
            raise self._wrong_step(str(which), step)
        return step

    def params(self, step: int, *, like: PyTree) -> Params:
        """Restores the parameters; names, shapes and checksums must match.

        Raises:
          DataError: they differ from what was written, or are of another model.
        """
        self.meta(step)
        shapes = _by_name(like).values()
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in shapes)
        try:
            check_size(self._path, max_bytes=size + MAX_JSON_BYTES, advice=_ADVICE)
            arrays = self._read(dtype_shapes(like))
        except UserError:
            raise
        except Exception as error:
            io_error = as_io_error(error, self._path)
            if io_error:
                raise io_error from error
            reason = str(error) or type(error).__name__
            raise self._damaged(reason.splitlines()[0]) from error
        params: Params = jax.tree_util.tree_map_with_path(
            lambda path, leaf: jax.device_put(arrays[path_of(path)], leaf.sharding),
            like,
        )
        return params

    def _read(self, expected: Mapping[str, str]) -> dict[str, Any]:
        """Reads the arrays; checks names and shapes before, checksums after."""
        from safetensors import safe_open

        with safe_open(self._path, framework="numpy") as file:
            shapes = {name: _dtype_shape(file.get_slice(name)) for name in file.keys()}
            reason = describe_differences(shapes, expected)
            if reason:
                raise DataError(
                    f"{self._path} was written for another model: {reason}.\nRestore "
                    "the config.json of that model."
                )
            # A file written by another program has no checksums.
            saved = json.loads((file.metadata() or {}).get(_CHECKSUMS, "{}"))
            arrays = {name: file.get_tensor(name) for name in shapes}
        reason = describe_differences(saved, checksums(arrays)) if saved else ""
        if reason:
            raise self._damaged(reason)
        return arrays

    def _read_meta(self) -> Meta:
        path = self.directory / "model.json"
        try:
            meta = read_json_object(path, advice=_ADVICE)
        except FileNotFoundError as error:
            raise InputMissingError(
                f"{path} does not exist, and must hold the step of {SAFETENSORS}. "
                f"{_ADVICE}"
            ) from error
        if not isinstance(meta.get("step"), int):
            raise DataError(f"{path} is damaged: it has no step\n{_ADVICE}")
        return meta

    def _wrong_step(self, which: str, step: int) -> DataError:
        return DataError(
            f"checkpoint={which} must be best, last or {step}: {self.directory} is a "
            "model, and holds no other checkpoint. Pass one of these."
        )

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self._path} is damaged: {reason}. {_ADVICE}")


def _dtype_shape(part: Any) -> str:
    """Formats an array of the header as `dtype_shape` does."""
    dtype = part.get_dtype()
    return f"{_DTYPES.get(dtype, dtype)}[{','.join(map(str, part.get_shape()))}]"


def _by_name(tree: PyTree) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {path_of(path): leaf for path, leaf in leaves}
