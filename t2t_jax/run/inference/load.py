"""Loads a `TranslationModel` from a workdir or a model directory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
from flax import linen as nn
from jax.sharding import SingleDeviceSharding

from t2t_jax.checkpointing.safetensors_io import open_parameters
from t2t_jax.checkpointing.step_dirs import Meta, is_safetensors_dir
from t2t_jax.config import Config
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.data.line_arguments import (
    as_directory,
    as_lines,
    require_lines,
    wrong_type,
)
from t2t_jax.data.source_lines import SourceLines, Spread
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.compilation_cache import enable_cache_in_process
from t2t_jax.devices.distributed.gather import replicate
from t2t_jax.devices.distributed.processes import Processes, broadcast_from_first
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible
from t2t_jax.model.architectures import make_module, module_name, param_shapes
from t2t_jax.model.counting import count_parameters
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import Params, PyTree

SPACING_KEYS = ("unit", "gaps", "forced")  # of an averaged checkpoint's metadata


def load(
    directory: str | Path,
    *,
    checkpoint: str | int = "best",
    decoding: DecodingConfig | None = None,
    devices: Sequence[jax.Device] | None = None,
    ensemble: Iterable[str | Path | tuple[str | Path, str | int]] = (),
    module: nn.Module | None = None,
) -> TranslationModel:
    """Loads a trained model, or an ensemble.

    Compiled programs are cached on disk, in the directory of the command line, unless
    the process has configured JAX's compilation cache itself.

    Args:
      directory: a run's workdir, or an averaged or exported model.
      checkpoint: `best` (highest development BLEU, of trees F1), `last`, or a step.
      decoding: the search settings; None means those of the run.
      devices: over which batches are split and parameters replicated; None means all of
        this process.
      ensemble: further directories, whose `best` checkpoints, or (directory,
        checkpoint), form an ensemble with this one: the probabilities are averaged.
      module: that `t2t_jax.train` was given, if it was; of an ensemble, for those of
        its models.

    Returns:
      The model, replicated over `devices`.

    Raises:
      ConfigError: the run was trained with another `module`.
      InputMissingError: a directory is not a run or a model.
      DataError: it is damaged, has no such checkpoint, or another vocabulary.
      TypeError: `ensemble` is a single directory.

    Example:
      `t2t_jax.load("runs/phrasebook").translate(["The dog barks."])`
    """
    require_lines(ensemble, caller="load", noun="directories in ensemble")
    enable_cache_in_process()
    _check_types(decoding, devices)
    members = list(ensemble)
    how: Any = {"devices": devices, "module": module, "in_ensemble": bool(members)}
    first = _load_one(directory, checkpoint, decoding, **how)
    return _load_ensemble(first, members, **how) if members else first


def _load_one(
    directory: str | Path,
    checkpoint: str | int,
    decoding: DecodingConfig | None = None,
    *,
    devices: Sequence[jax.Device] | None,
    module: nn.Module | None,
    in_ensemble: bool,
) -> TranslationModel:
    workdir = Workdir(as_directory(directory, caller="load"))
    config = workdir.read_config()
    own = _require_module(workdir, config, module, in_ensemble=in_ensemble)
    vocabularies = workdir.read_vocabularies(config.vocabulary)
    devices = list(devices or jax.local_devices())
    checkpoints = open_parameters(workdir.path)
    size = count_parameters(config.network).total

    def read(step: int) -> tuple[int, Meta, nn.Module, Params]:
        meta = checkpoints.meta(step)
        if own is None:
            checkpoints.check_size(step, parameters=size)
        module = own or make_module(config.network, devices=devices)
        workdir.check_vocabularies(vocabularies, meta.get("fingerprints", {}))
        params = checkpoints.params(step, like=abstract_params(module))
        return step, meta, module, params

    step, meta, module, params = checkpoints.read_chosen(checkpoint, read)
    longest = config.data.max_length
    unmeasured = SourceLines(Spread(longest, longest), sentences=Spread(2, 2))
    return TranslationModel(
        module,
        replicate(params, devices),
        vocabularies,
        decoding or config.decoding,
        step,
        averaged_steps=tuple(meta.get("averaged_steps", ())),
        spacing={name: meta[name] for name in SPACING_KEYS if name in meta},
        known_words=KnownWords.load(workdir.path),
        source_lines=SourceLines.load(workdir.path) or unmeasured,
        is_parser=reads_trees(config.data.train),
    )


def _require_module(
    workdir: Workdir, config: Config, module: nn.Module | None, *, in_ensemble: bool
) -> nn.Module | None:
    """Returns the module of the user, if the run was trained with one of its name."""
    name = "" if module is None else module_name(module)
    if (wanted := config.python.module) == name:
        return module
    if in_ensemble and not wanted:  # Another model of it has the module.
        return None
    was = f"the module {wanted}" if wanted else "the model of its configuration"
    found = f"not {name}" if name else "which is in a program of yours"
    advice = "Pass it" if wanted else "Leave module out, instead of passing one"
    raise ConfigError(
        f"{workdir.path} was trained with {was}, {found}. {advice} to "
        "t2t_jax.load(…, module=…)."
    )


def _check_types(decoding: object, devices: Sequence[jax.Device] | None) -> None:
    if decoding is not None and not isinstance(decoding, DecodingConfig):
        advice = "Pass t2t_jax.DecodingConfig(…), or pass settings to translate."
        raise wrong_type("load takes a DecodingConfig as decoding", decoding, advice)
    if devices is not None and (isinstance(devices, str) or not list(devices)):
        advice = "Pass some of jax.devices(), or leave devices out to use all."
        raise TypeError(f"load takes a sequence of devices, not {devices!r}. {advice}")


def _load_ensemble(
    first: TranslationModel,
    members: Sequence[str | Path | tuple[str | Path, str | int]],
    **how: Any,
) -> TranslationModel:
    others = []
    for member in members:
        directory, which = member if isinstance(member, tuple) else (member, "best")
        others.append(other := _load_one(directory, which, **how))
        if other.vocabularies.fingerprint != first.vocabularies.fingerprint:
            raise DataError(
                f"{directory} must have the vocabularies of the first model of the "
                "ensemble, and has others. Leave it out, or train it with the same "
                "config.vocabulary.file."
            )
    module, models = how["module"], (first, *others)
    if module is not None and all(one.module is not module for one in models):
        raise ConfigError(
            f"No model of the ensemble was trained with {module_name(module)}. Leave "
            "module out, instead of passing one to t2t_jax.load(…, module=…)."
        )
    return dataclasses.replace(first, others=tuple(others))


def shared_checkpoint(
    processes: Processes, directory: Path, *, name: str, checkpoint: str | int = "best"
) -> str | int:
    """Returns the checkpoint for `load` that all processes load, as process 0 finds it.

    Collective: call on every process. The arguments are those of `shared_steps`.
    """
    if processes.count == 1:
        return checkpoint

    def choose() -> list[int]:
        return [open_parameters(directory).read_chosen(checkpoint, lambda step: step)]

    return shared_steps(processes, Workdir(directory), choose, name=name)[0]


def shared_steps(
    processes: Processes,
    workdir: Workdir,
    choose: Callable[[], Iterable[int]],
    *,
    name: str = "the model",
    seconds: float = SHARED_FS_TIMEOUT,
) -> tuple[int, ...]:
    """Returns the checkpoints that process 0 chooses, once this process sees them.

    Collective: call on every process.

    Args:
      choose: called on process 0.
      name: of the model; unique in a run.
      seconds: timeout until the file system of this process shows the checkpoints.

    Raises:
      InputMissingError: they do not appear.
    """
    steps = tuple(choose()) if processes.is_first else ()
    sent = broadcast_from_first(processes, f"steps of {name}", json.dumps(steps))
    steps = tuple(json.loads(sent))
    # Checkpoints are renamed into place: an existing directory is complete.
    paths = [workdir.checkpoints / str(step) for step in steps]
    if processes.is_first or wait_until_visible(
        lambda: is_safetensors_dir(workdir.path) or all(p.is_dir() for p in paths),
        seconds=seconds,
    ):
        return steps
    path = next((path for path in paths if not path.is_dir()), paths[0])
    raise InputMissingError(
        f"Process 0 uses step {path.name}, but process {processes.index} does not see "
        f"{path}. Choose a workdir on a file system that all processes share."
    )


def translate(
    directory: str | Path,
    lines: Iterable[str],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
) -> list[str]:
    """Translates lines with the best checkpoint of a run.

    Loads the model at every call; to translate repeatedly, use `load`.

    Args:
      lines: any text without line ends.
      source_language: of a model that reads it, such as "en".
      target_language: of a model of several, such as "de".

    Returns:
      One line for each, in the same order.

    Raises:
      UserError: as for `load`; or the language is missing, or none of the model's.
      TypeError: `lines` is a single string, or holds something else than strings.

    Example:
      `t2t_jax.translate("runs/phrasebook", ["The dog barks."])`
    """
    lines = as_lines(lines, caller="translate")
    return load(directory).translate(
        lines, source_language=source_language, target_language=target_language
    )


def abstract_params(module: nn.Module) -> PyTree:
    """Returns the shapes of the parameters, with the sharding of the first device."""
    where = SingleDeviceSharding(jax.local_devices()[0])
    return jax.tree.map(lambda x: x.update(sharding=where), param_shapes(module))
