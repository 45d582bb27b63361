"""Opens a run: locks its workdir, reads its text, checks what may not change."""

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
      owner: what the lock of the workdir says: which process holds it since when.
      text: of the run; None if the run is complete.
    """

    owner: str
    text: PreparedData | None


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
      workdir: of the run; created if it does not exist.
      overrides: the keys that were set on the command line, to be kept.
      stream: where the progress of encoding is shown; None means stderr.
      distributed: whether several processes train together.

    Yields:
      The run. Text and configuration are checked before JAX is imported, unless the
      mesh has to be checked too.

    Raises:
      UserError: text, configuration or workdir are not valid.
    """
    if distributed or config.mesh != MeshConfig():
        from t2t_jax.sharding.mesh import make_mesh

        # Before text is prepared for long.
        make_mesh(config=config.mesh)
    with workdir.begun() as owner:
        require_unchanged(workdir, config)
        newest = _newest_step(workdir, config)
        text = None
        if newest >= config.steps:
            workdir.read_vocabularies(config.vocabulary)  # A model is of no use alone.
            console.log(
                f"This run is complete: {workdir.path} holds step {newest:,}. "
                "Set config.steps above that to train further."
            )
        else:
            text = prepare_data(config, workdir=workdir, say=console.log, stream=stream)
            if not config.checkpoint.is_periodic:
                console.log(
                    "No periodic checkpoints (checkpoint.every_steps, every_minutes "
                    "and every_epochs are 0): a crash or kill -9 costs all steps since "
                    "the last best or stopped one."
                )
            if advice := size_advice(config, text.train.num_pairs):
                console.log(f"{advice} Training continues with this size.")
            # Development text that is not read now may be read again later.
            known = {**workdir.read_fingerprints(), **text.fingerprints}
            workdir.write_config(config, overrides)
            workdir.write_json("fingerprints.json", known)
        yield OpenedRun(owner, text)


def _newest_step(workdir: Workdir, config: Config) -> int:
    """Finds the last step; one that ends a run counts only if it is good.

    Raises:
      DataError: its checkpoint is of another experiment than config.json.
    """
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
            if not workdir.read_fingerprints():  # lost, or a run of an older version
                workdir.write_json("fingerprints.json", meta["fingerprints"])
    except CorruptCheckpointError:
        return 0  # The run names it, and goes on from the one before.
    return newest
