"""The files of `--mode=evaluate`: what is read, what is written, what they held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO, NamedTuple

from t2t_jax.cli.lines import opened_output
from t2t_jax.cli.listeners import say
from t2t_jax.cli.options import Options
from t2t_jax.cli.together import refuse_stdin
from t2t_jax.data.leaks import MANY_COPIES
from t2t_jax.data.lines import read_lines
from t2t_jax.errors import Attempts, DataError, Problems, UserError


class Corpus(NamedTuple):
    """What the files hold, line by line.

    Attributes:
      sources: to be translated.
      references: of each of them.
      baseline: another system's translations; None where there are none.
    """

    sources: list[str]
    references: list[str]
    baseline: list[str] | None


def read_corpus(options: Options) -> Corpus:
    """Reads the two files, or three, and checks that their lines belong together.

    Args:
      options: names `source`, `reference` and perhaps `baseline`.

    Raises:
      UserError: a file cannot be read, or their lines are not the same number.
    """
    names = {
        name: getattr(options, name)
        for name in ("source", "reference", "baseline")
        if getattr(options, name)
    }
    for name, path in names.items():
        refuse_stdin(options.processes, name, path)
    attempts = Attempts()
    lines = {name: attempts.attempt(_lines, path) for name, path in names.items()}
    attempts.raise_if_any_failed()
    counts = {name: len(found) for name, found in lines.items()}
    problems = Problems()
    for name, count in counts.items():
        problems.require(
            count > 0, f"--{name}={names[name]} must have lines, and is empty."
        )
        problems.require(
            count == counts["reference"],
            f"{name.capitalize()} and reference must have the same number of lines: "
            f"{names[name]} has {count:,}, {names['reference']} has "
            f"{counts['reference']:,}.",
        )
    problems.raise_if_any(DataError)
    if options.processes.is_first:
        for name in ("source", "baseline"):
            if name in lines:
                warn_of_copies(names, lines, name)
    return Corpus(lines["source"], lines["reference"], lines.get("baseline"))


def warn_of_copies(
    names: Mapping[str, str], lines: Mapping[str, Sequence[str]], name: str
) -> None:
    """Warns on stderr where a file and the references are largely the same lines.

    Args:
      names: of the files, by flag.
      lines: of the files, by flag; as many in each.
      name: the flag of the file to compare with the references.
    """
    pairs = [
        (a.strip(), b.strip())
        for a, b in zip(lines[name], lines["reference"], strict=True)
    ]
    copies = sum(a == b for a, b in pairs if a)
    if copies and copies >= MANY_COPIES * len(pairs):
        say(
            f"warning: {copies:,} of the {len(pairs):,} lines of --{name}="
            f"{names[name]} ({copies / len(pairs):.0%}) are the same in --reference="
            f"{names['reference']}. Check that you passed the right files."
        )


def opened_hypotheses(options: Options, files: ExitStack) -> BinaryIO | None:
    """Opens the file for the translations before there are any.

    Args:
      options: perhaps names `hypotheses`.
      files: closes it.

    Returns:
      None where no file is named, or another process writes it.

    Raises:
      UserError: the name will not do.
    """
    path = options.hypotheses
    if not path or not options.processes.is_first:
        return None
    if path == "-":
        raise UserError(
            "--hypotheses=- must be a file: stdout is for the scores. Name one."
        )
    inputs = [f for f in (options.source, options.reference, options.baseline) if f]
    return files.enter_context(opened_output(path, flag="hypotheses", inputs=inputs))


def described(
    options: Options, corpus: Corpus, hypotheses: list[str]
) -> dict[str, Any]:
    """Says which files were used, so that others can compare theirs.

    Args:
      options: names them.
      corpus: what was read.
      hypotheses: what was made of it.

    Returns:
      Path, number of lines and sha256 of each.
    """
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


def _lines(path: str) -> list[str]:
    return list(read_lines(path))
