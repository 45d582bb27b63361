"""Opens a run: locks its workdir, prepares its text, checks it against the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TextIO

from t2t_jax.config import Config, flatten, to_dict
from t2t_jax.data.corpora.splits import train_and_dev
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.errors import UserError
from t2t_jax.run.estimates import size_advice
from t2t_jax.run.prepared_data import PreparedData, prepare_data
from t2t_jax.run.resume_rules import require_own_checkpoint, require_resumable
from t2t_jax.run.text import with_absolute_text
from t2t_jax.run.workdir import Workdir
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

    Text and configuration are checked before JAX is imported, unless the mesh or
    `training.frozen` has to be checked too.

    Args:
      workdir: created if it does not exist.
      overrides: the keys set on the command line, to be saved.
      stream: gets the progress of encoding; None means stderr.

    Raises:
      UserError: text, configuration or workdir are not valid.
    """
    # Before the text, which takes longer.
    if distributed or config.mesh != MeshConfig():
        from t2t_jax.devices.sharding.mesh import make_mesh

        make_mesh(config=config.mesh)
    if config.training.frozen:
        _check_frozen(config)
    with workdir.create_locked() as owner:
        require_unchanged(workdir, config)
        complete, text = _complete_text(workdir, config), None
        # Other text is compared with that of the run.
        if complete and _names_own_text(workdir, config):
            workdir.read_vocabularies(config.vocabulary)  # Checks them.
            console.log(complete)
        else:
            text = prepare_data(config, workdir=workdir, log=console.log, stream=stream)
            for warning in _warnings(config, text.train.num_pairs):
                console.log(warning)
            # Keeps that of development text if evaluation is off now.
            known = {**workdir.read_fingerprints(), **text.fingerprints}
            stored = with_absolute_text(config)
            values = dict(flatten(to_dict(stored)))
            workdir.write_config(stored, {key: values[key] for key in overrides})
            workdir.write_json("fingerprints.json", known)
        yield OpenedRun(owner, text)


def _warnings(config: Config, pairs: int) -> Iterator[str]:
    """Yields what a user should know before so many pairs are trained on."""
    if not config.checkpoint.is_periodic:
        yield (
            "No periodic checkpoints (checkpoint.every_steps, every_minutes and "
            "every_epochs are 0): a crash or kill -9 costs all steps since the last "
            "best or stopped one."
        )
    if config.steps <= (warmup := config.optimizer.warmup_steps):
        yield (
            f"warning: steps={config.steps:,} is not above optimizer.warmup_steps="
            f"{warmup:,}: the learning rate never reaches its peak. Raise "
            "config.steps, or lower config.optimizer.warmup_steps."
        )
    if config.optimizer.decays and config.steps != config.optimizer.decay_steps:
        steps, end = config.steps, config.optimizer.decay_steps
        what = "stays at its end from there on" if steps > end else "never reaches it"
        yield (
            f"warning: optimizer.schedule={config.optimizer.schedule} ends at "
            f"optimizer.decay_steps={end:,}, and steps={steps:,}: the learning rate "
            f"{what}."
        )
    if advice := size_advice(config, pairs):
        yield f"{advice} Training continues with this size."


def _check_frozen(config: Config) -> None:
    """Checks that patterns of frozen parameters match some, and not all.

    Raises:
      ConfigError: they do not.
    """
    import jax

    from t2t_jax.model.architectures import make_module
    from t2t_jax.training.optimizer import make_optimizer
    from t2t_jax.training.state import init_state

    optimizer = make_optimizer(
        config.optimizer, d_model=config.network.d_model, frozen=config.training.frozen
    )
    init = partial(init_state, make_module(config.network), optimizer)
    jax.eval_shape(init, jax.random.key(config.seed))


def _names_own_text(workdir: Workdir, config: Config) -> bool:
    """Returns whether a configuration names the corpora that a run began with."""
    if not workdir.has_config:
        return False
    before, now = map(with_absolute_text, (workdir.read_config(), config))
    return train_and_dev(before.data) == train_and_dev(now.data)


def _complete_text(workdir: Workdir, config: Config) -> str:
    """Describes the end of a complete run; "" if it is not, or is corrupt there."""
    if not workdir.checkpoints.is_dir():
        return ""
    from t2t_jax.checkpointing.checkpoints import Checkpoints
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError

    checkpoints = Checkpoints(workdir.checkpoints)
    newest = max(checkpoints.steps(), default=0)
    if not newest:
        return ""
    try:
        meta = checkpoints.meta(newest)
        complete = _end_of(meta, config)
        if complete:
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
