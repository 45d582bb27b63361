"""Streams a corpus through the vocabulary into the files of a token cache."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from t2t_jax.data.corpora import Corpus
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.data.vocabulary import EOS, UNK
from t2t_jax.errors import DataError

FORMAT = 1
META_FILE = "meta.json"

_CHUNK_PAIRS = 10_000

# A piece has 16 characters at most, so a line four times beyond that for each of its
# subwords is too long whatever its pieces are, and is not worth encoding.
_CHARACTERS_PER_SUBWORD = 64


def write_tokens(
    place: Path, corpus: Corpus, vocabularies: Vocabularies, *, meta: dict[str, Any]
) -> None:
    """Encodes a corpus into the files of a directory, in constant memory.

    Args:
      place: an empty directory.
      corpus: sentence pairs. Pairs with a side that has no subwords are dropped, as
        are pairs with a side of more than `max_length` tokens.
      vocabularies: what cuts them into subwords.
      meta: what is known of the cache, `max_length` and `spec` included; it is stored
        in `meta.json` with the counts, the dtype and the size of every file.

    Raises:
      DataError: the text is broken, or no pair is left.
    """
    largest = max(vocabulary.size for vocabulary in vocabularies)
    dtype = "<u2" if largest <= 1 << 16 else "<u4"
    counts = {"read": 0, "kept": 0, "empty": 0, "too_long": 0}
    unknown = {"source": 0, "target": 0}
    with contextlib.ExitStack() as stack:
        sides = {
            side: _SideWriter(
                stack.enter_context((place / f"{side}.tokens").open("wb")),
                stack.enter_context((place / f"{side}.offsets").open("wb")),
                dtype,
            )
            for side in unknown
        }
        lines = stack.enter_context((place / "line_numbers").open("wb"))
        for numbers, *texts in _chunks(corpus, meta["max_length"], counts):
            encoded = [
                vocabulary.encode(text)
                for vocabulary, text in zip(vocabularies, texts, strict=True)
            ]
            lengths_2xP = np.array([[len(ids) for ids in side] for side in encoded])
            empty = lengths_2xP.min(axis=0) == 0
            too_long = (lengths_2xP.max(axis=0) >= meta["max_length"]) & ~empty
            kept = np.flatnonzero(~empty & ~too_long)
            for reason, pairs in (("empty", empty), ("too_long", too_long)):
                counts[reason] += int(pairs.sum())
            counts["kept"] += len(kept)
            lines.write(np.asarray(numbers, np.int64)[kept].tobytes())
            for side, ids in zip(sides, encoded, strict=True):
                unknown[side] += sides[side].write([ids[pair] for pair in kept])
    if not counts["kept"]:
        raise DataError(
            f"{corpus.spec}: no pair is left of {counts['read']}: {counts['empty']} "
            f"have an empty side, {counts['too_long']} are longer than data.max_length="
            f"{meta['max_length']}. Change the corpus or config.data.max_length."
        )
    sizes = {path.name: path.stat().st_size for path in sorted(place.iterdir())}
    told = {**meta, "dtype": dtype, "counts": counts, "unknown": unknown}
    text = json.dumps({**told, "sizes": sizes}, ensure_ascii=False, indent=1)
    (place / META_FILE).write_text(text + "\n", encoding="utf-8")


class _SideWriter:
    """Appends sentences to the two files of a side."""

    def __init__(self, tokens: BinaryIO, offsets: BinaryIO, dtype: str):
        self._tokens, self._offsets, self._dtype = tokens, offsets, dtype
        self._end = 0
        offsets.write(np.zeros(1, np.int64).tobytes())

    def write(self, sentences: list[list[int]]) -> int:
        """Appends sentences, and counts their unknown pieces."""
        lengths = np.array([len(ids) + 1 for ids in sentences], np.int64)
        tokens = np.fromiter(chain.from_iterable([*ids, EOS] for ids in sentences), int)
        offsets = self._end + np.cumsum(lengths)
        self._end += int(lengths.sum())
        self._tokens.write(tokens.astype(self._dtype).tobytes())
        self._offsets.write(offsets.tobytes())
        return int(np.count_nonzero(tokens == UNK))


def _chunks(
    corpus: Corpus, max_length: int, counts: dict[str, int]
) -> Iterator[tuple[list[int], list[str], list[str]]]:
    """Yields (line numbers, sources, targets), without hopeless pairs."""
    numbers: list[int] = []
    sources: list[str] = []
    targets: list[str] = []
    most_characters = _CHARACTERS_PER_SUBWORD * max_length
    for number, (source, target) in enumerate(corpus, start=1):
        counts["read"] += 1
        if not source.strip() or not target.strip():
            counts["empty"] += 1
        elif max(len(source), len(target)) > most_characters:
            counts["too_long"] += 1
        else:
            numbers.append(number)
            sources.append(source)
            targets.append(target)
        if len(numbers) == _CHUNK_PAIRS:
            yield numbers, sources, targets
            numbers, sources, targets = [], [], []
    if numbers:
        yield numbers, sources, targets
