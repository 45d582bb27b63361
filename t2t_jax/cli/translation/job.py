"""From lines to what is written of their translations, for all ways to read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.text_io import text_lines
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.shared_model import load_one
from t2t_jax.cli.processes.stages import map_shared, refuse_stdin
from t2t_jax.cli.translation.formats import Render, make_formatter
from t2t_jax.cli.translation.windows import LineWindow, check_line_counts, windows
from t2t_jax.data.files.line_counts import count_lines
from t2t_jax.decoding.engine.batching import max_batch_rows
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translator import Translator
    from t2t_jax.inference.model import TranslationModel


# More rows than any batch has.
_FULL = 1 << 30


@dataclasses.dataclass(frozen=True)
class TranslationJob:
    """Translates windows of lines, and says what is to be written of each line.

    Attributes:
      model: whose translator it is.
      translator: as the command line asks for it.
      render: how a translation is written.
    """

    model: TranslationModel
    translator: Translator
    render: Render

    def with_full_batches(self) -> TranslationJob:
        """Returns this for windows of one file, whose batches are to have few shapes.

        Small windows then have the shapes of large ones, whatever the devices, and so
        nothing more is compiled.
        """
        filled = self.translator.with_row_growth(_FULL)
        return dataclasses.replace(self, translator=filled)

    def translate_window(
        self,
        window: LineWindow,
        *,
        processes: Processes = SINGLE_PROCESS,
        seen: Callable[[int], None] = lambda number: None,
    ) -> list[str]:
        """Translates a window.

        Args:
          window: the lines, the same on all processes.
          seen: told how many lines more are translated, as far as this process knows.

        Returns:
          For each line its status, a space, and what is to be written.

        Raises:
          Ended: some process could not translate its share.
        """
        known = 0

        def translate(share: list[str], start: int) -> list[str]:
            nonlocal known
            first, end = window.first + start, start + len(share)
            forced = None if window.prefixes is None else window.prefixes[start:end]
            told = [""] * len(share)
            found = self.translator.iter_translations(
                share, first=first, prefixes=forced
            )
            for number, translation in found:
                written = self.render(first + number, translation)
                told[number] = f"{translation.status} {written}"
                # The others are about as far.
                known += processes.count
                seen(processes.count)
            return told

        name = f"translated from {window.first}"
        told = map_shared(processes, translate, window.lines, name=name)
        seen(len(window.lines) - known)
        return told


def require_models(options: Options) -> None:
    """Checks that there is something to load, in each directory that is named.

    Raises:
      InputMissingError: in one there is nothing.
    """
    options.workdir.require()
    for directory in options.ensemble:
        if not Workdir(Path(directory)).has_config:
            raise InputMissingError(
                f"--ensemble={directory} is not a run or a model: config.json is "
                "missing. Pass other directories, with commas between."
            )


def validate_options(options: Options) -> None:
    """Checks what can be checked before a model is loaded.

    Raises:
      UserError: flags contradict one another, or something is not there.
    """
    require_models(options)
    make_formatter(options)
    if options.prefixes == "-" == options.input:
        raise UserError(
            "--prefixes=- and --input=- are one standard input, which holds one of "
            "both. Name a file."
        )
    for flag in ("input", "prefixes"):
        refuse_stdin(options.processes, flag, getattr(options, flag))


def first_window(options: Options) -> int:
    """Returns how many lines fill a batch of short ones on each process."""
    return max_batch_rows(options.config.decoding) * options.processes.count


def open_windows(options: Options) -> Iterator[LineWindow]:
    """Opens the input, and the prefixes if there are any.

    The first windows are small, so that a reader of the output has lines early.

    Raises:
      InputMissingError: a file is not there or cannot be opened.
      DataError: both are files and have not as many lines.
    """
    if not options.prefixes:
        lines = text_lines(options.input, strict=options.strict)
        return windows(lines, smallest=first_window(options))
    files = [Path(options.input), Path(options.prefixes)]
    if all(path.is_file() for path in files):
        check_line_counts(count_lines(files[1]), lines=count_lines(files[0]))
    prefixes = text_lines(options.prefixes, flag="prefixes", strict=options.strict)
    lines = text_lines(options.input, strict=options.strict)
    return windows(lines, prefixes, smallest=first_window(options))


def load_translating(options: Options) -> TranslationJob:
    """Loads what the command line names, the same on all processes.

    Raises:
      Ended: some process cannot. One alone raises what `loading.load` does.
    """
    model = load_one(
        options, checkpoint=options.checkpoint, decoding=options.config.decoding
    )
    translator = model.translator(
        token_scores=options.token_scores, attention=options.alignments
    )
    return TranslationJob(model, translator, make_formatter(options))
