"""`--mode=average`: averages checkpoints into a model directory.

With `--sliding`, averages and scores every window of consecutive checkpoints.

Paper: §6.1.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.evaluation.corpus import open_text
from t2t_jax.cli.flags.modes import command_of
from t2t_jax.cli.flags.options import AverageOptions
from t2t_jax.cli.translation.progress import TRANSLATING, start_progress
from t2t_jax.data.corpora.corpus import directions_of_pairs
from t2t_jax.errors import UserError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.checkpointing.averaging import Selection

_HEADER = ("steps", "first", "newest", "average_bleu", "newest_bleu", "gaps")


def run(options: AverageOptions) -> None:
    """Averages checkpoints of the workdir into `options.to`, or scores windows.

    Raises:
      UserError: options, workdir or text are invalid.
    """
    from t2t_jax.run.inference.average import average_checkpoints
    from t2t_jax.run.inference.model_dir import check_new_dir

    to, steps = Path(options.to), options.average_steps
    if options.sliding:
        if options.to:
            check_new_dir(options.workdir, to)
        steps = _slide(options)
        if not options.to:
            return
    last, force, trained = options.last, options.force, options.trained
    steps = average_checkpoints(
        options.workdir, to=to, last=last, steps=steps, force=force, trained=trained
    )
    log(
        f"Averaged the checkpoints {', '.join(f'{step:,}' for step in steps)} into "
        f"{options.to}. Use it with --workdir={options.to}."
    )


def _slide(options: AverageOptions) -> tuple[int, ...]:
    """Scores all windows, writes the results, and returns the steps of the best."""
    from t2t_jax.evaluation.evaluator import first_of_each

    corpus = open_text(options)
    directions = directions_of_pairs(corpus)
    lines = [(*pair, to) for pair, to in zip(corpus, directions, strict=True)]
    most = options.config.evaluation.bleu_sentences
    if most and not options.source:  # as in training
        lines = [lines[number] for number in first_of_each(directions, most)]
    windows = _windows(options)
    folder = Workdir(options.workdir.path / "averages")
    folder.create()
    records: list[dict[str, Any]] = []
    print(*_HEADER, sep="\t", flush=True)
    for number, window in enumerate(windows, start=1):
        steps, spacing, faults = window
        log(
            f"Window {number} of {len(windows)}: {len(lines):,} lines by the average "
            f"of {', '.join(map(str, steps))} and by {steps[-1]} …"
        )
        alone = window._replace(steps=steps[-1:])
        mean, newest = (_score(options, some, lines) for some in (window, alone))
        ends, scores = (steps[0], steps[-1]), (mean["bleu"], newest["bleu"])
        record = dict(zip(_HEADER, (steps, *ends, *scores), strict=False))
        records.append({**record, **spacing._asdict(), "forced": bool(faults)})
        cells = (",".join(map(str, steps)), *ends, *(f"{x:.2f}" for x in scores))
        print(*cells, spacing, sep="\t", flush=True)
    best = max(records, key=lambda one: (one["average_bleu"], one["newest"]))
    result = {
        "last": len(best["steps"]),
        "text": corpus.spec,
        "sentences": len(lines),
        "bleu_signature": mean["bleu_signature"],
        "decoding": dataclasses.asdict(options.config.decoding),
        "best": best["steps"],
        "windows": records,
    }
    _write(folder, result)
    _log_best(options, best, folder.path)
    return tuple(best["steps"])


def _windows(options: AverageOptions) -> list[Selection]:
    """Lists the windows to score, and logs which are skipped."""
    from t2t_jax.run.inference.average import select_windows

    windows = select_windows(options.workdir, last=options.last)
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


def _score(
    options: AverageOptions, window: Selection, lines: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Returns BLEU of the average of these checkpoints, and its signature.

    Args:
      lines: a source, its reference and their direction each.
    """
    from t2t_jax.evaluation.bleu import BleuSettings, scores_by_direction
    from t2t_jax.run.inference.average import average_model

    bleu = BleuSettings(options.config.evaluation.tokenize)
    decoding, trained = options.config.decoding, options.trained
    model = average_model(options.workdir, window, trained=trained, decoding=decoding)
    sources, references, directions = zip(*lines, strict=True)
    with start_progress(TRANSLATING, len(lines)) as progress:
        hypotheses = [""] * len(lines)
        translate = model.translator().iter_translations
        for number, found in translate(sources, target_language=""):
            hypotheses[number] = found.text
            progress.advance(1)
    return scores_by_direction(hypotheses, references, directions, bleu=bleu)


def _write(folder: Workdir, result: Mapping[str, Any]) -> None:
    """Writes the results as JSON, and as a plot if Matplotlib is installed."""
    from t2t_jax.evaluation.plots import plot_averages, render_png

    last, name = result["last"], f"last={result['last']}"
    folder.write_json(f"{name}.json", result)
    log(f"Wrote {folder.path / f'{name}.json'}.")
    steps, averages, singles = (
        [window[key] for window in result["windows"]] for key in _HEADER[2:5]
    )
    try:
        figure = plot_averages(steps, averages=averages, singles=singles, last=last)
    except UserError as error:  # Matplotlib is not installed.
        return log(f"No plot was written. {error}")
    atomic_write(folder.path / f"{name}.png", render_png(figure))
    log(f"Wrote {folder.path / f'{name}.png'}.")


def _log_best(options: AverageOptions, best: Mapping[str, Any], place: Path) -> None:
    """Logs the best window, and the command line that writes its average."""
    steps, newest = best["steps"], best["newest"]
    log(
        f"Best: the average of {', '.join(map(str, steps))} with BLEU "
        f"{best['average_bleu']:.2f}; {newest} alone has {best['newest_bleu']:.2f}."
    )
    if not options.to:
        flags = [
            f"--workdir={options.workdir.path}",
            f"--average_steps={','.join(map(str, steps))}",
            f"--to={place / f'last={len(steps)}_step={newest}'}",
        ]
        flags += ["--force"] * best["forced"] + ["--trained"] * options.trained
        log(f"To write it: {shlex.join([*command_of('average'), *flags])}")
