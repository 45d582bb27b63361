"""Development text that is in the training text too, and so measures memory.

The training text is not read again: a token cache holds a hash of each sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2t_jax.data.filters import Flags, Hashes, pair_hashes, text_hashes
from t2t_jax.data.packing import Integers
from t2t_jax.data.tally import clip
from t2t_jax.data.token_cache import TokenCache

_MOST_EXAMPLES = 3
_BLOCK = 1 << 20
_BITS = (1 << 20) - 1


def find_leaks(train: TokenCache, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Looks held-out pairs up in the training pairs that were kept.

    Lines are alike where they are the same but for blanks around them (by hashes of 64
    bits). Empty lines are not looked for.

    Args:
      train: the training corpus.
      pairs: the held-out (source, target)s.

    Returns:
      How many `pairs` there are, and of how many the `source`, the `target`, or `both`
      as one pair are in the training text; `examples` of the last, or else of one
      side, with both line numbers, from 1.
    """
    held_out = [text_hashes(lines) for lines in zip(*pairs, strict=True)]
    in_train = [
        _rows_with(held, side)
        for held, side in zip(held_out, train.hashes, strict=True)
    ]
    row_of = [
        _first_rows(held, side[rows], rows)
        for held, side, rows in zip(held_out, train.hashes, in_train, strict=True)
    ]
    rows = in_train[0]
    row_of.append(
        _first_rows(
            pair_hashes(*held_out), pair_hashes(*(s[rows] for s in train.hashes)), rows
        )
    )
    filled = np.array([bool(s.strip() and t.strip()) for s, t in pairs])
    found = [(rows >= 0) & filled for rows in row_of]
    counts = [int(one.sum()) for one in found]
    best = next((i for i in (2, 0, 1) if counts[i]), 2)
    return {
        "pairs": len(pairs),
        **dict(zip(("source", "target", "both"), counts, strict=True)),
        "examples": [
            {
                "line": int(line) + 1,
                "train_line": int(train.line_numbers[row_of[best][line]]),
                "source": clip(pairs[line][0]),
                "target": clip(pairs[line][1]),
            }
            for line in np.flatnonzero(found[best])[:_MOST_EXAMPLES]
        ],
    }


def _rows_with(held_out: Hashes, hashes: Hashes) -> Integers:
    """Returns the training rows whose hash is one of a few held-out ones."""
    # Almost every row is ruled out by its last bits alone, ten times faster than by a
    # search.
    possible: Flags = np.zeros(_BITS + 1, np.bool_)
    possible[held_out & np.uint64(_BITS)] = True
    rows = [
        start
        + np.flatnonzero(possible[hashes[start : start + _BLOCK] & np.uint64(_BITS)])
        for start in range(0, len(hashes), _BLOCK)
    ]
    candidates = np.concatenate([np.zeros(0, np.int64), *rows])
    found: Integers = candidates[np.isin(hashes[candidates], held_out)]
    return found


def _first_rows(held_out: Hashes, hashes: Hashes, rows: Integers) -> Integers:
    """Returns the first of `rows` whose hash each held-out line has; -1 for none."""
    values, first = np.unique(hashes, return_index=True)
    if not len(values):
        return np.full(len(held_out), -1)
    places = np.minimum(np.searchsorted(values, held_out), len(values) - 1)
    return np.where(values[places] == held_out, rows[first[places]], -1)


def leak_warning(leaks: dict[str, Any]) -> str:
    """Words what `find_leaks` has found; "" where it is nothing.

    Example:
      >>> leak_warning({"pairs": 9, "source": 2, "target": 1, "both": 1})
      'warning: of 9 development pairs 1 are in the training text as they are (2 by
      their source, 1 by their target). Scores on them measure memory.'
    """
    if not leaks["source"] and not leaks["target"]:
        return ""
    return (
        f"warning: of {leaks['pairs']:,} development pairs {leaks['both']:,} are in "
        f"the training text as they are ({leaks['source']:,} by their source, "
        f"{leaks['target']:,} by their target). Scores on them measure memory."
    )
