"""Constituency parsing as translation: from a sentence to its tree (§6.3).

Trees are in Penn brackets, one or several a line, or one over several lines. The source
is the words with spaces between them, the target the tree as symbols
(`data.trees.linearization`). Before that, functions, indices and traces are removed
(`data.trees.tree.normalize`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t2t_jax.data.corpora.corpus import spec_error
from t2t_jax.data.corpora.text_files import expand_files
from t2t_jax.data.files.file_facts import cached_fact, digest
from t2t_jax.data.files.lines import LineProblems, checked_lines, require_files
from t2t_jax.data.trees.linearization import WORD, WORD_SYMBOLS, linearize
from t2t_jax.data.trees.tree import Tree, TreeReader, normalize

_VERSION = 1  # of the rules that turn a file into pairs


@dataclass(frozen=True)
class TreeCorpus:
    """A file of trees.

    Attributes:
      words: what stands for a word in the target, one of `WORD_SYMBOLS`.

    Paper: §6.3; the format of its reference 37.
    """

    spec: str
    path: Path
    words: str = WORD

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for tree, symbols in self._linearized():
            yield " ".join(tree.words()), " ".join(symbols)

    def trees(self) -> Iterator[Tree]:
        """Yields the normalized trees; validates the file as iteration does."""
        for tree, _ in self._linearized():
            yield tree

    def _linearized(self) -> Iterator[tuple[Tree, list[str]]]:
        problems = LineProblems()
        number = 0
        for number, tree in self._trees(problems):
            try:
                symbols = linearize(tree, words=self.words)
            except ValueError as error:
                problems.add_line(str(self.path), number, f"{error}.")
                continue
            if not problems.count:
                yield tree, symbols
        if not number and not problems.count:
            problems.add(f"{self.path} has no trees.")
        problems.raise_if_any()

    def _trees(self, problems: LineProblems) -> Iterator[tuple[int, Tree]]:
        """Yields each normalized tree and the line on which it ends."""
        reader, number = TreeReader(), 0
        for number, line in enumerate(checked_lines(self.path, problems), start=1):
            begin = reader.begin or number
            try:
                for tree in reader.read(number, line or ""):
                    if normalized := normalize(tree):
                        yield number, normalized
            except ValueError as error:
                self._report(problems, begin, str(error))
        try:
            reader.end()
        except ValueError as error:
            self._report(problems, reader.begin, str(error))

    def _report(self, problems: LineProblems, begin: int, fault: str) -> None:
        what = "the tree that begins here is not in Penn brackets"
        shown = f"{self.path}:{begin}: {what}: {fault}."
        advice = "Fix or remove it."
        problems.add_line(str(self.path), begin, f"{what}.", advice, shown=shown)

    def num_pairs(self) -> int:
        """Counts the trees."""
        name = f"trees {_VERSION}"
        return cached_fact(self.path, name, lambda path: sum(1 for _ in self))

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the file's bytes and of what is made of them."""
        head = f"trees {_VERSION} {self.words}".encode()
        return hashlib.sha256(head + digest(self.path)).hexdigest()


def read_trees(path: str | Path) -> list[Tree]:
    """Reads a file of trees in Penn brackets, normalized.

    Raises:
      DataError: a tree is not in Penn brackets, or there is none.
      InputMissingError: the file does not exist or cannot be read.
    """
    require_files(path)
    return list(TreeCorpus(f"trees:{path}", Path(path)).trees())


def open_trees(spec: str, rest: str, *, key: str) -> tuple[TreeCorpus, ...]:
    """Opens the corpora of `trees:FILE` or `trees:A,B#tags`, one for each file.

    Raises:
      ConfigError: no file is named, or after # is neither tags nor numbers.
      InputMissingError: a file does not exist or cannot be read.
    """
    names, mark, words = rest.rpartition("#")
    if not mark or not words.isidentifier():  # or the # is in a file's name
        names, words = rest, WORD
    if not names or words not in WORD_SYMBOLS:
        rule = "name a file, trees:FILE, trees:FILE#tags or trees:FILE#numbers"
        raise spec_error(key, spec, rule)
    paths = expand_files(names.replace(",", "+"), spec, key)
    require_files(*paths, change=f"config.{key}")
    end = "" if words == WORD else f"#{words}"
    specs = [spec] if len(paths) == 1 else [f"trees:{path}{end}" for path in paths]
    return tuple(TreeCorpus(*one, words) for one in zip(specs, paths, strict=True))
