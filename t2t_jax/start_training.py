"""Starts and resumes training runs, for Python and for the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias

from ml_collections import config_dict

from t2t_jax.arguments import as_directory
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.config_files import load_config
from t2t_jax.description.size_advice import size_advice
from t2t_jax.differences import require_own_checkpoint, require_resumable
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.parallelism.config import MeshConfig
from t2t_jax.parsing import flatten
from t2t_jax.text import Text, prepare_text
from t2t_jax.training.guard import InterruptRequest
from t2t_jax.training.records import read_metrics
from t2t_jax.training.reporting import Console
from t2t_jax.workdir import Workdir

if TYPE_CHECKING:
    import jax

    from t2t_jax.trained import Model

    ConfigLike: TypeAlias = (
        Config | config_dict.ConfigDict | Mapping[str, Any] | str | Path
    )


class OpenedRun(NamedTuple):
    """A run whose workdir is locked and whose text is prepared.

    Attributes:
      owner: what the lock of the workdir says: which process holds it since when.
      text: of the run; None if the run is complete.
    """

    owner: str
    text: Text | None


def train(
    config: ConfigLike | None,
    workdir: str | Path,
    *,
    quiet: bool = False,
    log: TextIO | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Model:
    """Trains a model, or resumes its training, and returns the trained model.

    It does what `python -m t2t_jax.main` does with the same configuration, in this
    process and on all its devices: the workdir gets the configuration, the vocabulary,
    metrics and checkpoints, and the same call resumes a run that was interrupted. A run
    that is complete is only loaded.

    Ctrl-C saves a checkpoint and raises `KeyboardInterrupt`; a second one does not wait
    for the checkpoint. No signal handler stays behind, and in a thread other than the
    main one none is installed. Nothing here ends the process; the watchdog for stuck
    runs (`config.training.step_timeout`) is off.

    Args:
      config: the experiment: a ConfigDict, as `t2t_jax.default_config()` (the paper's
        base model), `t2t_jax.load_config("phrasebook")` or the `get_config()` of a
        config file return it; or what `load_config` takes; or nested dicts, whose
        missing keys have the default; or a `Config`. None resumes the run of the
        workdir as it was configured.
      workdir: directory of the run, created if it does not exist. In that of a run only
        what may change under a run can be another, such as `config.steps`.
      quiet: whether to write no progress.
      log: where progress is written; None means stderr.
      devices: to train on; None means all.

    Returns:
      The model of the best checkpoint, as `t2t_jax.load(workdir)` returns it.

    Raises:
      ConfigError: the configuration breaks a rule, or is not that of the run.
      DataError: text, vocabulary or a checkpoint is not valid.
      InputMissingError: a file is not there.
      OutputError: the workdir cannot be written, or is in use by another process.
      UserError: the base class of these; another mistake.
      KeyboardInterrupt: Ctrl-C; the same call resumes the run.

    Example:
      `config = t2t_jax.load_config("phrasebook")`, `config.steps = 200`,
      `model = t2t_jax.train(config, "runs/mine")`, `model.translate(["A dog barks."])`.
    """
    directory = Workdir(as_directory(workdir, caller="train"))
    _require_stream(log)
    require_trainable(directory)
    _require_single_process()
    settings, overrides = _configured(config, directory)
    with ExitStack() as held:
        if quiet:
            log = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
        console = make_console(settings, stream=log)
        opened = held.enter_context(
            open_run(
                settings,
                workdir=directory,
                overrides=overrides,
                console=console,
                stream=log,
            )
        )
        if opened.text is not None:
            _train(settings, directory, opened.text, console=console, devices=devices)
    from t2t_jax.loading import load

    return load(directory.path, devices=devices)


def require_trainable(workdir: Workdir) -> None:
    """Checks that a directory is not an exported or averaged model.

    Raises:
      UserError: it is.
    """
    if workdir.is_model:
        raise UserError(
            f"{workdir.path} is a model and not a training run: it has no optimizer "
            "state. Pass the run that it was made from."
        )


def make_console(config: Config, *, stream: TextIO | None = None) -> Console:
    """Makes what shows the progress of a run.

    Args:
      config: of the run.
      stream: where it is shown; None means stderr.
    """
    return Console(
        config.steps,
        every_seconds=config.logging.every_seconds,
        stream=stream,
        smoothed=config.training.label_smoothing > 0,
    )


def require_unchanged(workdir: Workdir, config: Config) -> None:
    """Checks a workdir again once it is locked, for a run may have begun meanwhile.

    Args:
      workdir: of the run; it need not hold one yet.
      config: made from what the workdir held before.

    Raises:
      UserError: it holds another experiment, or parts of one.
    """
    workdir.require_whole()
    if workdir.has_config:
        require_resumable(workdir.read_config(), config, workdir=workdir.path)


@contextmanager
def open_run(
    config: Config,
    *,
    workdir: Workdir,
    overrides: dict[str, Any],
    console: Console,
    stream: TextIO | None = None,
    distributed: bool = False,
) -> Iterator[OpenedRun]:
    """Locks the workdir of a run and prepares its text, as long as it is open.

    Args:
      config: of the run.
      workdir: of the run; created if it does not exist.
      overrides: the keys that were set on the command line, to be kept.
      console: shows progress.
      stream: where the progress of encoding is shown; None means stderr.
      distributed: whether several processes train together.

    Yields:
      The run. Text and configuration are checked before JAX is imported, unless the
      mesh has to be checked too.

    Raises:
      UserError: text, configuration or workdir are not valid.
    """
    if distributed or config.mesh != MeshConfig():
        from t2t_jax.parallelism.mesh import make_mesh

        # Before text is prepared for long.
        make_mesh(config=config.mesh)
    with workdir.begun() as owner:
        require_unchanged(workdir, config)
        newest = _newest_step(workdir, config)
        text = None
        if newest >= config.steps:
            workdir.read_vocabularies(config.vocabulary)  # A model is of no use alone.
            console.say(
                f"This run is complete: {workdir.path} holds step {newest:,}. "
                "Set config.steps above that to train further."
            )
        else:
            text = prepare_text(config, workdir=workdir, say=console.say, stream=stream)
            if not config.checkpoint.is_periodic:
                console.say(
                    "No periodic checkpoints (checkpoint.every_steps, every_minutes "
                    "and every_epochs are 0): a crash or kill -9 costs all steps since "
                    "the last best or stopped one."
                )
            if advice := size_advice(config, text.train.num_pairs):
                console.say(f"{advice} Training continues with this size.")
            # Development text that is not read now may be read again later.
            known = {**workdir.read_fingerprints(), **text.fingerprints}
            workdir.write_config(config, overrides)
            workdir.write_json("fingerprints.json", known)
        yield OpenedRun(owner, text)


def _configured(
    config: ConfigLike | None, workdir: Workdir
) -> tuple[Config, dict[str, Any]]:
    """Returns the configuration of the run, and the keys to keep as overrides."""
    if config is None:
        if not workdir.has_config:
            raise InputMissingError(
                f"{workdir.path} holds no run to resume. Pass a config to start one."
            )
        return workdir.read_config(), workdir.read_overrides()
    wanted = _parsed(config)
    if not workdir.has_config:
        return wanted, {}
    require_resumable(workdir.read_config(), wanted, workdir=workdir.path)
    # What earlier command lines have set is what this configuration says now.
    values = dict(flatten(to_dict(wanted)))
    return wanted, {key: values[key] for key in workdir.read_overrides()}


def _parsed(config: ConfigLike) -> Config:
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
    return parse(config)


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
    text: Text,
    *,
    console: Console,
    devices: Sequence[jax.Device] | None,
) -> None:
    from t2t_jax.experiment import Run

    run = Run(
        config,
        workdir=workdir,
        text=text,
        console=console,
        devices=devices,
        owns_process=False,
    )
    progress = run.train(InterruptRequest(console.say))
    if not progress.completes(config.steps):
        raise KeyboardInterrupt(
            f"Stopped at step {progress.step:,}, which is saved. The same call resumes."
        )


def _newest_step(workdir: Workdir, config: Config) -> int:
    """Finds the last step; one that ends a run counts only if it is good.

    Raises:
      DataError: its checkpoint is of another experiment than config.json.
    """
    if not workdir.checkpoints.is_dir():
        return 0
    from t2t_jax.checkpointing.checkpoints import Checkpoints
    from t2t_jax.checkpointing.damage import DamagedError

    checkpoints = Checkpoints(workdir.checkpoints)
    newest = max(checkpoints.steps(), default=0)
    try:
        if newest >= config.steps:
            checkpoints.verify(newest)
            records = read_metrics(workdir.path / "metrics.jsonl")
            has_ended = any(record["kind"] == "final" for record in records)
            if checkpoints.meta(newest)["progress"]["pending"] or not has_ended:
                return 0
        if newest:
            meta = checkpoints.meta(newest)
            require_own_checkpoint(workdir.path, config, step=newest, meta=meta)
            if not workdir.read_fingerprints():  # lost, or a run of an older version
                workdir.write_json("fingerprints.json", meta["fingerprints"])
    except DamagedError:
        return 0  # The run names it, and goes on from the one before.
    return newest
