"""`--mode=inspect_data`: ranks the pairs of a corpus by a trained model's loss."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.evaluation.corpus import load_model
from t2t_jax.cli.flags.options import InspectDataOptions
from t2t_jax.cli.translation.progress import start_progress
from t2t_jax.data.corpora.corpus import (
    Corpus,
    directions_of,
    directions_of_pairs,
    locator,
)
from t2t_jax.data.corpora.open import files_of, open_corpus, train_and_dev
from t2t_jax.data.files.progress_bar import ProgressLabels
from t2t_jax.errors import ConfigError, UserError

if TYPE_CHECKING:
    from t2t_jax.report.inspection.report import Report


def run(options: InspectDataOptions) -> None:
    """Prints a summary; writes the table or page, and the filtered corpus.

    Raises:
      UserError: the workdir, its text or a flag is invalid; before JAX is imported.
    """
    if options.to and Path(options.to).suffix not in (".tsv", ".html"):
        raise UserError(
            f"--to={options.to} must end in .tsv (pairs) or .html (a page). "
            "Change --to."
        )
    corpus = _open(options)
    total = corpus.num_pairs()
    if not total:
        raise UserError(f"{corpus.spec} has no pairs. Choose another --split.")
    directions = directions_of_pairs(corpus) if directions_of(corpus) else []
    names = list(dict.fromkeys(directions)) or [""]
    with ExitStack() as stack:
        inputs = [str(path) for path in files_of(corpus)]
        outputs = _open_outputs(options, names, stack, inputs)
        from t2t_jax.report.inspection.inspector import inspect, select
        from t2t_jax.report.inspection.report import Report

        model = load_model(options)
        number = min(options.lines or total, total)
        with start_progress(ProgressLabels("scored", "pairs"), number) as progress:
            found = inspect(
                select(corpus, total=total, most=options.lines),
                scorer=model.scorer(),
                max_length=options.config.data.max_length,
                directions=directions,
                seed=options.config.seed,
                advance=progress.advance,
            )
        with closing(found.pairs):
            report = Report(corpus.spec, total, found, locator(corpus))
            _write(options, names, outputs, report)


def _open(options: InspectDataOptions) -> Corpus:
    """Opens the training or the development corpus of the run.

    Raises:
      UserError: there is none, or its text has been removed.
    """
    data, is_dev = options.config.data, options.split == "dev"
    spec = train_and_dev(data)[is_dev]
    if is_dev and not spec:
        raise ConfigError(
            "--split=dev needs development text, and data.dev is empty. Set "
            "config.data.dev, or choose --split=train."
        )
    key = "data.dev" if is_dev and data.dev else "data.train"
    return open_corpus(spec, key=key, joiner=data.subword_joiner)


def _open_outputs(
    options: InspectDataOptions, names: list[str], stack: ExitStack, inputs: list[str]
) -> dict[str, BinaryIO]:
    """Opens the files before the work begins, so that a wrong path fails early.

    They appear when all are complete.

    Returns:
      By path: that of `--to`, and then the source and the target of the filtered
      corpus, of each direction, as far as they are asked for.
    """
    paths = [options.to] * bool(options.to)
    if options.drop_worst:
        stem = Path(options.to).with_suffix("")
        parts = [f".{name}" * bool(name) for name in names]
        sides = product(parts, ("source", "target"))
        paths += [f"{stem}.kept{part}.{side}.txt" for part, side in sides]
    opened = (open_output(path, flag="to", inputs=inputs) for path in paths)
    return dict(zip(paths, map(stack.enter_context, opened), strict=True))


def _write(
    options: InspectDataOptions,
    directions: Sequence[str],
    outputs: dict[str, BinaryIO],
    report: Report,
) -> None:
    """Writes the files and prints the summary."""
    from t2t_jax.report.inspection.report import dropped_summary, kept_lines

    if to := outputs.pop(options.to, None):
        is_page = options.to.endswith(".html")
        write_lines(to, [report.page()] if is_page else report.table())
    lines = list(report.summary())
    if outputs:
        found = report.found
        dropped = found.worst(options.drop_worst)
        parts = list(product(directions, range(2)))
        for (direction, side), out in zip(parts, outputs.values(), strict=True):
            write_lines(out, kept_lines(found, dropped, side, direction))
        lines += dropped_summary(found, dropped)
        sides = zip(*[iter(outputs)] * 2, strict=True)  # the files in twos
        spec = "++".join(
            f"text:{source},{target}" + f"#{direction}" * bool(direction)
            for direction, (source, target) in zip(directions, sides, strict=True)
        )
        lines.append(f"  to train on it: --config.data.train={spec}")
    with open_output("-") as out:
        write_lines(out, lines)
