"""The translation job of the command line: windows of lines in, output lines out.

Of several processes, process 0 reads, translates and writes as a single process does.
It broadcasts each window that it translates, and every process translates a share.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from t2t_jax.cli.console.text_io import text_lines
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import load_one
from t2t_jax.cli.translation.formats import Render, make_formatter
from t2t_jax.cli.translation.windows import LineWindow, line_files
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.devices.distributed.processes import Processes, barrier
from t2t_jax.errors import UserError, rewording
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translator import Translator
    from t2t_jax.run.inference.model import TranslationModel

TranslateWindow: TypeAlias = Callable[..., list[str]]
"""Translates a window as `TranslationJob.translate_window` does."""

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
      languages: of all lines: `source_language` and `target_language` of `translate`.
    """

    model: TranslationModel
    translator: Translator
    render: Render
    has_full_batches: bool = False
    joiner: str = ""
    languages: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

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
          For each line its statuses, separated by commas, a space, and the formatted
          output.
        """
        output = [""] * len(window.lines)
        translations = self.translator.iter_translations(
            [undo_joins(line, self.joiner) for line in window.lines],
            first=window.first,
            prefixes=window.prefixes,
            terms=window.terms and [self._terms(line) for line in window.terms],
            **self.languages,
        )
        for number, translation in translations:
            rendered = self.render(window.first + number, translation)
            output[number] = f"{','.join(translation.statuses)} {rendered}"
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


def require_ensemble(options: TranslateOptions) -> None:
    """Checks that the directories of the ensemble hold models.

    Raises:
      InputMissingError: one does not.
    """
    with rewording(lambda problem: f"--ensemble={problem}"):
        for directory in options.ensemble:
            Workdir(Path(directory)).require()


def validate_options(options: TranslateOptions) -> None:
    """Checks options before a model is loaded.

    Raises:
      UserError: flags conflict, or a model does not exist.
    """
    require_ensemble(options)
    make_formatter(options)
    if options.terms:
        from t2t_jax.decoding.text.terms import check_terms

        check_terms(options.config.decoding)
    stdin = [f"--{name}=-" for name, path in line_files(options).items() if path == "-"]
    if len(stdin) > 1:
        raise UserError(
            f"{' and '.join(stdin[::-1])} are the same standard input. Pass one file."
        )


def load_job(options: TranslateOptions) -> TranslationJob:
    """Loads the models of a job. Collective: call on every process.

    Raises:
      UserError: as `inference.load.load`.
    """
    config, scores = options.config, options.token_scores
    model = load_one(options, checkpoint=options.checkpoint, decoding=config.decoding)
    translator = model.translator(token_scores=scores, attention=options.alignments)
    return TranslationJob(
        model,
        translator,
        make_formatter(options),
        joiner=config.data.subword_joiner,
        languages=options.languages,
    )


@contextmanager
def distributed(job: TranslationJob, processes: Processes) -> Iterator[TranslateWindow]:
    """Yields a function that translates a window on all processes.

    For process 0, while the others call `serve`; `job.translate_window` for a single
    process. If process 0 fails, the others end by its failure notice.
    """
    if processes.count == 1:
        yield job.translate_window
        return
    from t2t_jax.devices.distributed.gather import broadcast_strings

    numbers = count()

    def translate(window: LineWindow, *, seen: Callable[[int], None]) -> list[str]:
        # The others wait for this, as a collective operation could time out.
        processes.publish(f"window {next(numbers)}", "follows")
        broadcast_strings([json.dumps([job.has_full_batches, *window])], processes)
        known = 0

        def estimate(number: int) -> None:
            nonlocal known
            known += number * processes.count  # the others are about as far
            seen(number * processes.count)

        output = _translate_shares(job, window, processes, estimate)
        seen(len(window.lines) - known)
        return output

    yield translate
    processes.publish(f"window {next(numbers)}", "")


def serve(job: TranslationJob, processes: Processes) -> None:
    """Translates a share of each window of process 0, until it has no more."""
    from t2t_jax.devices.distributed.gather import broadcast_strings

    numbers = count()
    while processes.receive(f"window {next(numbers)}"):
        (text,) = broadcast_strings((), processes)
        has_full_batches, *window = json.loads(text)
        if has_full_batches and not job.has_full_batches:
            job = job.with_full_batches()
        _translate_shares(job, LineWindow(*window), processes)


def _translate_shares(
    job: TranslationJob,
    window: LineWindow,
    processes: Processes,
    seen: Callable[[int], None] = lambda number: None,
) -> list[str]:
    """Translates a share on each process, and gathers the output of all."""
    from t2t_jax.devices.distributed.gather import map_lines_across_processes

    def translate(share: list[str], start: int) -> list[str]:
        output = job.translate_window(window.part(start, share), seen=seen)
        # Gathering is a collective operation, too, and shares may take minutes.
        barrier(processes, f"translated from {window.first}")
        return output

    return map_lines_across_processes(translate, window.lines, processes)
