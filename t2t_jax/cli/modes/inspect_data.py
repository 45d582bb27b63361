"""`--mode=inspect_data`: ranks the pairs of a corpus by a trained model's loss."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.views import InspectDataOptions
from t2t_jax.cli.translation.progress import start_progress
from t2t_jax.data.corpora.base import Corpus
from t2t_jax.data.corpora.mixture import SliceCorpus, parts_of
from t2t_jax.data.corpora.open import open_corpus, train_and_dev
from t2t_jax.data.corpora.text_files import TextCorpus, TsvCorpus
from t2t_jax.data.files.progress_bar import ProgressLabels
from t2t_jax.errors import ConfigError, UserError

if TYPE_CHECKING:
    from t2t_jax.inspection.report import Report

_SIDES = ("source", "target")


def run(options: InspectDataOptions) -> int:
    """Prints a summary; writes the table or page, and the filtered corpus; returns 0.

    Raises:
      UserError: the workdir, its text or a flag is invalid; before JAX is imported.
    """
    options.workdir.require()
    if options.to and Path(options.to).suffix not in (".tsv", ".html"):
        raise UserError(
            f"--to={options.to} must end in .tsv, for a table of all pairs, or in "
            ".html, for a page. Change --to."
        )
    corpus = _open(options)
    total = corpus.num_pairs()
    if not total:
        raise UserError(f"{corpus.spec} has no pairs. Choose another --split.")
    with ExitStack() as stack:
        outputs = _open_outputs(options, stack, inputs=_files_of(corpus))
        from t2t_jax.inference.load import load
        from t2t_jax.inspection.inspector import inspect, select
        from t2t_jax.inspection.report import Locator, Report

        model = load(
            options.workdir.path,
            checkpoint=options.checkpoint,
            decoding=options.config.decoding,
        )
        number = min(options.lines or total, total)
        with start_progress(ProgressLabels("scored", "pairs"), number) as progress:
            found = inspect(
                select(corpus, total=total, most=options.lines),
                scorer=model.scorer(),
                max_length=options.config.data.max_length,
                seed=options.config.seed,
                advance=progress.advance,
            )
        with closing(found.pairs):
            report = Report(corpus.spec, total, found, Locator(corpus))
            _write(options, outputs, report)
    return 0


def _open(options: InspectDataOptions) -> Corpus:
    """Opens the training or the development corpus of the run.

    Raises:
      UserError: there is none, or its text has been removed.
    """
    data, key = options.config.data, "data.train"
    spec = train_and_dev(data)[options.split == "dev"]
    if options.split == "dev":
        if not spec:
            raise ConfigError(
                "--split=dev needs development text, and data.dev is empty. Set "
                "config.data.dev, or choose --split=train."
            )
        key = "data.dev" if data.dev else key
    return open_corpus(spec, key=key, joiner=data.subword_joiner)


def _files_of(corpus: Corpus) -> list[str]:
    """Lists the files that a corpus is read from, which must not be overwritten."""
    files: list[Path] = []
    for part, _ in parts_of(corpus):
        while isinstance(part, SliceCorpus):
            part = part.base
        if isinstance(part, TextCorpus):
            files += [part.source, part.target]
        elif isinstance(part, TsvCorpus):
            files.append(part.path)
    return list(map(str, files))


class _Outputs(NamedTuple):
    """Opened files; they appear when all are complete.

    Attributes:
      report: of `--to`; None without it.
      sides: of the filtered corpus, source and target; () without it.
      paths: of `sides`.
    """

    report: BinaryIO | None
    sides: tuple[BinaryIO, ...]
    paths: tuple[str, ...]


def _open_outputs(
    options: InspectDataOptions, stack: ExitStack, *, inputs: Sequence[str]
) -> _Outputs:
    """Opens the files before the work begins, so that a wrong path fails early."""
    open_file = partial(open_output, flag="to", inputs=inputs)
    if not options.to:
        return _Outputs(None, (), ())
    report = stack.enter_context(open_file(options.to))
    paths: tuple[str, ...] = ()
    if options.drop_worst:
        stem = str(Path(options.to).with_suffix(""))
        paths = tuple(f"{stem}.kept.{side}.txt" for side in _SIDES)
    sides = tuple(stack.enter_context(open_file(path)) for path in paths)
    return _Outputs(report, sides, paths)


def _write(options: InspectDataOptions, outputs: _Outputs, report: Report) -> None:
    """Writes the files and prints the summary."""
    if outputs.report is not None:
        is_page = options.to.endswith(".html")
        write_lines(outputs.report, [report.page()] if is_page else report.table())
    from t2t_jax.inspection.report import dropped_summary, kept_lines

    lines = list(report.summary())
    if outputs.sides:
        found = report.found
        dropped = found.worst(options.drop_worst)
        for side, out in enumerate(outputs.sides):
            write_lines(out, kept_lines(found, dropped, side))
        lines += dropped_summary(found, dropped)
        lines.append(
            f"  to train on it: --config.data.train=text:{','.join(outputs.paths)}"
        )
    with open_output("-") as out:
        write_lines(out, lines)
