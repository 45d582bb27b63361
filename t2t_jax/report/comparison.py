"""Compares several runs: settings, scores, curves and translations, as a page too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.config import ARCHITECTURES, Config, flatten, to_dict
from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.errors import DataError, ErrorCollector
from t2t_jax.evaluation.bleu import BleuSettings
from t2t_jax.evaluation.significance import scores_and_tests
from t2t_jax.model.counting import count_parameters
from t2t_jax.quantities import format_duration
from t2t_jax.report.curves import (
    MAX_POINTS,
    NONE,
    curves,
    figure,
    points_of,
    spread,
    steps_of,
)
from t2t_jax.report.page import Block, Section, Table, render
from t2t_jax.report.run_page import curves_part, page_data
from t2t_jax.report.samples import read_samples
from t2t_jax.run.description.table3_rows import ROWS, closest_row
from t2t_jax.run.dev_outputs import DevOutput, DevOutputs
from t2t_jax.run.status import number, standing
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import Record
from t2t_jax.training.reporting.metrics_writer import read_metrics

TEST_COLUMNS = (*("BLEU", "±", "gain", "p"), *("chrF", "±", "gain", "p"))
_MAX_SENTENCES = 10
_MAX_EVALUATIONS = 12
_MAX_LETTERS = 300
_MIN_POINTS = 150


class Run(NamedTuple):
    """A run that is compared.

    Attributes:
      name: of its directory, or its path where two have the same.
      output: the translations of its best evaluation.
    """

    name: str
    workdir: Workdir
    config: Config
    records: Sequence[Record]
    stands: Mapping[str, Any]
    output: DevOutput | None


def open_runs(directories: Sequence[str]) -> list[Run]:
    """Reads the runs to compare.

    Raises:
      UserError: directories are not runs, or are damaged; with all errors.
    """
    errors = ErrorCollector()
    pairs = zip(map(Path, directories), shown_names(directories), strict=True)
    runs = [errors.try_call(_open_run, path, name=name) for path, name in pairs]
    errors.raise_if_any()
    return runs


def shown_names(directories: Sequence[str]) -> list[str]:
    """Returns the last part of each path, or the path where two have the same.

    Example:
      >>> shown_names(["a/mean", "b/mean", "b/best"])
      ['a/mean', 'b/mean', 'best']
    """
    names = [Path(directory).resolve().name for directory in directories]
    both = zip(names, directories, strict=True)
    return [name if names.count(name) == 1 else str(Path(path)) for name, path in both]


def _open_run(path: Path, *, name: str) -> Run:
    workdir = Workdir(path)
    config = workdir.read_config()
    records = steps_of(read_metrics(path / "metrics.jsonl"))
    stands = standing(workdir, config, records)
    best = stands["best"]
    output = DevOutputs(path).read(best["step"]) if best else None
    return Run(name, workdir, config, records, stands, output)


def compare(runs: Sequence[Run], *, log: Callable[[str], None]) -> list[Table]:
    """Compares runs with the first one.

    Args:
      log: gets a line before what takes seconds.
    """
    tables = [_standings(runs), *_paper(runs), _settings(runs), *_evaluations(runs)]
    if any(run.output for run in runs):
        log("Comparing the translations of the development sets …")
        tables.append(_tests(runs))
    return [*tables, *_translations(runs)]


def _standings(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        stands, best = run.stands, run.stands["best"]
        scored = best or stands["evaluation"]
        of_all = f" of {stands['steps']:,}" if stands["step"] != stands["steps"] else ""
        time = format_duration(stands["minutes"] * 60) if run.records else NONE
        size = f"{count_parameters(run.config.network).total / 1e6:.4g}M"
        size = NONE if run.config.python.module else size
        scores = (figure(scored, "bleu"), figure(scored, "perplexity", 3))
        at = f"{best['step']:,}" if best else NONE
        steps = f"{stands['step']:,}{of_all}"
        rows.append((run.name, stands["state"], steps, time, size, *scores, at))
    header = ("run", "state", "steps", "time", "size", "BLEU", "ppl", "at step")
    notes = [
        "size: parameters; ppl: perplexity per subword. Scores are of the development "
        "set, at the step of the best BLEU; of equal ones, of the lowest loss."
    ]
    if len({str(run.config.data.dev) for run in runs}) > 1:
        notes.append("The development sets differ: these scores are not comparable.")
    return Table("Runs", header, rows, range(2, 8), notes)


def _paper(runs: Sequence[Run]) -> Iterator[Table]:
    """Yields the numbers that the paper prints for the rows of Table 3, beside ours."""
    rows = []
    for run in runs:
        if not (name := closest_row(run.config)):
            continue
        printed, best = ROWS[name], run.stands["best"] or {}
        millions = count_parameters(run.config.network).total / 1e6
        numbers = (
            *((number(best, "perplexity"), 2), (printed.perplexity, 2)),
            *((number(best, "bleu"), 1), (printed.dev_bleu, 1)),
            *((millions, 0), (printed.millions, 0)),
        )
        cells = (NONE if n is None else f"{n:.{digits}f}" for n, digits in numbers)
        rows.append((run.name, name, *cells))
    header = "run row ppl printed BLEU printed size/M printed".split()
    notes = [
        "What the paper prints is of newstest2013: tokenized, compound-split BLEU, and "
        "perplexity of its own subwords; ours is of data.dev, sacreBLEU on raw text. "
        "They compare only if the report of a run has no departures by choice."
    ]
    if rows:
        yield Table("Table 3 of the paper", header, rows, range(2, 8), notes)


def _settings(runs: Sequence[Run]) -> Table:
    flat = [dict(flatten(to_dict(run.config))) for run in runs]
    used = {ARCHITECTURES[run.config.architecture] for run in runs}
    unused = tuple(f"{name}." for name in {*ARCHITECTURES.values()} - used)
    keys = [key for key in flat[0] if not key.startswith(unused or ("\0",))]
    rows = [
        (key, *(str(values[key]) for values in flat))
        for key in keys
        if len({repr(values[key]) for values in flat}) > 1
    ]
    notes = [] if rows else ["The configurations are the same."]
    header = ("key", *(run.name for run in runs))
    return Table("Settings that differ", header, rows, (), notes)


def _evaluations(runs: Sequence[Run]) -> Iterator[Table]:
    """Yields the development BLEU of all runs along the steps."""
    scores = [
        {step: f"{bleu:.2f}" for step, bleu in points_of(run.records, "eval", "bleu")}
        for run in runs
    ]
    steps = spread(sorted(set().union(*scores)), _MAX_EVALUATIONS)
    rows = [(f"{step:,}", *(one.get(step, NONE) for one in scores)) for step in steps]
    header = ("step", *(run.name for run in runs))
    if rows:
        yield Table("Development BLEU", header, rows, range(len(header)))


def _tests(runs: Sequence[Run]) -> Table:
    """Tests the differences to the first run that has translations."""
    base, own = next((run.output, run) for run in runs if run.output)
    rows, missing = [], []
    first: dict[str, Any] = {}
    for run in runs:
        if run.output and run.output.references == base.references:
            baseline = None if run.output is base else base.hypotheses
            scores = scores_of(run.output, own.config, baseline=baseline)
            first = first or scores
            rows.append((run.name, *test_cells(scores)))
            continue
        none = "no translations of its development set are saved"
        reason = "its development set is another one" if run.output else none
        rows.append((run.name, *[NONE] * 8))
        missing.append(f"{run.name}: not tested, as {reason}.")
    interval = first["intervals"]
    notes = [
        f"Best evaluations; {interval['level']:.0%} intervals and paired tests against "
        f"{own.name}, the first with translations, by {interval['resamples']:,} "
        "bootstrap samples. p is the chance of so large a difference between equally "
        "good systems.",
        f"{first['bleu_signature']}; {first['chrf_signature']}",
        *missing,
    ]
    return Table("Paired tests", ("run", *TEST_COLUMNS), rows, range(1, 9), notes)


def test_cells(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yields BLEU and chrF with their intervals, gains and p-values.

    Args:
      scores: from `scores_of`, without a `paired_test` for the first system.
    """
    test = scores.get("paired_test")
    for name in ("bleu", "chrf"):
        yield f"{scores[name]:.2f}"
        yield f"{scores['intervals'][name]['half_width']:.2f}"
        if test is None:
            yield from (NONE, NONE)
            continue
        p_value = test[name]["p_value"]
        yield f"{test[name]['system'] - test[name]['baseline']:+.2f}"
        yield NONE if p_value is None else f"{p_value:.3f}"


