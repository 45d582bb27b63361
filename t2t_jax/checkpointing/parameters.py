"""Opens the parameters of a run or a model, however they are stored."""

from __future__ import annotations

from pathlib import Path

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.safetensors_io import SafetensorsFile
from t2t_jax.checkpointing.step_dirs import is_safetensors_dir


def open_parameters(directory: Path) -> Checkpoints | SafetensorsFile:
    """Opens the checkpoints, or `model.safetensors`, of a run or model directory."""
    if is_safetensors_dir(directory):
        return SafetensorsFile(directory)
    return Checkpoints(directory / "checkpoints")
