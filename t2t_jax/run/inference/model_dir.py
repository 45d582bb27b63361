"""Writes a model directory: a model without its run, in the layout of a workdir."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flax import linen as nn

from t2t_jax.checkpointing.safetensors_io import open_parameters, write_safetensors
from t2t_jax.checkpointing.step_dirs import SAFETENSORS, require_array_path
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.config import ARCHITECTURES, Config, to_dict
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.line_arguments import as_directory, wrong_type
from t2t_jax.data.token_cache.known_words import FILE
from t2t_jax.errors import OutputError, UserError, rewording
from t2t_jax.files import atomic_write, locked
from t2t_jax.model.architectures import make_module, module_name, require_params_of
from t2t_jax.model.config import ModelConfig, RNNConfig, TransformerConfig
from t2t_jax.run.inference.model import TranslationModel, learned_positions
from t2t_jax.run.inference.provenance import changed_origin, provenance_of
from t2t_jax.run.workdir import Workdir, require_outside_runs
from t2t_jax.training.config import PythonConfig


def save_model_dir(
    to: Path,
    model: TranslationModel,
    *,
    config: Config,
    origin: Mapping[str, Any],
    as_safetensors: bool = False,
) -> None:
    """Writes a model with its configuration and vocabularies.

    Args:
      model: its parameters, vocabularies and known words are written.
      origin: JSON values for `model.json`, such as `step` and `kinds`.
      as_safetensors: whether to write `model.safetensors` instead of a checkpoint.

    Raises:
      OutputError: a path of another kind exists.
      UserError: the package safetensors is required and not installed.
    """
    target = Workdir(to)
    target.create()
    vocabularies, params = model.vocabularies, model.params
    vocabularies.save(to)
    if model.known_words is not None:
        atomic_write(to / FILE, model.known_words.to_bytes())
    prints = {"vocabulary": vocabularies.fingerprint}
    if as_safetensors:
        write_safetensors(to / SAFETENSORS, params)
    else:
        checkpoints = CheckpointWriter(target.checkpoints, keep=1)
        meta = {**origin, "config": to_dict(config), "fingerprints": prints}
        checkpoints.save(
            origin["step"], meta=meta, files=vocabularies.files, params=params
        )
        checkpoints.wait()
    target.write_json("fingerprints.json", prints)
    target.write_json("model.json", dict(origin))
    target.write_config(config)


def write_model(
    to: Path, model: TranslationModel, *, config: Config, origin: Mapping[str, Any]
) -> None:
    """Writes a model to a new directory, as `save_model_dir` does."""
    with atomic_directory(to) as partial:
        save_model_dir(partial, model, config=config, origin=origin)


@contextmanager
def atomic_directory(to: Path, *, only: str = "") -> Iterator[Path]:
    """Yields a temporary directory, and renames it to `to` when it is complete.

    Args:
      only: pattern of the one file in it that becomes `to`; "" for all of it.

    Raises:
      OutputError: it cannot be created, or `to` has been created meanwhile.
    """
    target = to.resolve()
    # The host, since several machines may write into one directory.
    prefix = f".{target.name}.{socket.gethostname()}."
    temporary = target.with_name(f"{prefix}{os.getpid()}")
    with _as_output_error(to):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent, prefix)
        temporary.mkdir()
    with ExitStack() as held:
        with suppress(OSError):  # Locks are not supported: nobody removes it then.
            held.enter_context(locked(temporary, is_shared=True, is_directory=True))
        held.callback(shutil.rmtree, temporary, ignore_errors=True)
        yield temporary
        with _as_output_error(to):
            if only:
                # A link, unlike a renamed file, never replaces another.
                os.link(next(temporary.glob(only)), target)
            else:
                os.rename(temporary, target)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Removes what processes of this host have left when they were killed.

    A process that runs holds a lock, also where its number means another one, as in a
    container.
    """
    for path in folder.iterdir():
        number = path.name.removeprefix(prefix)
        if path.name == number or not number.isdecimal() or not path.is_dir():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            # It may be locked, or removed by another process.
            with suppress(OSError), locked(path, is_directory=True):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # It runs, and is another user's.
            pass


@contextmanager
def _as_output_error(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror}. Choose another directory."
        raise OutputError(f"Cannot create --to={to}: {reason}") from error


def check_new_dir(workdir: Workdir, to: Path, *, has_arrays: bool = True) -> None:
    """Checks that a model directory can be created, before its model is computed.

    Args:
      has_arrays: whether this program saves arrays in it.

    Raises:
      OutputError: it is not empty, lies among the run's checkpoints, or cannot be
        created.
    """
    if problem := _conflict(workdir, to):
        advice = "Choose a new or empty one."
        raise OutputError(f"--to={to} cannot be written: it {problem}. {advice}")
    require_outside_runs(to, flag="to")
    if has_arrays:
        require_array_path(to)
    with _as_output_error(to):
        parent = next(path for path in (to, *to.resolve().parents) if path.exists())
        # Permissions are not sufficient: nothing can be created in /proc.
        with TemporaryDirectory(prefix=".", dir=parent):
            pass


