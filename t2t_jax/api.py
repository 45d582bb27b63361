"""`t2t_jax.train`: trains a model, or resumes its training, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from ml_collections import config_dict

from t2t_jax.config import Config, flatten, parse, to_dict
from t2t_jax.config_files import load_config
from t2t_jax.data.corpora.python_pairs import Pairs, open_pairs
from t2t_jax.data.files.progress_bar import Log, print_line
from t2t_jax.data.line_arguments import as_directory, wrong_type
from t2t_jax.devices.compilation_cache import (
    disable_cache_on_multiprocess_cpu,
    enable_cache_in_process,
)
from t2t_jax.devices.distributed.processes import (
    Processes,
    current_processes,
    failing_together,
)
from t2t_jax.errors import ConfigError, InputMissingError
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.first_start import adopt_model
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.resume_rules import require_resumable, with_resolved_values
from t2t_jax.run.start import open_shared_run
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.config import PythonConfig
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.stopping import InterruptRequest, SharedStopRequest, StopRequest

if TYPE_CHECKING:
    import jax
    import optax
    from flax import linen as nn

    from t2t_jax.run.callbacks import Callback
    from t2t_jax.run.inference.model import TranslationModel
    from t2t_jax.training.optimizer import Schedule
    from t2t_jax.training.progress_and_patience import RunProgress

    ConfigLike: TypeAlias = (
        Config | config_dict.ConfigDict | Mapping[str, Any] | str | Path
    )


def train(  # noqa: PLR0913  # as few words as a program needs
    config: ConfigLike | None,
    workdir: str | Path,
    *,
    module: nn.Module | None = None,
    optimizer: optax.GradientTransformation | Schedule | None = None,
    train: Pairs | None = None,
    dev: Pairs | None = None,
    callbacks: Iterable[Callback] = (),
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

    After `jax.distributed.initialize` it is collective: call it on every process, in
    the main thread, with the same arguments and a workdir that all processes share.
    SIGTERM and SIGINT of one then stop all after the same step; a second one ends its
    process at once.

    Args:
      config: the experiment: a ConfigDict, as `t2t_jax.default_config()` (the paper's
        base model), `t2t_jax.load_config("phrasebook")` or the `get_config()` of a
        config file return it; or what `load_config` takes; or nested dicts, whose
        missing keys have the default; or a `Config`. None resumes the run of the
        workdir with its own configuration.
      workdir: directory of the run, created if it does not exist. If it holds a run,
        only keys that may change on resume can differ, such as `config.steps`.
      module: instead of the configured model, any Linen module that is called as
        `Transformer` is, such as a subclass of it with another block. If its `config`
        is a `TransformerConfig`, this becomes `config.model`. Its name and attributes
        are recorded as `config.python.module`; `t2t_jax.load(workdir, module=…)` opens
        the run. It is searched as `t2t_jax.step_model` says.
      optimizer: instead of the configured one, any of Optax, with its schedule; or a
        schedule alone, which maps the number of updates so far to the learning rate of
        the next one. What its state consists of is recorded as
        `config.python.optimizer`; its constants are not known, nor its learning rate.
      train: pairs to train on, instead of `config.data.train`: (source, target) each,
        or mappings such as the rows of Hugging Face's `datasets` and the examples of
        TFDS, `{"en": …, "de": …}` with the source first; of several languages the
        pairs of each direction, `{"en-de": pairs, "de-en": others}`. They are read
        once, and stored as text beside the token caches, from where the command line
        can resume the run. The same call resumes it only with the same pairs.
      dev: the same of `config.data.dev`.
      callbacks: functions that are called with each record of metrics.jsonl of the
        kinds "train" and "eval", before it gets the time, and with the `TrainState` of
        its step: `callback(record, state)`. They are called on every process, between
        two steps, whose time they do not count as. The state's arrays are on the
        devices, and the next step reuses their memory: keep copies, as `jax.device_get`
        makes. An exception of a callback ends the run as Ctrl-C does: the step is
        saved, and the exception raised.
      log: stream for progress of this process, or the first; None means stderr.
      devices: to train on; None means all.

    Returns:
      The model of the best checkpoint, as `t2t_jax.load(workdir)` returns it.

    Raises:
      ConfigError: the configuration breaks a rule, or is not that of the run.
      DataError: text, vocabulary or a checkpoint is not valid.
      InputMissingError: a file does not exist.
      OutputError: the workdir cannot be written, or is in use by another process.
      TypeError: an argument has another type.
      UserError: the base class of these.
      KeyboardInterrupt: Ctrl-C; the same call resumes the run.

    Example:
      `config = t2t_jax.load_config("phrasebook")`, `config.steps = 200`,
      `model = t2t_jax.train(config, "runs/mine")`, `model.translate(["A dog barks."])`.
      With pairs, and its records elsewhere: `t2t_jax.train(config, "runs/own",
      train=[("A dog.", "Ein Hund.")], callbacks=[lambda record, state: print(record)])`
    """
    directory = Workdir(as_directory(workdir, caller="train"))
    _require_stream(log)
    called = _require_callbacks(callbacks)
    directory.require_run()
    enable_cache_in_process()
    processes = current_processes()
    disable_cache_on_multiprocess_cpu(processes.count)
    parsed, overrides = _resolve_config(config, directory, module, optimizer)
    with ExitStack() as held:
        if quiet:
            log = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
        with failing_together(processes, "read the pairs"):
            show = partial(print_line, stream=log) if processes.is_first else _drop
            parsed = _with_pairs(parsed, {"train": train, "dev": dev}, log=show)
        own = {"module": module, "optimizer": optimizer, "callbacks": called}
        _train(parsed, directory, overrides, processes, log, devices=devices, **own)
    from t2t_jax.run.inference.load import load, shared_checkpoint

    step = shared_checkpoint(processes, directory.path, name="the model")
    return load(directory.path, checkpoint=step, devices=devices, module=module)


