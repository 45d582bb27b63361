"""Exports to t2t_jax itself: a model directory, with safetensors or a checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np

from t2t_jax.checkpointing.safetensors_io import require_safetensors
from t2t_jax.config import Config
from t2t_jax.devices.sharding.rules import leaves_by_path
from t2t_jax.errors import DataError
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.exchange.exporting.verification import (
    EXACT,
    Backend,
    JaxBackend,
    Tolerance,
)
from t2t_jax.exchange.importing.imported import ImportedModel
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import save_model_dir
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import Params


@dataclasses.dataclass(frozen=True)
class ModelDirFormat:
    """Model directories of this package.

    Attributes:
      safetensors: whether the parameters are one file, `model.safetensors`.
    """

    safetensors: bool = False
    library: str = "t2t_jax"
    tags: tuple[str, ...] = ("jax",)
    verified_with: str = "this directory"
    tolerance: Tolerance = EXACT

    def check_supported(self, config: Config) -> None:
        """Checks that the package safetensors is installed, if it is needed."""
        if self.safetensors:
            require_safetensors()

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes parameters, configuration and vocabularies."""
        save_model_dir(
            to,
            original.model.params,
            vocabularies=original.model.vocabularies,
            config=original.config,
            origin=original.origin,
            known_words=original.model.known_words,
            as_safetensors=self.safetensors,
        )

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads it, and compares the parameters bit by bit."""
        config = original.config
        written = load_for_export(Workdir(directory), checkpoint="last", config=config)
        check_equal(original.model.params, written.params)
        return JaxBackend(written, config.decoding)

    def usage(self, original: Original, *, name: str) -> str:
        """Describes `t2t_jax.load` and `--mode=translate`."""
        return fill_usage("t2t_jax", original, name)


def load_for_export(
    workdir: Workdir, *, checkpoint: str, config: Config
) -> TranslationModel:
    """Loads the model to export, in float32 on one device.

    Raises:
      UserError: as for `load.load`.
    """
    model = load(
        workdir.path,
        checkpoint=checkpoint,
        decoding=config.decoding,
        devices=jax.local_devices()[:1],
    )
    network = dataclasses.replace(config.network, compute_dtype="float32")
    return dataclasses.replace(model, module=make_module(network))


def imported_backend(original: Original, imported: ImportedModel) -> Backend:
    """Returns what was written in another toolkit's format and imported again.

    Raises:
      DataError: its arrays were not written bit by bit.
    """
    check_equal(original.model.params, imported.params)
    network = dataclasses.replace(
        original.config.model, **imported.model, compute_dtype="float32"
    )
    model = dataclasses.replace(
        original.model,
        module=make_module(network),
        params=imported.params,
        vocabularies=imported.vocabularies,
    )
    return JaxBackend(model, original.config.decoding)


def check_equal(params: Params, written: Params) -> None:
    """Checks that parameters were written bit by bit.

    Args:
      written: may have zeros beside them, such as biases that a format must have.

    Raises:
      DataError: they were not.
    """
    ours, theirs = (
        leaves_by_path(jax.tree.map(np.asarray, tree)) for tree in (params, written)
    )
    nothing = np.zeros(0)
    differing = [
        name
        for name in {**ours, **theirs}
        if (
            ours[name].tobytes() != theirs.get(name, nothing).tobytes()
            if name in ours
            else theirs[name].any()
        )
    ]
    if differing:
        raise DataError(
            f"{len(differing)} of {len(ours)} arrays differ after writing and "
            "reading them: the disk or the memory is failing. Nothing was kept."
        )
