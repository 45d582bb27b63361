"""Parameters in one file that other programs read too: `model.safetensors`.

Each array is named by its path, as the paper names the parts:
`encoder/layer_0/self_attention/query/kernel`. The header holds the checksums that a
checkpoint holds. Reading it runs no code and follows no path.
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

from t2t_jax.checkpointing.checksums import checksums, differences, dtype_shapes
from t2t_jax.checkpointing.diagnosis import as_io_error
from t2t_jax.checkpointing.step_dirs import SAFETENSORS, Meta
from t2t_jax.errors import DataError, InputMissingError, UserError
from t2t_jax.files import MOST_JSON_BYTES, check_size, read_json_object
from t2t_jax.types import Params, PyTree

_DTYPES = {"F32": "float32"}
_CHECKSUMS = "checksums"
_MEND = "Bring the file back from a copy, or export the model again."


def require_safetensors() -> None:
    """Checks that the package is installed that such files need.

    Raises:
      UserError: it is not.
    """
    if find_spec("safetensors") is None:
        raise UserError(
            f"{SAFETENSORS} needs the package safetensors, which is not installed. "
            "Run: pip install -e '.[export]'"
        )


def write_safetensors(path: Path, params: Params) -> None:
    """Writes parameters and their checksums.

    Args:
      params: nested dict of float32 arrays.

    Raises:
      UserError: the package is not installed.
    """
    require_safetensors()
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in _named(params).items()}
    path.touch()
    mode = path.stat().st_mode  # as the umask has it; the package lets nobody else read
    save_file(arrays, path, metadata={_CHECKSUMS: json.dumps(checksums(arrays))})
    path.chmod(stat.S_IMODE(mode))


class SafetensorsFile:
    """The one file of parameters in a model directory, read as checkpoints are.

    Args:
      directory: of the model; its `model.json` says which step it is of.

    Raises:
      UserError: the package is not installed.
    """

    def __init__(self, directory: Path):
        require_safetensors()
        self.directory = directory
        self._path = directory / SAFETENSORS

    def meta(self, step: int) -> Meta:
        """Reads what is known of the parameters.

        Args:
          step: the one that there is; `choose` names it.

        Raises:
          DataError: `model.json` is damaged, or of another step.
          InputMissingError: there is none.
        """
        meta = self._origin()
        if meta["step"] != step:
            raise DataError(self._of_one_step(str(step), meta["step"]))
        return meta

    def resolve_step(self, which: str | int) -> int:
        """Finds the step that a user named.

        Args:
          which: `best` and `last` are the only one there is, as is its number.

        Raises:
          DataError: it is of another step.
          InputMissingError: there is no `model.json`.
        """
        step: int = self._origin()["step"]
        if str(which) not in ("best", "last", str(step)):
            raise DataError(self._of_one_step(str(which), step))
        return step

    def params(self, step: int, *, like: PyTree) -> Params:
        """Reads the arrays, and only those of the names and shapes that are expected.

        Args:
          step: the one that there is.
          like: tree of `jax.ShapeDtypeStruct` with shardings.

        Raises:
          DataError: they are not what was written, or of another model.
        """
        self.meta(step)
        named = _named(like)
        most = sum(leaf.size * leaf.dtype.itemsize for leaf in named.values())
        try:
            check_size(self._path, most=most + MOST_JSON_BYTES, mend=_MEND)
            arrays = self._read(dtype_shapes(like))
        except UserError:
            raise
        except Exception as error:
            fault = as_io_error(error, self._path)
            if fault:
                raise fault from error
            reason = str(error) or type(error).__name__
            raise self._damaged(reason.splitlines()[0]) from error
        params: Params = jax.tree_util.tree_map_with_path(
            lambda path, leaf: jax.device_put(arrays[_name(path)], leaf.sharding), like
        )
        return params

    def _read(self, expected: Mapping[str, str]) -> dict[str, Any]:
        """Reads the arrays, once their names and shapes are right, and compares."""
        from safetensors import safe_open

        with safe_open(self._path, framework="numpy") as file:
            there = {name: _described(file.get_slice(name)) for name in file.keys()}
            reason = differences(there, expected)
            if reason:
                raise DataError(
                    f"{self._path} was written for another model: {reason}.\nPut back "
                    "the config.json that belongs to it."
                )
            # A file that another program has written has no checksums.
            saved = json.loads((file.metadata() or {}).get(_CHECKSUMS, "{}"))
            arrays = {name: file.get_tensor(name) for name in there}
        reason = differences(saved, checksums(arrays)) if saved else ""
        if reason:
            raise self._damaged(reason)
        return arrays

    def _origin(self) -> Meta:
        path = self.directory / "model.json"
        try:
            meta = read_json_object(path, mend=_MEND)
        except FileNotFoundError as error:
            raise InputMissingError(
                f"{path} must say of which step {SAFETENSORS} is, and is not there. "
                f"{_MEND}"
            ) from error
        if not isinstance(meta.get("step"), int):
            raise DataError(f"{path} is damaged: it names no step\n{_MEND}")
        return meta

    def _of_one_step(self, asked: str, step: int) -> str:
        return (
            f"checkpoint={asked} must be best, last or {step}: {self.directory} is a "
            "model, and holds no other checkpoint. Pass one of these."
        )

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self._path} is damaged: {reason}. {_MEND}")


def _described(part: Any) -> str:
    """Writes dtype and shape as `integrity.describe` does, from the header alone."""
    dtype = part.get_dtype()
    return f"{_DTYPES.get(dtype, dtype)}[{','.join(map(str, part.get_shape()))}]"


def _named(tree: PyTree) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): leaf for path, leaf in leaves}


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
