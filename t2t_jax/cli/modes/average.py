"""`--mode=average`: averages checkpoints into a model directory.

With `--sliding`, averages and scores every window of consecutive checkpoints.

Paper: §6.1.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import AverageOptions
from t2t_jax.cli.translation.progress import TRANSLATING, start_progress
from t2t_jax.data.corpora.base import Corpus
from t2t_jax.data.corpora.open import open_corpus, train_and_dev
from t2t_jax.data.corpora.text_files import TextCorpus
from t2t_jax.data.files.lines import require_files
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.checkpointing.averaging import Selection
    from t2t_jax.inference.average import CheckpointAverager

_HEADER = ("steps", "first", "newest", "average_bleu", "newest_bleu", "gaps")


class _Text(NamedTuple):
    """The pairs to translate and score, and their corpus."""

    spec: str
    sources: tuple[str, ...]
    references: tuple[str, ...]


class _WindowScore(NamedTuple):
    """A window with the BLEU of its average and of its newest checkpoint."""

    window: Selection
    average_bleu: float
    newest_bleu: float
    signature: str

    def columns(self) -> list[str]:
        """Returns the human-readable row, in the order of `_HEADER`."""
        steps = self.window.steps
        bleu = [f"{score:.2f}" for score in (self.average_bleu, self.newest_bleu)]
        ends = [str(steps[0]), str(steps[-1])]
        return [",".join(map(str, steps)), *ends, *bleu, str(self.window.spacing)]

    def record(self) -> dict[str, Any]:
        """Returns the machine-readable row, unrounded."""
        steps, spacing, faults = self.window
        return {
            "steps": list(steps),
            "first": steps[0],
            "newest": steps[-1],
            "average_bleu": self.average_bleu,
            "newest_bleu": self.newest_bleu,
            "unit": spacing.unit,
            "gaps": list(spacing.gaps),
            "forced": bool(faults),
        }


def run(options: AverageOptions) -> int:
    """Averages checkpoints of the workdir into `options.to`, or scores windows.

    Raises:
      UserError: options, workdir or text are invalid.
    """
    options.workdir.require()
    _check_options(options)
    to = Path(options.to)
    steps = options.average_steps
    from t2t_jax.inference.average import average_checkpoints
    from t2t_jax.inference.model_dir import check_new_dir

    if options.sliding:
        if options.to:
            check_new_dir(options.workdir, to)
        steps = _slide(options)
        if not options.to:
            return 0
    steps = average_checkpoints(
        options.workdir,
        to=to,
        last=options.last,
        steps=steps,
        force=options.force,
        trained=options.trained,
    )
    log(
        f"Averaged the checkpoints {', '.join(f'{step:,}' for step in steps)} into "
        f"{options.to}. Use it with --workdir={options.to}."
    )
    return 0


def _check_options(options: AverageOptions) -> None:
    """Raises all conflicts of options at once."""
    problems = ErrorCollector()
    text = [name for name in ("source", "reference") if getattr(options, name)]
    if options.sliding:
        problems.check(
            not options.average_steps,
            "--sliding and --average_steps are mutually exclusive. Pass one of them.",
        )
        problems.check(
            len(text) != 1,
            f"--{''.join(text)} requires the other of --source and --reference. Pass "
            "both, or neither for the development set.",
        )
    else:
        problems.check(
            not text,
            f"--{' and --'.join(text)} {'require' if len(text) > 1 else 'requires'} "
            "--sliding. Pass it, or leave them out.",
        )
    problems.raise_if_any(UserError)


def _slide(options: AverageOptions) -> tuple[int, ...]:
    """Scores all windows, writes the results, and returns the steps of the best."""
    text = _read(options)
    from t2t_jax.inference.average import CheckpointAverager

    averager = CheckpointAverager(options.workdir, trained=options.trained)
    windows = _windows(averager, options)
    folder = Workdir(options.workdir.path / "averages")
    folder.create()
    rows: list[_WindowScore] = []
    print(*_HEADER, sep="\t", flush=True)
    for row in _scores(averager, windows, text=text, options=options):
        print(*row.columns(), sep="\t", flush=True)
        rows.append(row)
    best = max(rows, key=lambda row: (row.average_bleu, row.window.steps[-1]))
    _write(folder, rows, best=best, text=text, options=options)
    steps = best.window.steps
    log(
        f"Best: the average of {', '.join(map(str, steps))} with BLEU "
        f"{best.average_bleu:.2f}; {steps[-1]} alone has {best.newest_bleu:.2f}."
    )
    if not options.to:
        to = folder.path / f"last={len(steps)}_step={steps[-1]}"
        log(f"To write it: {_command(options, best.window, to=to)}")
    return steps


def _read(options: AverageOptions) -> _Text:
    """Reads the given pairs, or those of the development set scored in training."""
    corpus: Corpus
    joiner = options.config.data.subword_joiner
    if options.source:
        source, target = Path(options.source), Path(options.reference)
        require_files(source, target, change="--source or --reference")
        spec = f"text:{options.source},{options.reference}"
        corpus, most = TextCorpus(spec, source, target, joiner), 0
    else:
        _, spec = train_and_dev(options.config.data)
        corpus = open_corpus(spec, key="data.dev", joiner=joiner)
        most = options.config.evaluation.bleu_sentences
    sources, references = zip(*list(corpus)[: most or None], strict=True)
    return _Text(corpus.spec, sources, references)


def _windows(averager: CheckpointAverager, options: AverageOptions) -> list[Selection]:
    """Lists the windows to score, and logs which are skipped."""
    windows = averager.windows(last=options.last)
    kept = [window for window in windows if options.force or not window.faults]
    if not kept:
        windows[-1].check_even()
    for steps, _, faults in windows:
        if faults and not options.force:
            skipped = f"{', '.join(map(str, steps))}: {'; '.join(faults)}"
            log(f"Skipped {skipped}. Pass --force to include it.")
    if len(windows) == 1:
        log(f"All {len(windows[0].steps)} checkpoints form one window; see --last.")
    return kept


def _scores(
    averager: CheckpointAverager,
    windows: Sequence[Selection],
    *,
    text: _Text,
    options: AverageOptions,
) -> Iterator[_WindowScore]:
    """Scores each window."""
    from t2t_jax.evaluation.bleu import BleuSettings, corpus_scores

    bleu = BleuSettings(options.config.evaluation.tokenize)

    def score(steps: Sequence[int]) -> dict[str, Any]:
        model = averager.model(steps, decoding=options.config.decoding)
        with start_progress(TRANSLATING, len(text.sources)) as progress:
            hypotheses = [""] * len(text.sources)
            for number, found in model.translator().iter_translations(text.sources):
                hypotheses[number] = found.text
                progress.advance(1)
        return corpus_scores(hypotheses, text.references, metrics=("bleu",), bleu=bleu)

    for number, window in enumerate(windows, start=1):
        log(
            f"Window {number} of {len(windows)}: {len(text.sources):,} lines by the "
            f"average of {', '.join(map(str, window.steps))} and by "
            f"{window.steps[-1]} …"
        )
        mean, newest = score(window.steps), score(window.steps[-1:])
        yield _WindowScore(window, mean["bleu"], newest["bleu"], mean["bleu_signature"])


def _write(
    folder: Workdir,
    rows: Sequence[_WindowScore],
    *,
    best: _WindowScore,
    text: _Text,
    options: AverageOptions,
) -> None:
    """Writes the results as JSON, and as a plot if Matplotlib is installed."""
    from t2t_jax.evaluation.plots.figure import render_png, require_matplotlib

    last = len(best.window.steps)
    record = {
        "last": last,
        "text": text.spec,
        "sentences": len(text.sources),
        "bleu_signature": best.signature,
        "decoding": dataclasses.asdict(options.config.decoding),
        "best": list(best.window.steps),
        "windows": [row.record() for row in rows],
    }
    folder.write_json(f"last={last}.json", record)
    log(f"Wrote {folder.path / f'last={last}.json'}.")
    try:
        require_matplotlib()
    except UserError as error:
        log(f"No plot was written. {error}")
        return
    from t2t_jax.evaluation.plots.curves import plot_averages

    figure = plot_averages(
        [row.window.steps[-1] for row in rows],
        averages=[row.average_bleu for row in rows],
        singles=[row.newest_bleu for row in rows],
        last=last,
    )
    atomic_write(folder.path / f"last={last}.png", render_png(figure))
    log(f"Wrote {folder.path / f'last={last}.png'}.")


def _command(options: AverageOptions, window: Selection, *, to: Path) -> str:
    """Returns the command line that writes the average of a window."""
    steps = ",".join(map(str, window.steps))
    workdir = f"--workdir={options.workdir.path}"
    flags = [workdir, f"--average_steps={steps}", f"--to={to}"]
    flags += ["--force"] * bool(window.faults) + ["--trained"] * options.trained
    return shlex.join([*command_of("average"), *flags])
