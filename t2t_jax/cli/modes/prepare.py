"""`--mode=prepare`: makes the text of a run ready, which training else does itself."""

from __future__ import annotations

from t2t_jax.cli.flags.options import Options
from t2t_jax.errors import UserError
from t2t_jax.run.prepared_data import REPORT, prepare_data
from t2t_jax.run.size_advice import size_advice
from t2t_jax.run.start import require_unchanged
from t2t_jax.training.reporting.console import Console


def run(options: Options) -> int:
    """Encodes the text, and tells on stderr what it is; returns 0.

    The workdir is left with vocabulary, `data.json` and `data_report.txt`, and no run
    has begun in it: training takes the vocabulary up as long as text and settings of
    the vocabulary are the same, whatever else changes.

    Raises:
      UserError: text, configuration or workdir are not what they must be.
    """
    config, workdir = options.config, options.workdir
    if workdir.is_model:
        raise UserError(
            f"--workdir={workdir.path} is a model and no run, and is not trained any "
            "further. Choose another --workdir."
        )
    console = Console(config.steps, every_seconds=config.logging.every_seconds)
    with workdir.create_locked():
        require_unchanged(workdir, config)
        text = prepare_data(config, workdir=workdir, log=console.log)
    console.log("\n" + (workdir.path / REPORT).read_text(encoding="utf-8"))
    if advice := size_advice(config, text.train.num_pairs):
        console.log(advice)
    console.log(
        f"Ready in {workdir.path}. The same command with --mode=train trains on it."
    )
    return 0