def _conflict(workdir: Workdir, to: Path) -> str:
    if workdir.checkpoints.resolve() in [to.resolve(), *to.resolve().parents]:
        return "lies among the checkpoints of the run"
    if to.exists() and not to.is_dir():
        return "exists and is not a directory"
    return "exists and is not empty" if to.exists() and any(to.iterdir()) else ""


def save_model(
    to: str | Path, model: TranslationModel, *, like: str | Path | None = None
) -> Path:
    """Saves a model as a model directory, which `load` and every mode take.

    For parameters that were changed in JAX, by further training for instance.

    Args:
      to: directory to create; missing or empty.
      model: with its present parameters and search settings. If its module is not
        built of its configuration alone, as with a block of your own, the directory
        names it, and `t2t_jax.load(to, module=…)` opens it.
      like: the run or model directory that it was loaded from, whose configuration,
        vocabularies and provenance the new directory gets; None for a model from
        `TranslationModel.of`, which has none.

    Returns:
      The path of the new directory.

    Raises:
      OutputError: `to` is not empty, or cannot be created.
      InputMissingError: `like` is not a run or a model.
      DataError: `like` is damaged.
      UserError: the model is an ensemble.
      ValueError: vocabularies, parameters or the module's configuration are not those
        of the model in `like`.
      TypeError: a directory is not a path, or `model` is something else; or its module
        has no `TransformerConfig` or `RNNConfig`.

    Example:
      `t2t_jax.save_model("models/tuned", model, like="runs/phrasebook")`.
    """
    target = as_directory(to, caller="save_model")
    _require_single(model)
    if like is None:
        origin_dir, config, known = Workdir(target), _config_of(model), {}
        model.vocabularies.check(config.vocabulary, name="the model")
    else:
        origin_dir = Workdir(as_directory(like, caller="save_model"))
        config = dataclasses.replace(origin_dir.read_config(), decoding=model.decoding)
        vocabularies = origin_dir.read_vocabularies(config.vocabulary)
        if vocabularies.fingerprint != model.vocabularies.fingerprint:
            raise ValueError(
                f"model must have the vocabularies of {like}, and has others. Pass the "
                "directory that it was loaded from as like."
            )
        _require_same_module(model.module, config, like)
        open_parameters(origin_dir.path).resolve_step(model.step)
        known = provenance_of(origin_dir, model.step)
    require_params_of(model.module, model.params)
    # Here it is an argument, not a flag.
    with rewording(lambda problem: problem.replace("--to=", "to=", 1)):
        check_new_dir(origin_dir, target)
        origin = {"step": model.step, **changed_origin(known, "changed")}
        write_model(target, model, config=config, origin=origin)
    return target


def _require_same_module(module: nn.Module, config: Config, like: str | Path) -> None:
    """Checks that a module is that of a run, but for what the devices decide."""
    free, of_module = {"attention", "compute_dtype"}, getattr(module, "config", None)
    differing = ", ".join(
        f"{name}={getattr(of_module, name)!r}, not {value!r}"
        for name, value in vars(config.network).items()
        if name not in free and getattr(of_module, name, value) != value
    )
    what, found = "configuration", f"its module has {differing}" if differing else ""
    own = _own_module(module, config.network)
    if not found and config.python.module not in (own, module_name(module)):
        what, found = "module", f"has {own or 'that of its configuration'}"
    if found:
        raise ValueError(
            f"model must have the {what} of {like}, and {found}. Leave like out, or "
            "pass the run of this module."
        )


def _config_of(model: TranslationModel) -> Config:
    """Returns the configuration of a model without a run, as far as it is known."""
    network = getattr(model.module, "config", None)
    if not isinstance(network, TransformerConfig | RNNConfig):
        takes = "save_model takes a model whose module has a TransformerConfig or an "
        advice = "Save its parameters by t2t_jax.Checkpoints."
        raise wrong_type(f"{takes}RNNConfig as config", model.module, advice)
    name = "rnn" if isinstance(network, RNNConfig) else "transformer"
    networks: Any = {ARCHITECTURES[name]: network}
    most, of_source = DataConfig.max_length, network.source_vocab_size or 0
    return Config(
        data=DataConfig(max_length=min(most, learned_positions(model.module) or most)),
        vocabulary=VocabularyConfig(size=network.vocab_size, source_size=of_source),
        architecture=name,
        decoding=model.decoding,
        python=PythonConfig(module=_own_module(model.module, network)),
        **networks,
    )


def _own_module(module: nn.Module, network: ModelConfig) -> str:
    """Names a module; "" if it is the one that `load` builds of a configuration."""
    name = module_name(module)
    return name if name != module_name(make_module(network)) else ""


def _require_single(model: TranslationModel) -> None:
    if not isinstance(model, TranslationModel):
        advice = "Pass dataclasses.replace(model, params=params)."
        raise wrong_type("save_model takes a loaded model", model, advice)
    if model.others:
        raise UserError(
            f"A model directory holds one model, not an ensemble of "
            f"{1 + len(model.others)}. Save one at a time."
        )
