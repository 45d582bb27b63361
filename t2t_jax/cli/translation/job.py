"""The translation job of the command line: windows of lines in, output lines out.

Lines are read in windows of up to 10,000, or as they arrive.

Of several processes, process 0 reads, translates and writes as a single process does.
It broadcasts each window that it translates, and every process translates a share.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from t2t_jax.cli.console.text_io import text_lines
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import load_one
from t2t_jax.cli.translation.formats import Render, make_formatter
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.file_facts import count_lines
from t2t_jax.devices.distributed.processes import Processes, barrier
from t2t_jax.errors import DataError, UserError, rewording
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translator import Translator
    from t2t_jax.run.inference.model import TranslationModel

TranslateWindow: TypeAlias = Callable[..., list[str]]
"""Translates a window as `TranslationJob.translate_window` does."""

_ALL_ROWS = 1 << 30  # more than any batch has
_LINES_PER_CHECK = 10_000
# Lines are batched by length within a window. This many make some hundred batches, so
# that the few partial ones cost about 1 %.
_MAX_LINES = 10_000
_MAX_CHARACTERS = 4_000_000  # bounds memory
_GROWTH = 4
_SIDECARS = {"prefixes": "forces no prefix", "terms": "requires no terms"}

LINE_FILES = ("input", *_SIDECARS)
"""The flags of files that have a line for each line of the output."""


class LineWindow(NamedTuple):
    """Consecutive lines, and the offset of the first in the file.

    Attributes:
      prefixes: forced prefixes of the translations, as many as lines; or None.
      terms: what the translations must contain, as many as lines, with tabs between
        terms; or None.
    """

    first: int
    lines: list[str]
    prefixes: list[str] | None = None
    terms: list[str] | None = None

    def part(self, start: int, lines: list[str]) -> LineWindow:
        """Returns the window of some of its lines, from number `start` of it."""
        end = start + len(lines)
        prefixes = self.prefixes and self.prefixes[start:end]
        terms = self.terms and self.terms[start:end]
        return LineWindow(self.first + start, lines, prefixes, terms)


def line_files(options: TranslateOptions) -> dict[str, str]:
    """Returns the given files that have a line for each line of the output, by flag."""
    files = {name: getattr(options, name) for name in LINE_FILES}
    return {name: path for name, path in files.items() if path or name == "input"}


def is_strict(options: TranslateOptions, name: str) -> bool:
    """Returns whether a line of a file that is not UTF-8 is an error.

    A term that was not read as it was written could never be found.
    """
    return options.strict or name == "terms"


def open_windows(options: TranslateOptions, *, smallest: int) -> Iterator[LineWindow]:
    """Opens the files of lines; the first windows are small, so that output is early.

    Args:
      smallest: lines of the first window.

    Raises:
      InputMissingError: a file does not exist or cannot be opened.
      DataError: two are files, with different numbers of lines.
    """
    files = line_files(options)
    if len(files) > 1 and Path(options.input).is_file():
        lines = count_lines(Path(options.input))
        for name, path in files.items():
            if Path(path).is_file():
                check_line_counts(count_lines(Path(path)), lines=lines, flag=name)
    texts = {
        name: text_lines(path, flag=name, strict=is_strict(options, name))
        for name, path in files.items()
    }
    return windows(texts, smallest=smallest)


def windows(
    texts: Mapping[str, Iterable[str]], *, first: int = 0, smallest: int = _MAX_LINES
) -> Iterator[LineWindow]:
    """Splits lines into windows, deterministically.

    Args:
      texts: the lines of `input`, and of `prefixes` and `terms` if there are any.
      first: offset of the lines in their files.
      smallest: lines of the first window; each window has four times as many as the
        previous, up to 10,000.

    Raises:
      DataError: the number of prefixes or of lines of terms is another one.

    Example:
      >>> list(windows({"input": ["a", "b"]}, first=7))
      [LineWindow(first=7, lines=['a', 'b'], prefixes=None, terms=None)]
    """
    sidecars = {name: iter(texts[name]) for name in texts if name != "input"}
    for group in _groups(texts["input"], smallest):
        beside = {name: list(islice(sidecars[name], len(group))) for name in sidecars}
        for name, lines in beside.items():
            check_line_counts(first + len(lines), lines=first + len(group), flag=name)
        yield LineWindow(first, group, **beside)
        first += len(group)
    for name, rest in sidecars.items():
        check_line_counts(first + sum(1 for _ in rest), lines=first, flag=name)


def check_line_counts(number: int, *, lines: int, flag: str) -> None:
    """Checks that a file beside the input has a line for each of its lines.

    Raises:
      DataError: the numbers differ.
    """
    if number != lines:
        raise DataError(
            f"--{flag} must have as many lines as --input, but has {number:,} instead "
            f"of {lines:,}. Pass one line for each; an empty line {_SIDECARS[flag]}."
        )


def _groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    size = min(size, _MAX_LINES)
    group: list[str] = []
    characters = 0
    for line in lines:
        if group and characters + len(line) > _MAX_CHARACTERS:
            yield group
            group, characters = [], 0
        group.append(line)
        characters += len(line)
        if len(group) == size:
            yield group
            group, characters = [], 0
            size = min(_GROWTH * size, _MAX_LINES)
    if group:
        yield group


class LineStream:
    """Windows of 1 to `most` lines, each of the lines available at that time.

    Reads in a thread, at most `most` lines ahead, and decodes as
    `text_lines`. Blocks only while no line is available; read errors are
    raised after the lines before them.

    Raises:
      InputMissingError: the file does not exist or cannot be opened.
    """

    def __init__(self, name: str, *, most: int, strict: bool = False):
        self._waiting: Queue[str | Exception | None] = Queue(most)
        lines = text_lines(name, strict=strict)
        # A daemon, so that a blocked read does not keep the process alive.
        Thread(target=self._read, args=(lines,), daemon=True).start()

    def has_next(self) -> bool:
        """Returns whether a line, or the end of the file, is available."""
        return not self._waiting.empty()

    def __iter__(self) -> Iterator[LineWindow]:
        first, lines = 0, list[str]()
        while isinstance(item := self._waiting.get(), str):
            lines.append(item)
            if len(lines) == self._waiting.maxsize or self._waiting.empty():
                yield LineWindow(first, lines)
                first, lines = first + len(lines), []
        if lines:
            yield LineWindow(first, lines)
        if item is not None:
            raise item

    def _read(self, lines: Iterable[str]) -> None:
        """Queues the lines, and then the error that ended reading, or None."""
        try:
            for line in lines:
                self._waiting.put(line)
            self._waiting.put(None)
        except Exception as error:  # Any: the consumer would wait forever.
            self._waiting.put(error)


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
        full = self.with_row_growth(_ALL_ROWS)
        return dataclasses.replace(full, has_full_batches=True)

    def with_row_growth(self, growth: int) -> TranslationJob:
        """Returns a job whose translator has `Translator.with_row_growth`."""
        translator = self.translator.with_row_growth(growth)
        return dataclasses.replace(self, translator=translator)

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
        for number, translation in self.translator.iter_translations(
            [undo_joins(line, self.joiner) for line in window.lines],
            first=window.first,
            prefixes=window.prefixes,
            terms=window.terms and [self._terms(line) for line in window.terms],
            **self.languages,
        ):
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
        raise UserError(f"{' and '.join(stdin[::-1])} are one stdin. Pass one file.")


def load_job(options: TranslateOptions) -> TranslationJob:
    """Loads the models of a job. Collective: call on every process.

    Raises:
      UserError: as `inference.load.load`, or as `with_export`.
    """
    model, scores = load_one(options), options.token_scores
    translator = model.translator(token_scores=scores, attention=options.alignments)
    if options.export:
        from t2t_jax.exchange.exporting.export_translator import with_export

        translator = with_export(translator, Path(options.export), options.config)
    return TranslationJob(
        model,
        translator,
        make_formatter(options),
        joiner=options.config.data.subword_joiner,
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
