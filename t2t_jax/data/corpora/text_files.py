"""Corpora in text files: two aligned files, or one file with columns.

Files are plain or .gz; `~` and `$NAME` in their names are expanded. `+` joins several
files; those of the two sides are paired in order. Text that is split into subwords
already, with a joiner at the end of all but the last of a word, is read as words.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from t2t_jax.data.corpora.corpus import spec_error
from t2t_jax.data.files.file_facts import count_lines, digest
from t2t_jax.data.files.lines import LineProblems, checked_lines, require_files
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.files import expand_user

PYTHON_PAIRS = "python-pairs"
"""The name of a directory with pairs from Python, from which their digest follows."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_COLUMNS = re.compile(r"(?P<files>.*)#(?P<source>[1-9]\d*),(?P<target>[1-9]\d*)")


def undo_joins(line: str, joiner: str) -> str:
    """Joins the subwords of a line to words, as `sed 's/(@@ )|(@@ ?$)//g'` does.

    Args:
      joiner: what the subwords of a word end with, but for the last; "" returns the
        line as it is.

    Example:
      >>> undo_joins("ein fahr@@ rad@@ weg an@@", "@@")
      'ein fahrradweg an'
    """
    if not joiner or joiner not in line:
        return line
    return re.sub(rf"{re.escape(joiner)}(?: |\Z)", "", line)


def _undo_both(source: str, target: str, joiner: str) -> tuple[str, str]:
    return undo_joins(source, joiner), undo_joins(target, joiner)


@dataclass(frozen=True)
class TextCorpus:
    """Two aligned files.

    Attributes:
      joiner: of subwords, as `undo_joins` takes it.
    """

    spec: str
    source: Path
    target: Path
    joiner: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems, counts, missing = LineProblems(), [0, 0], object()
        sides = (checked_lines(path, problems) for path in (self.source, self.target))
        for source, target in zip_longest(*sides, fillvalue=missing):
            counts[0] += source is not missing
            counts[1] += target is not missing
            if not problems.count and isinstance(source, str):
                if isinstance(target, str):
                    yield _undo_both(source, target, self.joiner)
        if not problems.cut_short:
            problems.add(*self._faults(*counts))
        problems.raise_if_any()

    def _faults(self, sources: int, targets: int) -> Iterator[str]:
        """Yields what is wrong with the numbers of lines."""
        if sources != targets:
            yield (
                f"{self.source} has {sources:,} lines and {self.target} has "
                f"{targets:,}: the two sides must be aligned line by line."
            )
        elif not sources:
            yield f"{self.source} and {self.target} are empty."

    def num_pairs(self) -> int:
        """Counts the lines of both sides."""
        pairs = count_lines(self.source)
        for fault in self._faults(pairs, count_lines(self.target)):
            raise DataError(fault)
        return pairs

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the two files' bytes, and of the joiner if any."""
        sides = digest(self.source) + digest(self.target)
        return hashlib.sha256(b"text" + _joiner_bytes(self.joiner) + sides).hexdigest()


