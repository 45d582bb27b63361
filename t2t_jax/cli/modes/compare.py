"""`--mode=compare`: compares several runs, as text on stdout and as a page."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.tables import show
from t2t_jax.cli.console.text_io import check_page, write_file
from t2t_jax.cli.evaluation.corpus import read_aligned
from t2t_jax.cli.flags.options import CompareOptions
from t2t_jax.data.vocabulary.tokenizers import Tagged, known_languages
from t2t_jax.errors import InputMissingError
from t2t_jax.run.dev_outputs import DevOutput
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.config import Config
    from t2t_jax.report.page import Table

System = tuple[Callable[[Sequence[str]], Sequence[str]], float]
"""Translates lines; and the megabytes of its parameters."""

Languages = Mapping[str, str | None]
"""`source_language` and `target_language`, as `translate` takes them."""


def run(options: CompareOptions) -> None:
    """Prints the comparison, and writes it to `options.to` if that is given.

    Raises:
      UserError: directories are not runs, or the page cannot be written.
    """
    from t2t_jax.report.comparison import compare, open_runs, require_several

    require_several(options.workdirs)
    to = check_page(options.to) if options.to else None
    runs = [] if options.source else open_runs(options.workdirs)
    tables = compare(runs, log=log) if runs else _compare_models(options)
    show(tables, file=sys.stdout)
    if to is not None:
        from t2t_jax.report.comparison import compare_page

        write_file(to, compare_page(runs, tables))


def _compare_models(options: CompareOptions) -> list[Table]:
    """Compares the translations of a test set, their speed and the models' size."""
    from t2t_jax.report import comparison
    from t2t_jax.report.page import Table

    files = {"source": options.source, "reference": options.reference}
    models = _models(options)
    base, _ = next(iter(models.values()))
    sources, references = read_aligned(files, joiner=base.data.subword_joiner).values()
    quality, costs, first = [], [], None
    names = comparison.shown_names([*models])
    for shown, (name, (config, languages)) in zip(names, models.items(), strict=True):
        log(f"Translating {options.source} with {name} …")
        translate, megabytes = _open(Path(name), config, languages)
        translate(sources)  # compiles
        began = time.perf_counter()
        output = [*translate(sources)]
        speed = len(sources) / (time.perf_counter() - began)
        lines = DevOutput(0, sources, references, output)
        scores = comparison.scores_of(lines, base, baseline=first)
        first = first or output
        quality.append((shown, *comparison.test_cells(scores)))
        beam = str(config.decoding.beam_size)
        costs.append((shown, beam, f"{speed:,.1f}", f"{megabytes:.3g}"))
    tests = f"{len(sources):,} lines; intervals and paired tests by bootstrap."
    signatures = f"{scores['bleu_signature']}; {scores['chrf_signature']}"
    measured = (
        "Lines a second of a second translation of all lines, each as it is, on "
        f"{os.cpu_count()} processors, beside what else runs there. MB of parameters."
    )
    if len({beam for _, beam, *_ in costs}) > 1:
        alike = "--mode=evaluate --beam_size=4 of each compares the networks alone."
        tests += f" The models search with different beams: {alike}"
    header = ("model", "beam", "lines/s", "MB")
    title, notes = f"Test set {options.source}", [tests, signatures]
    return [
        Table(title, ("model", *comparison.TEST_COLUMNS), quality, range(1, 9), notes),
        Table("Speed and size", header, costs, range(1, 4), [measured]),
    ]


def _models(options: CompareOptions) -> dict[str, tuple[Config, Languages]]:
    """Returns configuration and languages of each model; of an export those before it.

    The languages are those that it has tags for; if none of the models has tags, they
    are those of the flags, which the first of them refuses.

    Raises:
      InputMissingError: a directory is neither a model nor such an export.
    """
    found: dict[str, tuple[Config, Tagged]] = {}
    for name in options.workdirs:
        if not _is_export(name):
            config = Workdir(Path(name)).read_config()
            side = Workdir(Path(name)).read_vocabularies(config.vocabulary).source
        elif not found:
            raise InputMissingError(
                f"{name} must follow the run or model that it is an export of, whose "
                "search it takes. Change the order."
            )
        found[name] = config, side
    wanted, has_tags = options.languages, any(side.tags for _, side in found.values())
    return {
        name: (config, known_languages(side, **wanted) if has_tags else wanted)
        for name, (config, side) in found.items()
    }


def _is_export(folder: str | Path) -> bool:
    return Path(folder, "model.bin").is_file()


def _open(folder: Path, config: Config, languages: Languages) -> System:
    """Loads a model, or an export as CTranslate2, with a search over all processors."""
    import jax

    if not _is_export(folder):
        from t2t_jax.run.inference.load import load

        model = load(folder)
        size = sum(array.nbytes for array in jax.tree.leaves(model.params))
        return partial(model.translate, segment="lines", **languages), size / 1e6
    from t2t_jax.exchange.exporting.export_translator import open_export

    search = open_export(folder, config).search

    def translate(lines: Sequence[str]) -> list[str]:
        found = zip(lines, search(lines, greedy=False, **languages), strict=True)
        return [one.text if line.strip() else "" for line, one in found]

    return translate, (folder / "model.bin").stat().st_size / 1e6
