"""Finds held-out text in the training text.

The training text is not read again: a token cache holds a hash of each sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from t2t_jax.data.arrays import Flags, Hashes, Integers
from t2t_jax.data.config import SIDES
from t2t_jax.data.corpora.corpus import (
    Corpus,
    locator,
    parts_of,
    short_name,
    tag_of,
    truncate,
)
from t2t_jax.data.token_cache.filters import pair_hashes, text_hashes
from t2t_jax.data.token_cache.shards import MAX_EXAMPLES
from t2t_jax.data.token_cache.token_cache import TokenCache

_BLOCK = 1 << 20
_BITS = (1 << 20) - 1
_MANY_ONE_SIDED = 0.3
_MANY_COPIES = 0.3


def find_all_leaks(
    train: TokenCache, held_out: Iterable[Corpus]
) -> dict[str, dict[str, Any]]:
    """Returns `find_leaks` of all parts of held-out corpora, by spec."""
    parts = (part for corpus in held_out for part, _ in parts_of(corpus))
    return {part.spec: find_leaks(train, part) for part in parts}


def find_leaks(train: TokenCache, held_out: Corpus) -> dict[str, Any]:
    """Searches the kept training pairs for held-out pairs.

    Lines match if they are equal (64-bit hashes) up to surrounding blanks and the tag
    of a corpus. Empty lines are skipped.

    Returns:
      The number of `pairs`, and of how many the `source`, the `target`, or `both` as
      one pair are in the training text; `examples` of the last, or else of one side,
      with their locations.
    """
    pairs, tag = list(held_out), tag_of(held_out)
    bare = ((source.removeprefix(tag), target) for source, target in pairs)
    hashes = [text_hashes(lines) for lines in zip(*bare, strict=True)]
    in_train = list(map(_rows_with, hashes, train.hashes))
    every = zip(SIDES, hashes, train.hashes, in_train, strict=True)
    row_of = {name: _first_rows(held, side[r], r) for name, held, side, r in every}
    rows = in_train[0]
    both = pair_hashes(*(side[rows] for side in train.hashes))
    row_of["both"] = _first_rows(pair_hashes(*hashes), both, rows)
    filled = np.array([bool(s.strip() and t.strip()) for s, t in pairs])
    found = {name: (rows >= 0) & filled for name, rows in row_of.items()}
    best = next((one for one in ("both", *SIDES) if found[one].any()), "both")
    return {
        "pairs": len(pairs),
        "copies": int(((hashes[0] == hashes[1]) & filled).sum()),
        **{name: int(one.sum()) for name, one in found.items()},
        "examples": [
            {
                **locator(held_out)(line + 1)._asdict(),
                "train": train.locate(int(row_of[best][line]))._asdict(),
                **dict(zip(SIDES, map(truncate, pairs[line]), strict=True)),
            }
            for line in np.flatnonzero(found[best])[:MAX_EXAMPLES].tolist()
        ],
    }


def _rows_with(held_out: Hashes, hashes: Hashes) -> Integers:
    """Returns the training rows whose hash is one of a few held-out ones."""
    # The last bits alone rule out almost every row, ten times faster than a search.
    possible: Flags = np.zeros(_BITS + 1, np.bool_)
    possible[held_out & np.uint64(_BITS)] = True
    blocks = ((n, hashes[n : n + _BLOCK]) for n in range(0, len(hashes), _BLOCK))
    rows = [n + np.flatnonzero(possible[one & np.uint64(_BITS)]) for n, one in blocks]
    candidates = np.concatenate([np.zeros(0, np.int64), *rows])
    return candidates[np.isin(hashes[candidates], held_out)]


def _first_rows(held_out: Hashes, hashes: Hashes, rows: Integers) -> Integers:
    """Returns the first of `rows` with the hash of each held-out line; -1 for none."""
    values, first = np.unique(hashes, return_index=True)
    if not len(values):
        return np.full(len(held_out), -1)
    indices = np.minimum(np.searchsorted(values, held_out), len(values) - 1)
    return np.where(values[indices] == held_out, rows[first[indices]], -1)


def leak_warnings(leaks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Formats warnings about leaks that make scores misleading.

    A pair in the training text always causes a warning; a source or a target in other
    pairs is common, and causes one from 30 % of a corpus on.

    Example:
      >>> [*leak_warnings({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 1}})]
      ['warning: 1 of the 9 pairs of tsv:a is in the training text. Scores on it measure
      memory, too.']
      >>> [*leak_warnings({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 0}})]
      []
    """
    for spec, found in leaks.items():
        name, pairs, both = short_name(spec), found["pairs"], found["both"]
        if both:
            yield (
                f"warning: {both:,} of the {pairs:,} pairs of {name} {_are(both)} in "
                "the training text. Scores on it measure memory, too."
            )
        for side, others in zip(SIDES, ("translations", "sources"), strict=True):
            if (some := found[side] - both) and some >= _MANY_ONE_SIDED * pairs:
                yield (
                    f"warning: {some:,} of the {pairs:,} {side}s of {name} "
                    f"({some / pairs:.0%}) {_are(some)} in the training text, with "
                    f"other {others}. Scores on it may be higher than on new text."
                )


def leak_counts(leaks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Formats the leaks of each corpus, a line each.

    Example:
      >>> [*leak_counts({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 1}})]
      ['tsv:a: of 9 pairs 1 is in the training text; 1 source and 0 targets are there in
      other pairs.']
    """
    for spec, found in leaks.items():
        both, one_sided = found["both"], {s: found[s] - found["both"] for s in SIDES}
        also = (f"{n:,} {side}{'s' * (n != 1)}" for side, n in one_sided.items())
        yield (
            f"{short_name(spec)}: of {found['pairs']:,} pairs {both:,} {_are(both)} in "
            f"the training text; {' and '.join(also)} are there in other pairs."
        )


def find_copies(cache: TokenCache) -> dict[str, dict[str, int]]:
    """Counts the `pairs` of each part, and the `copies` with equal sides, by spec."""
    source, target = cache.hashes
    # The hashes are mapped from the file: only a byte a pair is in memory.
    of_parts = np.split(source == target, np.cumsum(cache.part_pairs)[:-1])
    parts = zip(cache.corpora, of_parts, strict=True)
    return {
        corpus.spec: {"pairs": len(is_copy), "copies": int(is_copy.sum())}
        for corpus, is_copy in parts
    }


def copy_warnings(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Formats warnings about corpora with 30 % copies or more.

    Example:
      >>> [*copy_warnings({"text:a,b": {"pairs": 9, "copies": 3}})]
      ['warning: 3 of the 9 pairs of text:a,b (33%) have the same text on both sides.
      Check that these are the right files.']
    """
    for spec, counts in found.items():
        pairs, copies = counts["pairs"], counts["copies"]
        if copies and copies >= _MANY_COPIES * pairs:
            yield (
                f"warning: {copies:,} of the {pairs:,} pairs of {short_name(spec)} "
                f"({copies / pairs:.0%}) have the same text on both sides. Check that "
                "these are the right files."
            )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
