"""Which of two places the parameters of a directory are in; no JAX is needed."""

from __future__ import annotations

from pathlib import Path

SAFETENSORS = "model.safetensors"
"""The file that holds a model's parameters where there are no checkpoints."""


def in_one_file(directory: Path) -> bool:
    """Tells whether parameters are in one file, and in no checkpoints.

    Args:
      directory: of a run or a model.

    Example:
      >>> in_one_file(Path("nowhere"))
      False
    """
    return (directory / SAFETENSORS).is_file() and not (
        directory / "checkpoints"
    ).is_dir()
