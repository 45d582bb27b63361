"""The translation job of the command line: windows of lines in, output lines out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.text_io import text_lines
from t2t_jax.cli.flags.translation import TranslateOptions
from t2t_jax.cli.processes.shared_model import load_one
from t2t_jax.cli.translation.formats import Render, make_formatter
from t2t_jax.cli.translation.progress import with_statuses
from t2t_jax.cli.translation.windows import LineWindow, check_line_counts, windows
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.line_counts import count_lines
from t2t_jax.decoding.engine.batching import max_batch_rows
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translator import Translator
    from t2t_jax.inference.model import TranslationModel


BESIDE = ("prefixes", "terms")
"""The flags of files that have a line for each line of the input."""

_ALL_ROWS = 1 << 30  # more than any batch has
_LINES_PER_CHECK = 10_000


@dataclasses.dataclass(frozen=True)
class TranslationJob:
    """Translates windows of lines and formats the output.

    Attributes:
      model: the loaded model, or the first of an ensemble.
      translator: configured by the command line.
      render: formats a translation.
      has_full_batches: whether every batch has its full number of rows.
      joiner: `data.subword_joiner`; joins in lines are undone before translation.
    """

    model: TranslationModel
    translator: Translator
    render: Render
    has_full_batches: bool = False
    joiner: str = ""

    def with_full_batches(self) -> TranslationJob:
        """Returns a job that pads every batch to its full number of rows.

        Small windows then have the batch shapes of large ones: nothing is compiled
        twice.
        """
        translator = self.translator.with_row_growth(_ALL_ROWS)
        return dataclasses.replace(self, translator=translator, has_full_batches=True)

    def translate_window(
        self, window: LineWindow, *, seen: Callable[[int], None] = lambda number: None
    ) -> list[str]:
        """Translates a window of lines.

        Args:
          seen: called with the number of lines translated since the last call.

        Returns:
          For each line its statuses, a space, and the formatted output.
        """
        output = [""] * len(window.lines)
        lines = [undo_joins(line, self.joiner) for line in window.lines]
        for number, translation in self.translator.iter_translations(
            lines,
            first=window.first,
            prefixes=window.prefixes,
            terms=window.terms and [self._terms(line) for line in window.terms],
        ):
            line = lines[number]
            rendered = self.render(window.first + number, line, translation)
            output[number] = with_statuses(translation.statuses, rendered)
            seen(1)
        return output

    def check_terms(self, name: str) -> None:
        """Checks a file of terms as a whole, before its first line is needed.

        A pipe can be read only once, so its lines are checked window by window.

        Args:
          name: of the file; "" for none.

        Raises:
          DataError: a line is not UTF-8, or has a term that no translation can have.
        """
        if not Path(name).is_file():
            return
        lines, first = text_lines(name, flag="terms", strict=True), 0
        while some := list(islice(lines, _LINES_PER_CHECK)):
            self.translator.check_terms(list(map(self._terms, some)), first=first)
            first += len(some)

    def _terms(self, line: str) -> list[str]:
        """Splits a line of terms at its tabs; without any it is empty."""
        terms = undo_joins(line, self.joiner)
        return terms.split("\t") if terms.strip() else []


def require_models(options: TranslateOptions) -> None:
    """Checks that the workdir and the directories of the ensemble hold a model.

    Raises:
      InputMissingError: one does not.
    """
    options.workdir.require()
    for directory in options.ensemble:
        if not Workdir(Path(directory)).has_config:
            raise InputMissingError(
                f"--ensemble={directory} is not a run or a model: config.json is "
                "missing. Pass other directories, separated by commas."
            )


def validate_options(options: TranslateOptions) -> None:
    """Checks options before a model is loaded.

    Raises:
      UserError: flags conflict, or a model does not exist.
    """
    require_models(options)
    make_formatter(options)
    if options.terms:
        from t2t_jax.decoding.text.terms import check_terms

        check_terms(options.config.decoding)
    files = {name: getattr(options, name) for name in ("input", *BESIDE)}
    if len(stdin := [f"--{name}=-" for name in files if files[name] == "-"]) > 1:
        raise UserError(
            f"{' and '.join(stdin[::-1])} are the same standard input. Pass a file for "
            "one of them."
        )


def first_window_size(options: TranslateOptions) -> int:
    """Returns the number of short lines that fill a batch on each process."""
    return max_batch_rows(options.config.decoding) * options.processes.count


def open_windows(options: TranslateOptions) -> Iterator[LineWindow]:
    """Opens the input and what is beside it; the first windows are small.

    Output then begins early.

    Raises:
      InputMissingError: a file does not exist or cannot be opened.
      DataError: two are files, with different numbers of lines.
    """
    names = {name: given for name in BESIDE if (given := getattr(options, name))}
    for name, given in names.items():
        files = [Path(options.input), Path(given)]
        if all(path.is_file() for path in files):
            check_line_counts(
                count_lines(files[1]), lines=count_lines(files[0]), flag=name
            )
    beside = {
        name: text_lines(given, flag=name, strict=is_strict(options, name))
        for name, given in names.items()
    }
    lines = text_lines(options.input, strict=options.strict)
    return windows(
        lines,
        beside.get("prefixes"),
        beside.get("terms"),
        smallest=first_window_size(options),
    )


def is_strict(options: TranslateOptions, name: str) -> bool:
    """Returns whether a line of a file that is not UTF-8 is an error.

    A term that was not read as it was written could never be found.
    """
    return options.strict or name == "terms"


def load_job(options: TranslateOptions) -> TranslationJob:
    """Loads the models of a job. Collective: call on every process.

    Raises:
      UserError: as `inference.load.load`.
    """
    model = load_one(
        options, checkpoint=options.checkpoint, decoding=options.config.decoding
    )
    translator = model.translator(
        token_scores=options.token_scores, attention=options.alignments
    )
    return TranslationJob(
        model,
        translator,
        make_formatter(options),
        joiner=options.config.data.subword_joiner,
    )
