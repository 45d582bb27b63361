"""From a workdir or a model directory to a model that translates."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

from t2t_jax.checkpointing.averaging import average
from t2t_jax.checkpointing.checkpoints import Checkpoints, Meta
from t2t_jax.data.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.translator import Translator
from t2t_jax.errors import DataError, OutputError
from t2t_jax.model.step_model import TransformerStepModel
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Params, PyTree
from t2t_jax.workdir import Workdir


@dataclasses.dataclass(frozen=True)
class Model:
    """A trained model with all that it takes to use it.

    Attributes:
      module: the Linen module, for `module.apply({"params": params}, …)`.
      params: nested dict of float32 arrays.
      vocabulary: from text to subwords and back.
      decoding: how `translate` searches.
      step: optimizer steps behind the parameters.
    """

    module: Transformer
    params: Params
    vocabulary: Vocabulary
    decoding: DecodingConfig
    step: int

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translates n lines into n lines, in the same order."""
        step_model = TransformerStepModel(self.module, self.params)
        return Translator(step_model, self.vocabulary, self.decoding).translate(lines)


def load(
    directory: str | Path,
    *,
    checkpoint: str | int = "best",
    decoding: DecodingConfig | None = None,
) -> Model:
    """Loads a model.

    Args:
      directory: a run's workdir, or a directory that `--mode=average` has written.
      checkpoint: `best` (highest development BLEU), `last`, or a step.
      decoding: how to search; None means as the run was configured.

    Raises:
      InputMissingError: the directory is no run and no model.
      DataError: it is damaged, or has no such checkpoint.
    """
    workdir = Workdir(Path(directory))
    config = workdir.read_config()
    vocabulary = Vocabulary.load(workdir.vocabulary)
    module = Transformer(config.model)
    checkpoints = Checkpoints(workdir.checkpoints)
    step = checkpoints.choose(checkpoint)
    params = checkpoints.params(step, like=_abstract_params(module))
    return Model(module, params, vocabulary, decoding or config.decoding, step)


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


def average_checkpoints(
    workdir: Workdir, *, to: Path, last: int = 5, steps: Sequence[int] = ()
) -> list[int]:
    """Writes the mean of several checkpoints as a model directory.

    Args:
      workdir: the run.
      to: the directory to make; it must not exist, or be empty.
      last: how many periodic checkpoints to take, the newest.
      steps: the steps to take instead, if there are any.

    Returns:
      The steps that were averaged. The model is numbered as the newest of them.

    Raises:
      DataError: there are not so many checkpoints, or not those.
      OutputError: `to` holds something already.

    Paper: §6.1.
    """
    inside = workdir.checkpoints.resolve() in [to.resolve(), *to.resolve().parents]
    if inside or (to.exists() and (not to.is_dir() or any(to.iterdir()))):
        raise OutputError(
            f"--to={to} must be a new or empty directory outside the checkpoints, and "
            "is not. Name another."
        )
    config = workdir.read_config()
    vocabulary = Vocabulary.load(workdir.vocabulary)
    module = Transformer(config.model)
    checkpoints = Checkpoints(workdir.checkpoints)
    chosen = _chosen(checkpoints, last=last, steps=steps)
    like = _abstract_params(module)
    mean = average(checkpoints.params(step, like=like) for step in chosen)
    target = Workdir(to)
    target.create()
    vocabulary.save(to)
    written = Checkpoints(target.checkpoints, keep=1)
    meta: Meta = {"step": chosen[-1], "kinds": ["average"], "averaged_steps": chosen}
    written.save(chosen[-1], params=mean, optimizer=None, meta=meta)
    written.close()
    target.write_json("model.json", {"averaged_steps": chosen, "step": chosen[-1]})
    target.write_config(config)
    return chosen


def _chosen(checkpoints: Checkpoints, *, last: int, steps: Sequence[int]) -> list[int]:
    there = checkpoints.steps()
    if steps:
        missing = sorted(set(steps) - set(there))
        if missing or len(set(steps)) < len(steps):
            raise DataError(
                f"--average_steps={','.join(map(str, steps))} must be different steps "
                f"of {checkpoints.directory}, which holds "
                f"{', '.join(map(str, there)) or 'none'}."
            )
        return sorted(steps)
    periodic = [step for step in there if "periodic" in checkpoints.meta(step)["kinds"]]
    if len(periodic) < last:
        raise DataError(
            f"--last={last} periodic checkpoints are to be averaged, and "
            f"{checkpoints.directory} holds {len(periodic)}. Lower --last, or keep "
            "more with config.checkpoint.keep."
        )
    return periodic[-last:]


def _abstract_params(module: Transformer) -> PyTree:
    """Returns the shapes of the parameters, placed on the first device."""
    token = jnp.ones((1, 1), jnp.int32)
    shapes = jax.eval_shape(module.init, jax.random.key(0), token, token)["params"]
    place = SingleDeviceSharding(jax.local_devices()[0])
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), shapes
    )
