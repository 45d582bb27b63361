"""`--mode=train`: trains, or goes on with what the workdir holds."""

from __future__ import annotations

from t2t_jax.cli.flags import Options
from t2t_jax.errors import StoppedError
from t2t_jax.text import prepare_text
from t2t_jax.training.reporting import Console


def run(options: Options) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    The text is read and checked before JAX is imported, so that what is wrong with it
    is said at once.
    """
    config, workdir = options.config, options.workdir
    workdir.create()
    console = Console(config.steps, every_seconds=config.logging.every_seconds)
    text = prepare_text(config, workdir=workdir, say=console.say)
    workdir.write_config(config)

    from t2t_jax.experiment import Run
    from t2t_jax.training.guard import StopRequest

    with StopRequest() as stop:
        progress = Run(config, workdir=workdir, text=text, console=console).train(stop)
    return 0 if progress.step >= config.steps else StoppedError.exit_code
