"""Opens a run: locks its workdir, prepares its text, checks it against the config."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from t2t_jax.checkpointing.step_dirs import StepDirs
from t2t_jax.config import Config, flatten, parse, to_dict
from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.devices.distributed.processes import Processes, failing_together
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible
from t2t_jax.run.estimates import size_advice
from t2t_jax.run.prepared_data import PreparedData, open_prepared_data, prepare_data
from t2t_jax.run.resume_rules import (
    differences,
    require_own_checkpoint,
    require_resumable,
)
from t2t_jax.run.text import with_absolute_text
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.config import PythonConfig
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import read_metrics

if TYPE_CHECKING:
    import jax

# May differ between hosts: paths of the same text, and how it is encoded.
_HOST_KEYS = ("data.train", "data.dev", "data.cache_dir", "data.workers")
_OPEN_LOG = partial(Path.open, mode="a", encoding="utf-8", buffering=1)


def require_configured(config: Config) -> None:
    """Raises a ConfigError if a run has a part that only a program has."""
    for name, value in asdict(config.python).items():
        if value:
            raise ConfigError(
                f"python.{name}={value!r} is what t2t_jax.train was given, which "
                f"config.json only names. Call t2t_jax.train(None, workdir, {name}=…) "
                "to train on, and t2t_jax.load for the model."
            )


def make_console(config: Config, *, stream: TextIO | None = None) -> Console:
    """Returns the console of a run, on `stream` (None means stderr)."""
    every, smoothed = config.logging.every_seconds, config.training.label_smoothing > 0
    return Console(config.steps, every_seconds=every, stream=stream, smoothed=smoothed)


def require_unchanged(workdir: Workdir, config: Config) -> None:
    """Checks a workdir again after locking: another process may have started a run.

    Raises:
      UserError: the workdir holds another experiment, or an incomplete one.
    """
    workdir.require_complete()
    if workdir.has_config:
        require_resumable(workdir.read_config(), config, workdir=workdir.path)


@contextmanager
def open_shared_run(
    config: Config,
    *,
    workdir: Workdir,
    overrides: Mapping[str, Any],
    processes: Processes,
    stream: TextIO | None = None,
    open_log: Callable[[Path], TextIO] = _OPEN_LOG,
    devices: Sequence[jax.Device] | None = None,
) -> Iterator[tuple[PreparedData | None, Console]]:
    """Opens a run on every process: process 0 prepares the text, the others join it.

    Process 0 locks the workdir while the run is open. Text and configuration are
    checked before JAX is imported, unless the mesh or `training.frozen` has to be
    checked too.

    Collective: call on every process. There is no deadline, unlike in training: another
    host may have to encode the text again.

    Args:
      workdir: created if it does not exist.
      overrides: the keys set on the command line, to be saved.
      stream: gets the log of process 0; None means stderr.
      open_log: opens the log of another process.
      devices: to train on; None means all.

    Yields:
      The text, or None if the run is complete; and the console of this process.

    Raises:
      UserError: text, configuration or workdir are not valid; or another process cannot
        open the run.
    """
    console, text, index = make_console(config, stream=stream), None, processes.index
    with ExitStack() as held:
        with failing_together(processes, "open the run"):
            if processes.is_first:
                # Before the text, which takes longer.
                if processes.count > 1 or config.mesh != MeshConfig():
                    from t2t_jax.devices.sharding.mesh import make_mesh

                    make_mesh(devices, **config.mesh.axes)
                if config.training.frozen and config.python == PythonConfig():
                    from t2t_jax.run.description.costs import state_shapes

                    state_shapes(config)  # checks that its patterns match some, not all
                owner = held.enter_context(workdir.create_locked())
                text = _prepare(config, workdir, overrides, console)
                first: Any = {"owner": owner, "config": to_dict(config)}
                first["fingerprints"] = text and text.fingerprints
                processes.publish("text", json.dumps(first))
        with failing_together(processes, "join the run"):
            if not processes.is_first:
                # Waits as long as process 0 is alive.
                first = json.loads(processes.receive("text"))
                require_same_run(first, config, workdir, index=index)
                log = held.enter_context(open_log(workdir.log_path(index)))
                console = make_console(config, stream=log)
                if first["fingerprints"] is not None:
                    text = open_prepared_data(config, workdir=workdir, log=console.log)
                    _require_same_text(first, text, index=index)
        yield text, console


def _prepare(
    config: Config, workdir: Workdir, overrides: Mapping[str, Any], console: Console
) -> PreparedData | None:
    """Prepares the text of a run whose workdir is locked; None if it is complete."""
    require_unchanged(workdir, config)
    complete = _complete_text(workdir, config)
    # Other text is compared with that of the run.
    if complete and _names_own_text(workdir, config):
        workdir.read_vocabularies(config.vocabulary)  # Checks them.
        console.log(complete)
        return None
    text = prepare_data(config, workdir=workdir, log=console.log, stream=console.stream)
    for warning in _warnings(config, text.train.num_pairs):
        console.log(warning)
    # Keeps that of development text if evaluation is off now.
    known = {**workdir.read_fingerprints(), **text.fingerprints}
    stored = with_absolute_text(config)
    values = dict(flatten(to_dict(stored)))
    workdir.write_config(stored, {key: values[key] for key in overrides})
    workdir.write_json("fingerprints.json", known)
    return text


def require_same_run(
    first: Mapping[str, Any],
    config: Config,
    workdir: Workdir,
    *,
    index: int,
    seconds: float = SHARED_FS_TIMEOUT,
) -> None:
    """Checks that process `index` has the configuration and workdir of process 0.

    Args:
      first: what process 0 has published: its `config`, as nested dicts, and `owner`,
        its entry in the lock file.
      workdir: of this process.
      seconds: timeout, since network file systems show changes late.

    Raises:
      ConfigError: the configuration differs; one message for each key.
      InputMissingError: the lock of process 0 does not appear in the workdir.
    """
    if different := [
        f"Process {index} was started with {key}={own!r}, and process 0 with {its!r}. "
        "Use the same configuration on all processes."
        for key, its, own in differences(parse(first["config"]), config)
        if key not in _HOST_KEYS
    ]:
        raise ConfigError(different)
    owner = first["owner"]
    if not wait_until_visible(lambda: workdir.owner() == owner, seconds=seconds):
        raise InputMissingError(
            f"{workdir.path} must be on a file system that all processes share: "
            f"process {index} does not see that of process 0. Pass another workdir."
        )


def _require_same_text(
    first: Mapping[str, Any], text: PreparedData, *, index: int
) -> None:
    """Checks that process `index` has opened the text of process 0."""
    own, its = text.fingerprints, first["fingerprints"]
    if different := [name for name in its if own.get(name) != its[name]]:
        raise DataError(
            f"Process {index} has other content than process 0 in: "
            f"{', '.join(different)}.\nPass the same text to all processes."
        )


def _warnings(config: Config, pairs: int) -> Iterator[str]:
    """Yields what a user should know before so many pairs are trained on."""
    if not config.checkpoint.is_periodic:
        yield (
            "No periodic checkpoints (checkpoint.every_steps, every_minutes and "
            "every_epochs are 0): a crash costs all steps since the last best or "
            "stopped one."
        )
    has_schedule = not config.python.optimizer
    if has_schedule and config.steps <= (warmup := config.optimizer.warmup_steps):
        yield (
            f"warning: steps={config.steps:,} is not above optimizer.warmup_steps="
            f"{warmup:,}: the learning rate never reaches its peak. Raise "
            "config.steps, or lower config.optimizer.warmup_steps."
        )
    steps, end = config.steps, config.optimizer.decay_steps
    if has_schedule and config.optimizer.decays and steps != end:
        what = "stays at its end from there on" if steps > end else "never reaches it"
        yield (
            f"warning: optimizer.schedule={config.optimizer.schedule} ends at "
            f"optimizer.decay_steps={end:,}, and steps={steps:,}: the rate {what}."
        )
    if advice := size_advice(config, pairs):
        yield f"{advice} Training continues with this size."


def _names_own_text(workdir: Workdir, config: Config) -> bool:
    """Returns whether a configuration names the corpora that a run began with."""
    before, now = map(with_absolute_text, (workdir.read_config(), config))
    return train_and_dev(before.data) == train_and_dev(now.data)


def _complete_text(workdir: Workdir, config: Config) -> str:
    """Describes the end of a complete run; "" if it is not, or is corrupt there."""
    if not (newest := max(StepDirs(workdir.checkpoints).steps(), default=0)):
        return ""
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
    from t2t_jax.checkpointing.reader import CheckpointReader

    checkpoints = CheckpointReader(workdir.checkpoints)
    try:
        meta = checkpoints.meta(newest)
        if complete := _end_of(meta, config):
            checkpoints.verify(newest)
            records = read_metrics(workdir.path / "metrics.jsonl")
            if not any(record["kind"] == "final" for record in records):
                complete = ""
        require_own_checkpoint(workdir.path, config, step=newest, meta=meta)
        if not workdir.read_fingerprints():  # Lost.
            workdir.write_json("fingerprints.json", meta["fingerprints"])
    except CorruptCheckpointError:
        return ""  # `restore_latest_valid` reports it.
    return complete and f"This run is complete: {workdir.path} {complete}"


def _end_of(meta: Mapping[str, Any], config: Config) -> str:
    """Describes why training ended at a checkpoint; "" if it has not."""
    progress, patience = meta.get("progress", {}), config.evaluation.patience
    if progress.get("pending"):
        return ""
    if (step := meta["step"]) >= config.steps:
        return f"holds step {step:,}. Set config.steps above that to train further."
    if 0 < patience <= progress.get("stale_evaluations", 0):
        return (
            f"ended at step {step:,} of {config.steps:,}, after {patience:,} "
            "evaluations without a better development BLEU. Raise "
            "config.evaluation.patience to train further."
        )
    return ""