def _translations(runs: Sequence[Run]) -> Iterator[Table]:
    """Yields translations side by side, where there are any that differ."""
    found = [_translated(run) for run in runs]
    pairs = list(dict.fromkeys(pair for one in found for pair in one))
    shared = [pair for pair in pairs if sum(pair in one for one in found) > 1]
    differing = [p for p in shared if len({one[p] for one in found if p in one}) > 1]
    names = ("source", "reference", *(run.name for run in runs))
    rows: list[tuple[str, str]] = []
    for pair in (differing or shared)[:_MAX_SENTENCES]:
        texts = (*pair, *(one.get(pair, NONE) for one in found))
        shown = (truncate(text, _MAX_LETTERS) for text in texts)
        rows += zip(names, shown, strict=True)
    if rows:
        same = len(shared) - len(differing)
        notes = [
            f"Of {len(shared):,} development sentences that several runs have "
            f"translated, {same:,} have the same translation in all of them."
        ]
        yield Table("Translations", ("", "text"), rows, notes=notes, text=(1,))


def _translated(run: Run) -> dict[tuple[str, str], str]:
    """Returns translations by source and reference: of the best step, or samples."""
    if run.output:
        pairs = zip(run.output.sources, run.output.references, strict=True)
        return dict(zip(pairs, run.output.hypotheses, strict=True))
    return {
        (one["source"], one["reference"]): translation
        for one in read_samples(run.workdir)["sentences"]
        if (translation := one["translations"][-1]) is not None
    }


