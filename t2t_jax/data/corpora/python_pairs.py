"""A corpus of pairs from Python: lists, generators, rows of datasets.

The pairs are read once and stored as two text files, in a directory beside the token
caches that is named by their content. From there they are a `text:` corpus like any
other: a generator can be trained on for many epochs, rows that come in another order
the next time cannot change a run unnoticed, and the command line can resume it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from t2t_jax.data.config import SIDES, DataConfig
from t2t_jax.data.corpora.corpus import Corpus, truncate
from t2t_jax.data.corpora.open import open_corpus, split_directions
from t2t_jax.data.corpora.text_files import PYTHON_PAIRS, TextCorpus
from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.files.progress_bar import Log, ProgressBar
from t2t_jax.data.line_arguments import with_article
from t2t_jax.data.token_cache.cache_paths import (
    BUILDING,
    exclusive_lock,
    partial_path,
    publish,
    token_caches,
    write_errors,
)
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE
from t2t_jax.errors import ConfigError, short_repr

_Rows: TypeAlias = Iterable[Sequence[str | bytes] | Mapping[str, object]]
Pairs: TypeAlias = _Rows | Mapping[str, _Rows]
"""Pairs as `open_pairs` takes them."""


def open_pairs(
    pairs: Pairs, *, config: DataConfig, name: str = "pairs", log: Log = lambda _: None
) -> Corpus:
    """Reads pairs once, stores them as text files, and returns these as a corpus.

    The same pairs are stored once, and have the fingerprint of files with these lines.

    Args:
      pairs: (source, target) each; or mappings with one text a language, of which the
        first is the source: `{"en": …, "de": …}`, and the same under the key
        "translation", as the rows of Hugging Face's `datasets` have it. Text is `str`,
        or UTF-8 as `bytes` or a scalar tensor of TensorFlow. All of them are read, so
        there must be an end. Of a model of several languages the pairs of each
        direction: `{"en-de": pairs, "en-fr": others}`; those of "en-de,de-en" in both.
      config: with the directory of the token caches.
      name: of the argument, for messages.
      log: gets a line with the number of pairs and, of mappings, the direction.

    Raises:
      ConfigError: the path of that directory has a comma.
      DataError: there is no pair, or text has a line break. Pairs are counted from 0.
        Other faults of text are found as in any file when the corpus is read.
      OutputError: the directory cannot be written.
      TypeError: something else than pairs of text was given.

    Example:
      >>> import tempfile
      >>> config = DataConfig(cache_dir=tempfile.mkdtemp())
      >>> rows = [{"translation": {"en": "A dog barks.", "de": "Ein Hund bellt."}}]
      >>> corpus = open_pairs(iter(rows), config=config)
      >>> list(corpus), corpus.source.name, corpus.num_pairs()
      ([('A dog barks.', 'Ein Hund bellt.')], 'pairs.en', 1)
      >>> both = open_pairs({"en-de,de-en": rows}, config=config)
      >>> [source for source, _ in both]
      ['A dog barks.', 'Ein Hund bellt.']
    """
    if "," in str(home := token_caches(config)):
        raise ConfigError(
            f"{home} must have no comma in its path, as pairs from Python are stored "
            "there as the corpus text:SOURCE,TARGET. Set config.data.cache_dir "
            "(cache_dir= of t2t_jax.batches) to another directory."
        )
    if isinstance(pairs, Mapping) and pairs:
        if all(split_directions(f"#{languages}")[1] for languages in pairs):
            specs = []
            for languages, rows in pairs.items():
                corpus = _store(rows, config, f"{name}[{languages!r}]", log)
                specs.append(f"{corpus.spec}#{languages}")
            return open_corpus("++".join(specs))
    return _store(pairs, config, name, log)


def _store(pairs: Any, config: DataConfig, name: str, log: Log) -> TextCorpus:
    """Reads and stores the pairs of one direction."""
    is_wrong = isinstance(pairs, str | bytes | Mapping | Set)
    if is_wrong or not isinstance(pairs, Iterable):
        is_name = isinstance(pairs, str)
        what = truncate(repr(pairs)) if is_name else with_article(pairs)
        raise TypeError(
            f"{name} must be an iterable of (source, target) pairs, not {what}. Pass "
            '[("A dog barks.", "Ein Hund bellt.")], or one split of a dataset; the '
            "name of a corpus goes into config.data.train."
        )
    keys: list[str] = []
    home = token_caches(config)
    with ExitStack() as held:
        with write_errors(home):
            home.mkdir(parents=True, exist_ok=True)
            new = TemporaryDirectory(BUILDING, f"{PYTHON_PAIRS}-", home)
            folder = Path(held.enter_context(new)) / "pairs"
            folder.mkdir()
        with (folder / "0").open("wb") as sources, (folder / "1").open("wb") as targets:
            for source, target in _checked(pairs, name, keys):
                sources.write(source + b"\n")
                targets.write(target + b"\n")
        is_named = all(re.fullmatch(LANGUAGE_CODE, x.replace("-", "_")) for x in keys)
        sides = list((is_named and keys) or SIDES)
        for number, side in enumerate(sides):
            (folder / str(number)).rename(folder / f"pairs.{side}")
        content = _corpus(folder, sides).fingerprint()
        path = home / "-".join([PYTHON_PAIRS, content[:24], *sides])
        corpus = _corpus(path, sides)
        with write_errors(home), exclusive_lock(partial_path(path), ProgressBar(log)):
            is_there = corpus.source.is_file() and corpus.target.is_file()
            if not is_there or corpus.fingerprint() != content:
                publish(folder, path)
            shutil.rmtree(partial_path(path), ignore_errors=True)
    way = f", {' to '.join(keys)}" * bool(keys)
    log(f"{name}: {corpus.num_pairs():,} pairs from Python{way}, stored in {path}.")
    return corpus


def _corpus(folder: Path, sides: Sequence[str]) -> TextCorpus:
    source, target = (folder / f"pairs.{side}" for side in sides)
    return TextCorpus(f"text:{source},{target}", source, target)


def _checked(
    pairs: Iterable[Any], name: str, keys: list[str]
) -> Iterator[tuple[bytes, bytes]]:
    """Yields the pairs in UTF-8; raises what no two lines of text can be.

    Args:
      keys: gets those of the first mapping, the source's first.
    """
    problems, number = LineProblems(), -1
    for number, row in enumerate(pairs):
        texts: Any = row
        if isinstance(row, Mapping):
            inner = row.get("translation")
            named = inner if isinstance(inner, Mapping) else row
            keys[:] = keys or map(str, named)
            texts = [named[key] for key in keys] if {*named} == {*keys} else ()
        is_pair = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        sides = [_utf8(text) for text in texts] if is_pair else []
        if len(sides) != 2 or None in sides:
            raise TypeError(
                f"{name}[{number}] is {short_repr(row)}, and must be two texts (source,"
                " target), or a mapping of two like {'en': …, 'de': …} with the same "
                f"keys in all rows. Pass ((row[…], row[…]) for row in {name})."
            )
        source, target = sides
        if b"\n" in source + target or source.endswith(b"\r") or target.endswith(b"\r"):
            fault, advice = "has a line break.", 'Replace it: " ".join(text.split()).'
            shown = f"{name}[{number}]: {fault}"
            problems.add_line(name, number, fault, advice, shown=shown)
        elif not problems.count:
            yield source, target
    if number < 0:
        problems.add(f"{name} has no pairs. An iterator can be read only once.")
    problems.raise_if_any()


def _utf8(text: Any) -> Any:
    """Returns text as bytes, a tensor of TensorFlow too; None for anything else."""
    text = text.numpy() if hasattr(text, "numpy") else text
    if isinstance(text, str):  # Half of a surrogate pair is found by who reads it.
        return text.encode(errors="surrogatepass")
    return text if isinstance(text, bytes) else None
