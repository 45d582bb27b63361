"""The files of `--mode=evaluate` and `score`: read, compared, and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from statistics import fmean
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import open_output
from t2t_jax.cli.flags.translation import EvaluateOptions
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.report.leakage import MANY_COPIES
from t2t_jax.errors import DataError, ErrorCollector, UserError

if TYPE_CHECKING:
    from t2t_jax.inference.model import TranslationModel


class Corpus(NamedTuple):
    """The lines of the evaluation files.

    Attributes:
      references: one per source.
      baseline: another system's translations, or None.
    """

    sources: list[str]
    references: list[str]
    baseline: list[str] | None


def read_corpus(options: EvaluateOptions) -> Corpus:
    """Reads `source`, `reference` and `baseline`, and checks their line counts.

    Joins of subwords are undone if the run has a `data.subword_joiner`.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    names = {
        name: path
        for name in ("source", "reference", "baseline")
        if (path := getattr(options, name))
    }
    lines = read_aligned(names, joiner=options.config.data.subword_joiner)
    return Corpus(lines["source"], lines["reference"], lines.get("baseline"))


def read_aligned(
    names: Mapping[str, str], *, joiner: str, may_be_empty: bool = False
) -> dict[str, list[str]]:
    """Reads files that have as many lines as the reference; warns of copies of it.

    Args:
      names: paths by flag, one of them `reference`.
      joiner: `data.subword_joiner`; joins of subwords are undone.
      may_be_empty: whether files without lines are read.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    errors = ErrorCollector()
    read = {
        name: errors.try_call(_lines, path, joiner=joiner)
        for name, path in names.items()
    }
    errors.raise_if_any()
    lines = {name: found for name, found in read.items() if found is not None}
    count = len(lines["reference"])
    problems = [
        f"--{name}={names[name]} must have lines, and is empty."
        for name, found in lines.items()
        if not (found or may_be_empty)
    ] + [
        f"{name.capitalize()} and reference must have the same number of lines: "
        f"{names[name]} has {len(found):,}, {names['reference']} has {count:,}."
        for name, found in lines.items()
        if len(found) != count
    ]
    if problems:
        raise DataError(problems)
    for name in lines:
        if name != "reference":
            warn_of_copies(names, lines, name)
    return lines


def warn_of_copies(
    names: Mapping[str, str], lines: Mapping[str, Sequence[str]], name: str
) -> None:
    """Logs a warning if many lines of a file equal their references.

    Args:
      names: paths by flag.
      lines: by flag; as many in each.
      name: the flag of the file to compare.
    """
    pairs = [
        (a.strip(), b.strip())
        for a, b in zip(lines[name], lines["reference"], strict=True)
    ]
    copies = sum(a == b for a, b in pairs if a)
    if copies and copies >= MANY_COPIES * len(pairs):
        log(
            f"warning: {copies:,} of the {len(pairs):,} lines of --{name}="
            f"{names[name]} ({copies / len(pairs):.0%}) are the same in --reference="
            f"{names['reference']}. Check that you passed the right files."
        )


def warn_of_exchange(model: TranslationModel, pair: Sequence[Sequence[str]]) -> None:
    """Logs a warning if the references are more like the model's sources.

    Args:
      model: of known words, or there is no warning.
      pair: sources and references.
    """
    from t2t_jax.decoding.text.translation import UNFAMILIAR

    if model.known_words is None or not pair[0]:
        return
    source, reference = (
        fmean(model.known_words.unseen_shares(lines)) for lines in pair
    )
    if source > max(reference, UNFAMILIAR):
        log(
            "warning: --source and --reference look exchanged: the source text of "
            f"training lacks {source:.0%} of the words of --source, and "
            f"{reference:.0%} of those of --reference. Check that you passed the right "
            "files."
        )


def open_hypotheses(options: EvaluateOptions, files: ExitStack) -> BinaryIO | None:
    """Opens the file `options.hypotheses` for writing.

    Args:
      files: closes the file.

    Returns:
      None if no file is given.

    Raises:
      UserError: the file cannot be written.
    """
    path = options.hypotheses
    if not path:
        return None
    if path == "-":
        raise UserError(
            "--hypotheses=- must be a file: stdout is for the scores. Pass a file."
        )
    inputs = [f for f in (options.source, options.reference, options.baseline) if f]
    return files.enter_context(open_output(path, flag="hypotheses", inputs=inputs))


def file_records(
    options: EvaluateOptions, corpus: Corpus, hypotheses: list[str]
) -> dict[str, Any]:
    """Returns path, number of lines and sha256 of each file used or written."""
    from t2t_jax.evaluation.protocol import fingerprint_lines

    held = {
        "source": corpus.sources,
        "reference": corpus.references,
        "baseline": corpus.baseline,
        "hypotheses": hypotheses,
    }
    return {
        name: {
            "path": getattr(options, name) or None,
            "lines": len(lines),
            "sha256": fingerprint_lines(lines),
        }
        for name, lines in held.items()
        if lines is not None
    }


def _lines(path: str, *, joiner: str) -> list[str]:
    return [undo_joins(line, joiner) for line in read_lines(path)]
