"""Opens a run: locks its workdir, prepares its text, checks it against the config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

from t2t_jax.config import Config
from t2t_jax.errors import UserError
from t2t_jax.run.prepared_data import PreparedData, prepare_data
from t2t_jax.run.resume_rules import require_own_checkpoint, require_resumable
from t2t_jax.run.size_advice import size_advice
from t2t_jax.run.workdir import Workdir
from t2t_jax.sharding.config import MeshConfig
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import read_metrics


class OpenedRun(NamedTuple):
    """A run whose workdir is locked and whose text is prepared.

    Attributes:
      owner: the content of the lock file: process, host and time.
      text: None if the run is complete.
    """

    owner: str
    text: PreparedData | None


def require_trainable(workdir: Workdir) -> None:
    """Raises a UserError if a directory is an exported or averaged model."""
    if workdir.is_model:
        raise UserError(
            f"{workdir.path} is a model and not a training run: it has no optimizer "
            "state. Pass the run that it was made from."
        )


def make_console(config: Config, *, stream: TextIO | None = None) -> Console:
    """Returns the console of a run, on `stream` (None means stderr)."""
    return Console(
        config.steps,
        every_seconds=config.logging.every_seconds,
        stream=stream,
        smoothed=config.training.label_smoothing > 0,
    )


def require_unchanged(workdir: Workdir, config: Config) -> None:
    """Checks a workdir again after locking: another process may have started a run.

    Raises:
      UserError: the workdir holds another experiment, or an incomplete one.
    """
    workdir.require_complete()
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
    """Locks the workdir of a run while it is open, and prepares its text.

    Text and configuration are checked before JAX is imported, unless the mesh has to be
    checked too.

    Args:
      workdir: created if it does not exist.
      overrides: the keys set on the command line, to be saved.
      stream: gets the progress of encoding; None means stderr.

    Raises:
      UserError: text, configuration or workdir are not valid.
    """
    if distributed or config.mesh != MeshConfig():
        from t2t_jax.sharding.mesh import make_mesh

        # Before the text, which takes longer.
        make_mesh(config=config.mesh)
    with workdir.create_locked() as owner:
        require_unchanged(workdir, config)
        newest = _newest_step(workdir, config)
        text = None
        if newest >= config.steps:
            workdir.read_vocabularies(config.vocabulary)  # Checks them.
            console.log(
                f"This run is complete: {workdir.path} holds step {newest:,}. "
                "Set config.steps above that to train further."
            )
        else:
            text = prepare_data(config, workdir=workdir, log=console.log, stream=stream)
            if not config.checkpoint.is_periodic:
                console.log(
                    "No periodic checkpoints (checkpoint.every_steps, every_minutes "
                    "and every_epochs are 0): a crash or kill -9 costs all steps since "
                    "the last best or stopped one."
                )
            if advice := size_advice(config, text.train.num_pairs):
                console.log(f"{advice} Training continues with this size.")
            # Keeps that of development text if evaluation is off now.
            known = {**workdir.read_fingerprints(), **text.fingerprints}
            workdir.write_config(config, overrides)
            workdir.write_json("fingerprints.json", known)
        yield OpenedRun(owner, text)


def _newest_step(workdir: Workdir, config: Config) -> int:
    """Returns the latest step; 0 if it is corrupt or the run has not ended there."""
    if not workdir.checkpoints.is_dir():
        return 0
    from t2t_jax.checkpointing.checkpoints import Checkpoints
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError

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
            if not workdir.read_fingerprints():  # Lost, or a run of an older version.
                workdir.write_json("fingerprints.json", meta["fingerprints"])
    except CorruptCheckpointError:
        return 0  # `restore_latest_valid` reports it.
    return newest
