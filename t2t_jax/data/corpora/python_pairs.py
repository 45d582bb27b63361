"""A corpus of pairs from Python: lists, generators, rows of datasets.

The pairs are read once and stored as two text files, in a directory beside the token
caches that is named by their content. From there they are a `text:` corpus like any
other: a generator can be trained on for many epochs, rows that come in another order
the next time cannot change a run unnoticed, and the command line can resume it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn, TypeAlias

from t2t_jax.data.config import SIDES, DataConfig
from t2t_jax.data.corpora.corpus import truncate
from t2t_jax.data.corpora.text_files import PYTHON_PAIRS, TextCorpus
from t2t_jax.data.files.lines import MAX_LINE_BYTES, LineProblems
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.data.line_arguments import with_article
from t2t_jax.data.token_cache.cache_paths import (
    BUILDING,
    exclusive_lock,
    partial_path,
    publish,
    token_caches,
    write_errors,
)

Pairs: TypeAlias = Iterable[Sequence[str | bytes] | Mapping[str, object]]
"""Pairs as `open_pairs` takes them."""

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[_-][A-Za-z]+)?")


def open_pairs(
    pairs: Pairs,
    *,
    config: DataConfig,
    name: str = "pairs",
    log: Callable[[str], None] = lambda text: None,
) -> TextCorpus:
    """Reads pairs once, stores them as text files, and returns these as a corpus.

    The same pairs are stored once, and have the fingerprint of files with these lines.

    Args:
      pairs: (source, target) each; or mappings with one text a language, of which the
        first is the source: `{"en": …, "de": …}`, and the same under the key
        "translation", as the rows of Hugging Face's `datasets` have it. Text is `str`,
        or UTF-8 as `bytes` or a scalar tensor of TensorFlow. All of them are read, so
        there must be an end.
      config: with the directory of the token caches.
      name: of the argument, for messages.
      log: gets a line with the number of pairs and, of mappings, the direction.

    Raises:
      DataError: there is no pair; or text has a line break or a NUL, is not UTF-8 or
        longer than a line of a file may be. Reported together, counted from 0.
      OutputError: the directory cannot be written.
      TypeError: something else than pairs of text was given.

    Example:
      >>> import tempfile
      >>> config = DataConfig(cache_dir=tempfile.mkdtemp())
      >>> rows = [{"translation": {"en": "A dog barks.", "de": "Ein Hund bellt."}}]
      >>> corpus = open_pairs(iter(rows), config=config)
      >>> list(corpus), corpus.source.name, corpus.num_pairs()
      ([('A dog barks.', 'Ein Hund bellt.')], 'pairs.en', 1)
    """
    is_wrong = isinstance(pairs, str | bytes | Mapping | Set)
    if is_wrong or not isinstance(pairs, Iterable):
        what = with_article(type(pairs).__name__)
        what = truncate(repr(pairs)) if isinstance(pairs, str) else what
        raise TypeError(
            f"{name} must be an iterable of (source, target) pairs, not {what}. Pass "
            '[("A dog barks.", "Ein Hund bellt.")], or one split of a dataset; the '
            "name of a corpus goes into config.data.train."
        )
    rows, home = _Rows(name), token_caches(config)
    with ExitStack() as held:
        with write_errors(home):
            home.mkdir(parents=True, exist_ok=True)
            new = TemporaryDirectory(BUILDING, f"{PYTHON_PAIRS}-", home)
            folder = Path(held.enter_context(new)) / "pairs"
            folder.mkdir()
        _write(rows.checked(pairs), folder)
        suffixes = rows.keys if all(map(_LANGUAGE.fullmatch, rows.keys)) else SIDES
        names = [f"pairs.{suffix}" for suffix in suffixes]
        for side, file in zip(SIDES, names, strict=True):
            (folder / side).rename(folder / file)
        content = _corpus(folder, names).fingerprint()
        path = home / f"{PYTHON_PAIRS}-{content[:24]}-{'-'.join(suffixes)}"
        corpus = _corpus(path, names)
        with write_errors(home), exclusive_lock(partial_path(path), ProgressBar(log)):
            is_there = all((path / file).is_file() for file in names)
            if not is_there or corpus.fingerprint() != content:
                publish(folder, path)
            shutil.rmtree(partial_path(path), ignore_errors=True)
    way = f", {rows.keys[0]} to {rows.keys[1]}" * (rows.keys != SIDES)
    log(f"{name}: {rows.count:,} pairs from Python{way}, stored in {path}.")
    return corpus


def _corpus(folder: Path, names: Sequence[str]) -> TextCorpus:
    source, target = (folder / name for name in names)
    return TextCorpus(f"text:{source},{target}", source, target)


def _write(pairs: Iterable[tuple[bytes, bytes]], folder: Path) -> None:
    with (folder / SIDES[0]).open("wb") as sources:
        with (folder / SIDES[1]).open("wb") as targets:
            for source, target in pairs:
                sources.write(source + b"\n")
                targets.write(target + b"\n")


@dataclass
class _Rows:
    """Checks the pairs of an argument, one after the other.

    Attributes:
      keys: of the mappings, the source's first; those of pairs are `SIDES`.
      count: pairs read.
    """

    name: str
    keys: tuple[str, str] = SIDES
    count: int = 0

    def checked(self, pairs: Pairs) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs in UTF-8; raises the faults of their text at the end."""
        problems = LineProblems()
        for number, row in enumerate(pairs):
            sides: Any = [self._text(one, number) for one in self._sides(row, number)]
            self.count += 1
            faults = list(filter(None, map(_fault, sides)))
            if faults:
                place = f"{self.name}[{number}]"
                advice = 'Change it, as " ".join(text.split()) does, or leave it out.'
                problems.add_line(self.name, number, faults[0], advice, location=place)
            elif not problems.count:
                yield sides[0], sides[1]
        if not self.count:
            problems.add(
                f"{self.name} has no pairs. Pass some; an iterator that was read "
                "before has none left."
            )
        problems.raise_if_any()

    def _sides(self, row: Any, number: int) -> Sequence[object]:
        inner = row.get("translation") if isinstance(row, Mapping) else None
        texts = inner if isinstance(inner, Mapping) else row
        if not isinstance(texts, Mapping):
            if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
                self._refuse(number, f"is {with_article(type(row).__name__)}")
            if len(texts) != 2:
                self._refuse(number, f"has {len(texts)} elements")
            return texts
        keys = tuple(map(str, texts))
        if not number and len(keys) == 2:
            self.keys = keys[0], keys[1]
        if {*keys} != {*self.keys}:
            self._refuse(number, f"has the keys {', '.join(keys) or '(none)'}")
        return [texts[key] for key in self.keys]

    def _text(self, text: Any, number: int) -> bytes:
        if hasattr(text, "numpy"):  # A tensor of TensorFlow.
            text = text.numpy()
        if isinstance(text, str):  # Half of a surrogate pair is found as not UTF-8.
            return text.encode(errors="surrogatepass")
        if not isinstance(text, bytes):
            what = with_article(type(text).__name__)
            self._refuse(number, f"has {what} where a text belongs")
        return bytes(text)

    def _refuse(self, number: int, what: str) -> NoReturn:
        like = f"{{{self.keys[0]!r}: …, {self.keys[1]!r}: …}}"
        like = "like {'en': …, 'de': …}" if self.keys == SIDES else f"with {like}"
        raise TypeError(
            f"{self.name}[{number}] {what}, and must be a pair (source, target) or a "
            f"mapping {like}. Pass ((row[…], row[…]) for row in {self.name})."
        )


def _fault(line: bytes) -> str:
    r"""Describes what a line of a text file could not hold; "" if it can.

    Example:
      >>> _fault(b"A dog\nbarks."), _fault(b"A dog barks.")
      ('has a line break.', '')
    """
    if b"\n" in line or line.endswith(b"\r"):
        return "has a line break."
    if b"\0" in line:
        return "holds a NUL byte."
    if len(line) >= MAX_LINE_BYTES:
        return f"has over {MAX_LINE_BYTES:,} bytes, more than a line may have."
    try:
        line.decode()
    except UnicodeDecodeError:
        return "is not UTF-8."
    return ""
