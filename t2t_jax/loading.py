"""From a workdir or a model directory to a model that translates."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.sharding import SingleDeviceSharding

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring import PairScore, Scorer
from t2t_jax.decoding.translator import Translator
from t2t_jax.model.architectures import make_module, make_step_model
from t2t_jax.model.config import TransformerConfig
from t2t_jax.parallelism.gathering import replicate
from t2t_jax.types import Params, PyTree
from t2t_jax.workdir import Workdir

SPACING = ("unit", "gaps", "forced")
"""What the checkpoint of an average says of those that it is made of."""


@dataclasses.dataclass(frozen=True)
class Model:
    """A trained model with all that it takes to use it.

    Attributes:
      module: the Linen module, for `module.apply({"params": params}, …)`.
      params: nested dict of float32 arrays; each device that translates holds all.
      vocabularies: from text to subwords and back.
      decoding: how `translate` searches.
      step: optimizer steps behind the parameters.
      averaged_steps: the checkpoints whose mean they are; none if they are of one.
      spacing: of those: `unit`, `gaps`, and whether `forced` in spite of a fault.
    """

    module: nn.Module
    params: Params
    vocabularies: Vocabularies
    decoding: DecodingConfig
    step: int
    averaged_steps: tuple[int, ...] = ()
    spacing: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translates n lines into n lines, in the same order."""
        return self.translator().translate(lines)

    def translator(self) -> Translator:
        """Returns what translates, for scores beside the text."""
        step_model = make_step_model(self.module, self.params)
        return Translator(step_model, self.vocabularies, self.decoding)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[PairScore]:
        """Tells how probable each target is as the translation of its source."""
        return self.scorer().scores(sources, targets)

    def scorer(self) -> Scorer:
        """Returns what scores, for those who show progress."""
        return Scorer(
            self.module.apply,
            {"params": self.params},
            self.vocabularies,
            self.decoding,
            max_length=_max_length(self.module),
        )


def load(
    directory: str | Path,
    *,
    checkpoint: str | int = "best",
    decoding: DecodingConfig | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Model:
    """Loads a model.

    Args:
      directory: a run's workdir, or a directory that `--mode=average` has written.
      checkpoint: `best` (highest development BLEU), `last`, or a step.
      decoding: how to search; None means as the run was configured.
      devices: those that translate and score together; None means all of this
        process's. Each holds all parameters.

    Raises:
      InputMissingError: the directory is no run and no model.
      DataError: it is damaged, or has no such checkpoint.
    """
    workdir = Workdir(Path(directory))
    config = workdir.read_config()
    vocabularies = workdir.read_vocabularies(config.vocabulary)
    devices = list(devices or jax.local_devices())
    module = make_module(config.network, platform=devices[0].platform)
    checkpoints = Checkpoints(workdir.checkpoints)
    step = checkpoints.choose(checkpoint)
    params = checkpoints.params(step, like=abstract_params(module))
    meta = checkpoints.meta(step)
    return Model(
        module,
        replicate(params, devices),
        vocabularies,
        decoding or config.decoding,
        step,
        averaged_steps=tuple(meta.get("averaged_steps", ())),
        spacing={name: meta[name] for name in SPACING if name in meta},
    )


def choose(directory: str | Path, *, checkpoint: str | int = "best") -> int:
    """Finds the step that `load` would load.

    Of several processes only the first may ask, so that all load what it has found.

    Args:
      directory: as for `load`.
      checkpoint: as for `load`.

    Raises:
      DataError: there is no such checkpoint.
    """
    return Checkpoints(Workdir(Path(directory)).checkpoints).choose(checkpoint)


def translate(directory: str | Path, lines: Sequence[str]) -> list[str]:
    """Translates lines with the best checkpoint of a run; see `load` to do it often.

    Args:
      directory: as for `load`.
      lines: any text without line ends.

    Returns:
      One line for each, in the same order.

    Raises:
      UserError: as for `load`.
    """
    return load(directory).translate(lines)


def abstract_params(module: nn.Module) -> PyTree:
    """Returns the shapes of the parameters, placed on the first device."""
    token = jnp.ones((1, 1), jnp.int32)
    shapes = jax.eval_shape(module.init, jax.random.key(0), token, token)["params"]
    place = SingleDeviceSharding(jax.local_devices()[0])
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), shapes
    )


def _max_length(module: nn.Module) -> int | None:
    """Returns how many positions the model knows; None where there is no end."""
    config = getattr(module, "config", None)
    if isinstance(config, TransformerConfig) and config.positions == "learned":
        return config.max_positions
    return None
