"""`--mode=show_batch`: prints the text pairs of the batch of a training step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import ShowBatchOptions
from t2t_jax.errors import UserError
from t2t_jax.run.prepared_data import TextPair, open_prepared_data, read_batch
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.training.reporting.console import Console
from t2t_jax.training.reporting.metrics_writer import read_metrics

# Of the sides with BPE-dropout, whose subwords differ in each epoch.
_PIECES = ("source_subwords", "target_subwords")


def run(options: ShowBatchOptions) -> None:
    """Prints the pairs of a batch as tab-separated lines.

    Does not write to the workdir, so it can be used during training.

    Raises:
      UserError: the workdir is not a run, or its text has been removed.
    """
    config, workdir, step = options.config, options.workdir, options.step
    workdir.require_run()
    if step > config.steps:
        raise UserError(
            f"--step={step:,} is after the last step of this run, {config.steps:,}."
        )
    console = Console(config.steps, every_seconds=config.logging.every_seconds)
    text = open_prepared_data(config, workdir=workdir, log=console.log)
    configs = workdir.read_config(), config
    check_fingerprints(workdir.read_fingerprints(), text.fingerprints, configs=configs)
    records = read_metrics(workdir.path / "metrics.jsonl")
    batch = read_batch(text, step, records=records, log=console.log)
    position = batch.position
    console.log(
        f"Step {step:,} reads batch {position.batch} of epoch {position.epoch}: "
        f"{len(batch.pairs):,} pairs in {batch.num_rows:,} rows."
    )
    with open_output("-") as out:
        write_lines(out, _table(batch.pairs, config.data.bpe_dropout))


def _table(pairs: Sequence[TextPair], dropout: tuple[float, float]) -> Iterator[str]:
    names = ["source", "target", *compress(_PIECES, dropout)]
    yield "\t".join(["corpus", "line", *names])
    for pair in pairs:
        texts = (getattr(pair, name) for name in names)
        cells = (pair.location.corpus, str(pair.location.line), *texts)
        yield "\t".join(cell.replace("\t", " ") for cell in cells)