def train_prepared(
    config: Config,
    workdir: Workdir,
    text: PreparedData,
    console: Console,
    processes: Processes,
    *,
    stop: StopRequest,
    **parts: Any,
) -> RunProgress:
    """Trains a run that is opened, and writes its report.

    Args:
      stop: of a single process; several stop after the same step.
      parts: more attributes of `Trainer`.

    Returns:
      The progress, which is incomplete only after a request to stop.
    """
    from t2t_jax.report.run_page import ReportWriter
    from t2t_jax.run.trainer import Trainer

    count = processes.count
    parts["write_report"] = ReportWriter(workdir, log=console.log, processes=count)
    trainer = Trainer(config, workdir, text, console, processes, **parts)
    return trainer.train(stop if count == 1 else SharedStopRequest())


def _train(
    config: Config,
    workdir: Workdir,
    overrides: dict[str, Any],
    processes: Processes,
    log: TextIO | None,
    *,
    devices: Sequence[jax.Device] | None,
    **own: Any,
) -> None:
    """Trains to the end; raises a KeyboardInterrupt after a request to stop."""
    with open_shared_run(
        config,
        workdir=workdir,
        overrides=overrides,
        processes=processes,
        stream=log,
        devices=devices,
    ) as (text, console):
        if text is None:
            return
        parts = {"devices": devices, "owns_process": False, **own}
        stop = InterruptRequest(console.log)
        made = train_prepared(
            config, workdir, text, console, processes, stop=stop, **parts
        )
        if not made.completes(config.steps, patience=config.evaluation.patience):
            raise KeyboardInterrupt(
                f"Stopped at step {made.step:,}, which is saved. The same call resumes."
            )


def _with_pairs(config: Config, pairs: Mapping[str, Pairs | None], log: Log) -> Config:
    """Replaces the corpora of a configuration by pairs of the arguments, if given."""
    specs: dict[str, Any] = {
        name: open_pairs(given, config=config.data, name=name, log=log).spec
        for name, given in pairs.items()
        if given is not None
    }
    return replace(config, data=replace(config.data, **specs))


def _drop(text: str) -> None:
    """Logs nothing: on other processes than the first."""


def _resolve_config(
    config: ConfigLike | None, workdir: Workdir, module: Any, optimizer: Any
) -> tuple[Config, dict[str, Any]]:
    """Returns the configuration, and the overrides to save with it."""
    saved = workdir.read_config() if workdir.has_config else None
    if config is not None:
        parsed = with_resolved_values(_parse(config, saved=saved), saved=saved)
    elif saved is not None:
        parsed = saved
    else:
        advice = "Pass a config to start one."
        raise InputMissingError(f"{workdir.path} holds no run to resume. {advice}")
    parsed = _with_own(parsed, module, optimizer)
    if saved is None:
        return parsed, {}
    require_resumable(saved, parsed, workdir=workdir.path)
    # Keys set by earlier command lines now have the values of this configuration.
    values = dict(flatten(to_dict(parsed)))
    return parsed, {key: values[key] for key in workdir.read_overrides()}


def _with_own(config: Config, module: Any, optimizer: Any) -> Config:
    """Checks a module and an optimizer of the user, and records their names."""
    if module is None and optimizer is None:
        return replace(config, python=PythonConfig())
    from t2t_jax.model.architectures import make_module, module_name
    from t2t_jax.training.loss import check_module
    from t2t_jax.training.optimizer import optimizer_name

    if callable(optimizer) and config.optimizer.name == "schedule_free":
        raise ConfigError(
            "optimizer.name=schedule_free takes no schedule, and train was given one. "
            "Change config.optimizer.name, or pass an optimizer."
        )
    used = make_module(config.network) if module is None else module
    params = check_module(used, config.training, vocab_size=config.vocabulary.size)
    own = PythonConfig()
    if module is not None:
        own = replace(own, module=module_name(module))
        if isinstance(getattr(module, "config", None), TransformerConfig):
            config = replace(config, architecture="transformer", model=module.config)
    if optimizer is not None:
        own = replace(own, optimizer=optimizer_name(optimizer, params))
    return replace(config, python=own)


def _parse(config: ConfigLike, *, saved: Config | None) -> Config:
    if isinstance(config, Config):
        return config
    if isinstance(config, str | Path):
        config = load_config(config)
    if isinstance(config, config_dict.ConfigDict):
        config = config.to_dict()
    if not isinstance(config, Mapping):
        takes = "train takes a config that is a ConfigDict, a mapping, a Config or the "
        takes += "name of a config file"
        raise wrong_type(takes, config, 'Pass t2t_jax.load_config("phrasebook").')
    return parse(adopt_model(config, saved=saved))


def _require_stream(log: Any) -> None:
    methods = (getattr(log, name, None) for name in ("write", "flush", "isatty"))
    if log is not None and not all(map(callable, methods)):
        takes = "train takes a log that is None or an open text file"
        raise wrong_type(takes, log, 'Pass sys.stderr, or open("train.log", "w").')


def _require_callbacks(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    found = tuple(callbacks) if isinstance(callbacks, Iterable) else (callbacks,)
    if wrong := [one for one in found if not callable(one)]:
        takes = "train takes callbacks that are called with a record and the state"
        raise wrong_type(takes, wrong[0], "Pass functions, such as [print].")
    return found
