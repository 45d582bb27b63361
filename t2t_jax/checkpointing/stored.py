"""Where the parameters of a directory are: in checkpoints, or in one file."""

from __future__ import annotations

from pathlib import Path

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.places import in_one_file
from t2t_jax.checkpointing.safetensors_file import SafetensorsFile


def stored_parameters(directory: Path) -> Checkpoints | SafetensorsFile:
    """Opens the parameters of a run or a model for reading.

    Args:
      directory: of the run or the model.

    Returns:
      What has `choose`, `meta` and `params`: the checkpoints, or the file
      `model.safetensors` of a directory that has none.

    Raises:
      UserError: there is such a file, and the package for it is not installed.
    """
    if in_one_file(directory):
        return SafetensorsFile(directory)
    return Checkpoints(directory / "checkpoints")
