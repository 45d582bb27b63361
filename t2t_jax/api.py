"""`t2t_jax.train`: trains a model, or resumes its training, in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from ml_collections import config_dict

from t2t_jax.config import Config, flatten, parse, to_dict
from t2t_jax.config_files import load_config
from t2t_jax.data.line_arguments import as_directory
from t2t_jax.devices.compilation_cache import enable_cache_in_process
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.run.first_start import adopt_model
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.resume_rules import require_resumable, with_decay_steps
from t2t_jax.run.start import make_console, open_run, require_trainable
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.stopping import InterruptRequest

if TYPE_CHECKING:
    import jax

    from t2t_jax.run.inference.model import TranslationModel

    ConfigLike: TypeAlias = (
        Config | config_dict.ConfigDict | Mapping[str, Any] | str | Path
    )


def train(
    config: ConfigLike | None,
    workdir: str | Path,
    *,
    quiet: bool = False,
    log: TextIO | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> TranslationModel:
    """Trains a model, or resumes its training, and returns the trained model.

    Equivalent to `python -m t2t_jax.main` with the same configuration, in this process
    and on all its devices: the workdir gets the configuration, the vocabulary, metrics
    and checkpoints, and the same call resumes an interrupted run. A complete run is
    only loaded.

    Ctrl-C saves a checkpoint and raises `KeyboardInterrupt`; a second one does not wait
    for the checkpoint. Signal handlers are installed in the main thread only. The
    watchdog (`config.training.step_timeout`), which would end the process, is off.
    Compiled programs are cached as by `t2t_jax.load`.

    Args:
      config: the experiment: a ConfigDict, as `t2t_jax.default_config()` (the paper's
        base model), `t2t_jax.load_config("phrasebook")` or the `get_config()` of a
        config file return it; or what `load_config` takes; or nested dicts, whose
        missing keys have the default; or a `Config`. None resumes the run of the
        workdir with its own configuration.
      workdir: directory of the run, created if it does not exist. If it holds a run,
        only keys that may change on resume can differ, such as `config.steps`.
      log: stream for progress; None means stderr.
      devices: to train on; None means all.

    Returns:
      The model of the best checkpoint, as `t2t_jax.load(workdir)` returns it.

    Raises:
      ConfigError: the configuration breaks a rule, or is not that of the run.
      DataError: text, vocabulary or a checkpoint is not valid.
      InputMissingError: a file does not exist.
      OutputError: the workdir cannot be written, or is in use by another process.
      UserError: the base class of these.
      KeyboardInterrupt: Ctrl-C; the same call resumes the run.

    Example:
      `config = t2t_jax.load_config("phrasebook")`, `config.steps = 200`,
      `model = t2t_jax.train(config, "runs/mine")`, `model.translate(["A dog barks."])`.
    """
    directory = Workdir(as_directory(workdir, caller="train"))
    _require_stream(log)
    require_trainable(directory)
    enable_cache_in_process()
    _require_single_process()
    parsed, overrides = _resolve_config(config, directory)
    with ExitStack() as held:
        if quiet:
            log = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
        console = make_console(parsed, stream=log)
        run = open_run(
            parsed,
            workdir=directory,
            overrides=overrides,
            console=console,
            stream=log,
        )
        opened = held.enter_context(run)
        if opened.text is not None:
            _train(parsed, directory, opened.text, console=console, devices=devices)
    from t2t_jax.run.inference.load import load

    return load(directory.path, devices=devices)


def _resolve_config(
    config: ConfigLike | None, workdir: Workdir
) -> tuple[Config, dict[str, Any]]:
    """Returns the configuration, and the overrides to save with it."""
    if config is None:
        if not workdir.has_config:
            raise InputMissingError(
                f"{workdir.path} holds no run to resume. Pass a config to start one."
            )
        return workdir.read_config(), workdir.read_overrides()
    saved = workdir.read_config() if workdir.has_config else None
    parsed = with_decay_steps(_parse(config, saved=saved), saved=saved)
    if saved is None:
        return parsed, {}
    require_resumable(saved, parsed, workdir=workdir.path)
    # Keys set by earlier command lines now have the values of this configuration.
    values = dict(flatten(to_dict(parsed)))
    return parsed, {key: values[key] for key in workdir.read_overrides()}


def _parse(config: ConfigLike, *, saved: Config | None) -> Config:
    if isinstance(config, Config):
        return config
    if isinstance(config, str | Path):
        config = load_config(config)
    if isinstance(config, config_dict.ConfigDict):
        config = config.to_dict()
    if not isinstance(config, Mapping):
        raise TypeError(
            "train takes a config that is a ConfigDict, a mapping, a Config or the "
            f"name of a config file, not a {type(config).__name__}. Pass "
            't2t_jax.load_config("phrasebook").'
        )
    return parse(adopt_model(config, saved=saved))


def _require_stream(log: Any) -> None:
    if log is not None and not all(
        callable(getattr(log, name, None)) for name in ("write", "flush", "isatty")
    ):
        raise TypeError(
            "train takes a log that is None or an open text file, not a "
            f'{type(log).__name__}. Pass sys.stderr, or open("train.log", "w").'
        )


def _require_single_process() -> None:
    import jax

    if jax.distributed.is_initialized():
        raise UserError(
            "train runs in one process, but JAX was initialized for several. Use "
            "python -m t2t_jax.main in each of them."
        )


def _train(
    config: Config,
    workdir: Workdir,
    text: PreparedData,
    *,
    console: Console,
    devices: Sequence[jax.Device] | None,
) -> None:
    from t2t_jax.report.writer import ReportWriter
    from t2t_jax.run.trainer import Trainer, is_complete

    run = Trainer(
        config,
        workdir=workdir,
        text=text,
        console=console,
        devices=devices,
        owns_process=False,
        write_report=ReportWriter(workdir, log=console.log),
    )
    progress = run.train(InterruptRequest(console.log))
    if not is_complete(config, progress):
        raise KeyboardInterrupt(
            f"Stopped at step {progress.step:,}, which is saved. The same call resumes."
        )