def require_several(directories: Sequence[str]) -> None:
    """Checks that there are at least two different directories.

    Raises:
      DataError: there are not.
    """
    resolved = [Path(directory).resolve() for directory in directories]
    if len(resolved) < 2 or len(set(resolved)) < len(resolved):
        raise DataError(
            "A comparison needs at least two different runs, and got "
            f"{', '.join(directories)}. Pass their directories, separated by commas."
        )


def scores_of(
    output: DevOutput, config: Config, *, baseline: Sequence[str] | None = None
) -> dict[str, Any]:
    """Scores translations by the tokens of a configuration, with intervals.

    Args:
      baseline: translations of another system; None for no test.

    Returns:
      What `scores_and_tests` returns; `step` and the number of `sentences`.
    """
    lines = output.hypotheses, output.references
    bleu = BleuSettings(config.evaluation.tokenize)
    return {
        "step": output.step,
        "sentences": len(output.references),
        **scores_and_tests(*lines, bleu=bleu, baseline=baseline),
    }


def compare_page(runs: Sequence[Run], tables: Sequence[Table]) -> str:
    """Returns the page of a comparison.

    Args:
      tables: from `comparison.compare`.
    """
    limit = min(max(_MIN_POINTS, 3 * MAX_POINTS // len(runs)), MAX_POINTS)
    drawn = [curves(run.records, limit=limit) for run in runs]
    first, *others = [
        Section(re.sub(r"\W+", "-", t.title.lower()), t.title, [t]) for t in tables
    ]
    chart, names = curves_part(*drawn), [run.name for run in runs]
    about = {"about": f"Comparison of {len(names)} runs", "names": names}
    return render(
        title=" · ".join(names),
        header=Block("names_header.html", about),
        sections=[first, Section("curves", "Curves", [chart]), *others],
        data=page_data(zip(names, drawn, strict=True)),
    )
