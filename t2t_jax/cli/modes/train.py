"""`--mode=train`: trains a model, or resumes the run in the workdir."""

from __future__ import annotations

import shlex

from t2t_jax.api import train_prepared
from t2t_jax.cli.console.stderr import open_log
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import TrainOptions
from t2t_jax.config import Config
from t2t_jax.data.corpora.open import split_directions, split_spec
from t2t_jax.errors import StoppedError
from t2t_jax.run.prepared_data import PreparedData
from t2t_jax.run.start import open_shared_run, require_configured
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.stopping import StopRequest


def run(options: TrainOptions) -> int:
    """Trains to the configured step; returns 0, or 75 after a signal.

    A new run prepares its text before it imports JAX, so that errors appear early.

    Raises:
      UserError: text, configuration or workdir are invalid.
    """
    workdir, processes = options.workdir, options.processes
    workdir.require_run()
    require_configured(options.config)
    with open_shared_run(
        options.config,
        workdir=workdir,
        overrides=options.overrides,
        processes=processes,
        open_log=open_log,
    ) as (text, console):
        if text is not None:
            return _train(options, text, console)
        if processes.is_first:
            console.log(_next_commands(workdir, options.config))
        return 0


def _train(options: TrainOptions, text: PreparedData, console: Console) -> int:
    from t2t_jax.run.trainer import best_score_of, is_complete

    workdir, config, stop = options.workdir, options.config, StopRequest()
    processes = options.processes
    progress = train_prepared(config, workdir, text, console, processes, stop=stop)
    if not is_complete(config, progress):
        console.log(
            f"Stopped at step {progress.step:,} of {config.steps:,}. Rerun to resume."
        )
        return StoppedError.exit_code
    best, name = progress.best_score, best_score_of(config).upper()
    scored = f", best development {name} {best:.2f}" if best >= 0 else ""
    early = (
        f" of {config.steps:,}, as {progress.stale_evaluations:,} evaluations in a row "
        "were not better (evaluation.patience)"
    ) * (progress.step < config.steps)
    steps = f"{progress.step:,} step{'s' * (progress.step != 1)}"
    console.log(f"Done: {steps}{early}{scored}.\n{_next_commands(workdir, config)}")
    return 0


def _next_commands(workdir: Workdir, config: Config) -> str:
    """Returns example commands for a trained model."""
    flags = f"--workdir={shlex.quote(str(workdir.path))}"
    named = [split_directions(part)[1] for part in split_spec(config.data.train)]
    if directions := [one for part in named for one in part]:
        vocabulary = workdir.read_vocabularies(config.vocabulary).source
        source, target = directions[0]
        if vocabulary.reads_source:
            flags += f" --source_language={source}"
        if len(vocabulary.tags) > 1:
            flags += f" --target_language={target}"
    return (
        f"  translate:  {shlex.join(command_of('translate'))} {flags} < in.txt\n"
        f"  score:      {shlex.join(command_of('evaluate'))} {flags} "
        "--source=SENTENCES --reference=TRANSLATIONS"
    )
