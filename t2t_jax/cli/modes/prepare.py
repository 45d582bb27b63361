"""`--mode=prepare`: prepares the text of a run without training."""

from __future__ import annotations

import shlex

from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import PrepareOptions
from t2t_jax.run.estimates import size_advice
from t2t_jax.run.prepared_data import REPORT, prepare_data
from t2t_jax.run.start import require_unchanged
from t2t_jax.training.reporting.console import Console


def run(options: PrepareOptions) -> None:
    """Trains the vocabulary, encodes the text and prints a report on stderr.

    Writes the vocabulary, `data.json` and `data_report.txt` into the workdir. Training
    reuses the vocabulary as long as text and vocabulary settings do not change.

    Raises:
      UserError: text, configuration or workdir are invalid.
    """
    config, workdir = options.config, options.workdir
    workdir.require_run()
    console = Console(config.steps, every_seconds=config.logging.every_seconds)
    with workdir.create_locked():
        require_unchanged(workdir, config)
        text = prepare_data(config, workdir=workdir, log=console.log)
    console.log("\n" + (workdir.path / REPORT).read_text(encoding="utf-8"))
    if advice := size_advice(config, text.train.num_pairs):
        console.log(advice)
    train = shlex.join(command_of("train"))
    console.log(f"Prepared {workdir.path}. To train, run {train} with the same flags.")
