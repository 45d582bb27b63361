"""Finds held-out text in the training text.

The training text is not read again: a token cache holds a hash of each sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from t2t_jax.data.arrays import Flags, Hashes, Integers
from t2t_jax.data.corpora.corpus import (
    Corpus,
    locate_pair,
    parts_of,
    short_name,
    truncate,
)
from t2t_jax.data.token_cache.filters import pair_hashes, text_hashes
from t2t_jax.data.token_cache.shards import MAX_EXAMPLES
from t2t_jax.data.token_cache.token_cache import TokenCache

_BLOCK = 1 << 20
_BITS = (1 << 20) - 1
_MANY_ONE_SIDED = 0.3

MANY_COPIES = 0.3
"""Share of pairs with the same text on both sides that causes a warning."""


def find_all_leaks(
    train: TokenCache, held_out: Iterable[Corpus]
) -> dict[str, dict[str, Any]]:
    """Returns `find_leaks` of all parts of held-out corpora, by spec."""
    return {
        part.spec: find_leaks(train, part)
        for corpus in held_out
        for part, _ in parts_of(corpus)
    }


def find_leaks(train: TokenCache, held_out: Corpus) -> dict[str, Any]:
    """Searches the kept training pairs for held-out pairs.

    Lines match if they are equal (64-bit hashes) up to surrounding blanks. Empty lines
    are skipped.

    Returns:
      The number of `pairs`, and of how many the `source`, the `target`, or `both` as
      one pair are in the training text; `examples` of the last, or else of one side,
      with their locations.
    """
    pairs = list(held_out)
    hashes = [text_hashes(lines) for lines in zip(*pairs, strict=True)]
    in_train = [
        _rows_with(held, side) for held, side in zip(hashes, train.hashes, strict=True)
    ]
    row_of = [
        _first_rows(held, side[rows], rows)
        for held, side, rows in zip(hashes, train.hashes, in_train, strict=True)
    ]
    rows = in_train[0]
    both = pair_hashes(*(side[rows] for side in train.hashes))
    row_of.append(_first_rows(pair_hashes(*hashes), both, rows))
    filled = np.array([bool(s.strip() and t.strip()) for s, t in pairs])
    found = [(rows >= 0) & filled for rows in row_of]
    counts = [int(one.sum()) for one in found]
    best = next((i for i in (2, 0, 1) if counts[i]), 2)
    return {
        "pairs": len(pairs),
        "copies": int(((hashes[0] == hashes[1]) & filled).sum()),
        **dict(zip(("source", "target", "both"), counts, strict=True)),
        "examples": [
            {
                **locate_pair(held_out, int(line) + 1)._asdict(),
                "train": train.locate(int(row_of[best][line]))._asdict(),
                "source": truncate(pairs[line][0]),
                "target": truncate(pairs[line][1]),
            }
            for line in np.flatnonzero(found[best])[:MAX_EXAMPLES]
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
    found: Integers = candidates[np.isin(hashes[candidates], held_out)]
    return found


def _first_rows(held_out: Hashes, hashes: Hashes, rows: Integers) -> Integers:
    """Returns the first of `rows` with the hash of each held-out line; -1 for none."""
    values, first = np.unique(hashes, return_index=True)
    if not len(values):
        return np.full(len(held_out), -1)
    indices = np.minimum(np.searchsorted(values, held_out), len(values) - 1)
    return np.where(values[indices] == held_out, rows[first[indices]], -1)


def leak_warnings(leaks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats warnings about leaks that make scores misleading.

    A pair in the training text always causes a warning; a source or a target in other
    pairs is common, and causes one from 30 % of a corpus on.

    Example:
      >>> leak_warnings({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 1}})
      ['warning: 1 of the 9 pairs of tsv:a is in the training text. Scores on it measure
      memory, too.']
      >>> leak_warnings({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 0}})
      []
    """
    warnings = []
    for spec, found in leaks.items():
        name, pairs, both = short_name(spec), found["pairs"], found["both"]
        if both:
            warnings.append(
                f"warning: {both:,} of the {pairs:,} pairs of {name} {_are(both)} in "
                "the training text. Scores on it measure memory, too."
            )
        for side, others in (("source", "translations"), ("target", "sources")):
            one_sided = found[side] - both
            if one_sided and one_sided >= _MANY_ONE_SIDED * pairs:
                warnings.append(
                    f"warning: {one_sided:,} of the {pairs:,} {side}s of {name} "
                    f"({one_sided / pairs:.0%}) {_are(one_sided)} in the training "
                    f"text, with other {others}. Scores on it may be higher than on "
                    "new text."
                )
    return warnings


def leak_counts(leaks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats the leaks of each corpus, a line each.

    Example:
      >>> leak_counts({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 1}})
      ['tsv:a: of 9 pairs 1 is in the training text; 1 source and 0 targets are there in
      other pairs.']
    """
    lines = []
    for spec, found in leaks.items():
        both = found["both"]
        sources, targets = (found[side] - both for side in ("source", "target"))
        lines.append(
            f"{short_name(spec)}: of {found['pairs']:,} pairs {both:,} {_are(both)} in "
            f"the training text; {sources:,} source{'s' * (sources != 1)} and "
            f"{targets:,} target{'s' * (targets != 1)} are there in other pairs."
        )
    return lines


def find_copies(cache: TokenCache) -> dict[str, dict[str, int]]:
    """Counts the `pairs` of each part, and the `copies` with equal sides, by spec."""
    source, target = cache.hashes
    found, start = {}, 0
    for corpus, pairs in zip(cache.corpora, cache.part_pairs, strict=True):
        copies, end = 0, start + pairs
        for block in range(start, end, _BLOCK):
            rows = slice(block, min(block + _BLOCK, end))
            copies += int(np.count_nonzero(source[rows] == target[rows]))
        found[corpus.spec] = {"pairs": pairs, "copies": copies}
        start = end
    return found


def copy_warnings(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats warnings about corpora with 30 % copies or more.

    Example:
      >>> copy_warnings({"text:a,b": {"pairs": 9, "copies": 3}})
      ['warning: 3 of the 9 pairs of text:a,b (33%) have the same text on both sides.
      Check that its files are a text and its translation.']
    """
    return [
        f"warning: {one['copies']:,} of the {one['pairs']:,} pairs of "
        f"{short_name(spec)} ({one['copies'] / one['pairs']:.0%}) have "
        "the same text on both sides. Check that its files are a text and its "
        "translation."
        for spec, one in found.items()
        if one["copies"] and one["copies"] >= MANY_COPIES * one["pairs"]
    ]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
