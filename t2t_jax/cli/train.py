"""`--mode=train`: trains, or goes on with what the workdir holds."""

from __future__ import annotations

from t2t_jax.cli.options import Options
from t2t_jax.errors import StoppedError, UserError
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
    with workdir.locked():
        console = Console(config.steps, every_seconds=config.logging.every_seconds)
        newest = _newest_step(workdir)
        if newest >= config.steps:
            console.say(
                f"This run is complete: {workdir.path} holds step {newest:,}. "
                "Set --config.steps above that to go on."
            )
            return 0
        text = prepare_text(config, workdir=workdir, say=console.say)
        workdir.write_json("fingerprints.json", text.fingerprints)
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
    if newest and not workdir.read_fingerprints():  # a run of an older version
        before = checkpoints.meta(newest)["fingerprints"]
        workdir.write_json("fingerprints.json", before)
    checkpoints.close()
    return newest