@dataclass(frozen=True)
class TsvCorpus:
    """One file with the pairs' sides in two columns, which are numbered from 1.

    Attributes:
      joiner: of subwords, as `undo_joins` takes it.
    """

    spec: str
    path: Path
    columns: tuple[int, int] = (1, 2)
    joiner: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        problems = LineProblems()
        source, target = (column - 1 for column in self.columns)
        needed, number = max(self.columns), 0
        for number, line in enumerate(checked_lines(self.path, problems), start=1):
            if line is None:
                continue
            if len(fields := line.split("\t")) < needed:
                problems.add_line(
                    str(self.path),
                    number,
                    f"has {len(fields)} of the {needed} columns that a line must have, "
                    "separated by tabs.",
                )
            elif not problems.count:
                yield _undo_both(fields[source], fields[target], self.joiner)
        if not number and not problems.cut_short:
            problems.add(f"{self.path} is empty.")
        problems.raise_if_any()

    def num_pairs(self) -> int:
        """Counts the lines."""
        return count_lines(self.path)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of column numbers, file, and the joiner if any."""
        head = f"tsv {self.columns}".encode() + _joiner_bytes(self.joiner)
        return hashlib.sha256(head + digest(self.path)).hexdigest()


def open_text_files(
    spec: str, rest: str, *, key: str, joiner: str = ""
) -> list[TextCorpus] | list[TsvCorpus]:
    """Opens the corpora of `text:SOURCE,TARGET` or `tsv:FILE`, one for each file.

    Raises:
      ConfigError: it names no file, not as many on both sides, or one column twice.
      InputMissingError: a file does not exist or cannot be read.
    """
    if spec.startswith("tsv:"):
        return _open_tsv(spec, rest, key, joiner)
    if len(sides := rest.split(",")) != 2 or not all(sides):
        rule = "name two files, text:SOURCE,TARGET, or with a + between them as many "
        raise spec_error(key, spec, f"{rule}on each side")
    sources, targets = (expand_files(side, spec, key) for side in sides)
    if len(sources) != len(targets):
        names = f"and names {len(sources)} and {len(targets)}"
        raise spec_error(key, spec, f"name as many files on both sides, {names}")
    change = f"config.{key}"
    if f"/{PYTHON_PAIRS}-" in rest:
        change = "nothing, and pass its pairs to t2t_jax.train again"
    require_files(*sources, *targets, change=change)
    pairs = list(zip(sources, targets, strict=True))
    specs = [spec] if len(pairs) == 1 else [f"text:{a},{b}" for a, b in pairs]
    files = zip(specs, sources, targets, strict=True)
    return [TextCorpus(*one, joiner) for one in files]


def _open_tsv(spec: str, rest: str, key: str, joiner: str) -> list[TsvCorpus]:
    columns, end = (1, 2), ""
    if part := _COLUMNS.fullmatch(rest):
        rest, columns = part["files"], (int(part["source"]), int(part["target"]))
        end = "#{},{}".format(*columns)
    if not rest or columns[0] == columns[1]:
        rule = "be tsv:FILE, or tsv:FILE#SOURCE,TARGET with the numbers, from 1, of two"
        raise spec_error(key, spec, f"{rule} columns")
    paths = expand_files(rest, spec, key)
    require_files(*paths, change=f"config.{key}")
    names = [spec] if len(paths) == 1 else [f"tsv:{path}{end}" for path in paths]
    return [TsvCorpus(*one, columns, joiner) for one in zip(names, paths, strict=True)]


def _joiner_bytes(joiner: str) -> bytes:
    """Returns what a joiner adds to a fingerprint: nothing if there is none."""
    return f" joiner {joiner} ".encode() if joiner else b""


def expand_files(side: str, spec: str, key: str) -> tuple[Path, ...]:
    """Expands the file names between + on one side, or one name that contains +.

    Raises:
      ConfigError: a name is empty, or has an environment variable that is not set.
    """
    if "+" in side and (file := _expand(side, spec, key)).is_file():
        return (file,)
    if not all(names := side.split("+")):
        raise spec_error(key, spec, "have a file name before and after every +")
    return tuple(_expand(name, spec, key) for name in names)


def _expand(path: str, spec: str, key: str) -> Path:
    names = (match[1] or match[2] for match in _VARIABLE.finditer(path))
    if missing := [name for name in names if name not in os.environ]:
        fault = f"{key}={spec!r} needs the environment variable {missing[0]}, not set"
        raise ConfigError(f"{fault}. Set {missing[0]} or change config.{key}.")
    expanded = _VARIABLE.sub(lambda found: os.environ[found[1] or found[2]], path)
    return expand_user(expanded, f"{expanded} of {key}={spec!r}", f"config.{key}")
