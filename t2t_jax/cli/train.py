"""`--mode=train`: trains, or goes on with what the workdir holds."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from t2t_jax.cli.options import Options
from t2t_jax.errors import OutputError, StoppedError, UserError
from t2t_jax.text import prepare_text
from t2t_jax.training.reporting import Console
from t2t_jax.workdir import Workdir


def run(options: Options) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    The text is read and checked before a new run imports JAX, so that what is wrong
    with it is said at once.

    Raises:
      UserError: text, configuration or workdir are not what they must be.
    """
    config, workdir = options.config, options.workdir
    if workdir.is_model:
        raise UserError(
            f"--workdir={workdir.path} is a model that --mode=average has written, and "
            "has no optimizer to go on with. Name the run that it comes from."
        )
    workdir.create()
    with _locked(workdir):
        console = Console(config.steps, every_seconds=config.logging.every_seconds)
        newest = _newest_step(workdir)
        if newest >= config.steps:
            console.say(
                f"This run is complete: {workdir.path} holds step {newest:,}. "
                "Set --config.steps above that to go on."
            )
            return 0
        text = prepare_text(config, workdir=workdir, say=console.say)
        workdir.write_config(config, options.overrides)

        from t2t_jax.experiment import Run
        from t2t_jax.training.guard import StopRequest

        run = Run(config, workdir=workdir, text=text, console=console)
        progress = run.train(StopRequest())
    return 0 if progress.step >= config.steps else StoppedError.exit_code


def _newest_step(workdir: Workdir) -> int:
    if not workdir.checkpoints.is_dir():
        return 0
    from t2t_jax.checkpointing.checkpoints import Checkpoints

    checkpoints = Checkpoints(workdir.checkpoints)
    newest = max(checkpoints.steps(), default=0)
    checkpoints.close()
    return newest


@contextmanager
def _locked(workdir: Workdir) -> Iterator[None]:
    """Keeps a second trainer out; the lock goes with the process, however it ends."""
    with (workdir.path / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"--workdir={workdir.path} is being trained in by another process. "
                "Wait for it, or name another --workdir."
            ) from error
        yield
