"""`--mode=train`: trains, or goes on with what the workdir holds."""

from __future__ import annotations

from t2t_jax.cli.flags import Options
from t2t_jax.errors import StoppedError, UserError
from t2t_jax.text import prepare_text
from t2t_jax.training.reporting import Console


def run(options: Options) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    The text is read and checked before JAX is imported, so that what is wrong with it
    is said at once.

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
    console = Console(config.steps, every_seconds=config.logging.every_seconds)
    text = prepare_text(config, workdir=workdir, say=console.say)

    from t2t_jax.experiment import Run
    from t2t_jax.training.guard import StopRequest

    run = Run(config, workdir=workdir, text=text, console=console)
    if run.complete:
        console.say(
            f"This run is complete: {workdir.path} holds step {run.newest:,}. "
            f"Set --config.steps above that to go on."
        )
        return 0
    workdir.write_config(config, options.overrides)
    with StopRequest() as stop:
        progress = run.train(stop)
    return 0 if progress.step >= config.steps else StoppedError.exit_code
