"""Held-out text that is in the training text too, and so measures memory.

The training text is not read again: a token cache holds a hash of each sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from t2t_jax.data.corpora import Corpus, open_corpus, parts_of, split_spec
from t2t_jax.data.filters import Flags, Hashes, pair_hashes, text_hashes
from t2t_jax.data.mixture import place_of
from t2t_jax.data.packing import Integers
from t2t_jax.data.tally import LONGEST_NAME, MOST_EXAMPLES, clip
from t2t_jax.data.token_cache import TokenCache
from t2t_jax.errors import Attempts, InputMissingError

_BLOCK = 1 << 20
_BITS = (1 << 20) - 1


def find_all_leaks(
    train: TokenCache, held_out: Iterable[Corpus]
) -> dict[str, dict[str, Any]]:
    """Looks all held-out corpora up in the training text.

    Args:
      train: the training corpus.
      held_out: the development text, the test sets; of one that is made of several
        each is looked up by itself.

    Returns:
      What `find_leaks` finds of each, by its name.
    """
    return {
        part.spec: find_leaks(train, part)
        for corpus in held_out
        for part, _ in parts_of(corpus)
    }


def find_leaks(train: TokenCache, held_out: Corpus) -> dict[str, Any]:
    """Looks held-out pairs up in the training pairs that were kept.

    Lines are alike where they are the same but for blanks around them (by hashes of 64
    bits). Empty lines are not looked for.

    Args:
      train: the training corpus.
      held_out: the pairs that are to be unknown; all of them are held in memory.

    Returns:
      How many `pairs` there are, and of how many the `source`, the `target`, or `both`
      as one pair are in the training text; `examples` of the last, or else of one
      side, with the places where they stand.
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
    row_of.append(
        _first_rows(
            pair_hashes(*hashes), pair_hashes(*(s[rows] for s in train.hashes)), rows
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
                **place_of(held_out, int(line) + 1)._asdict(),
                "train": train.place(int(row_of[best][line]))._asdict(),
                "source": clip(pairs[line][0]),
                "target": clip(pairs[line][1]),
            }
            for line in np.flatnonzero(found[best])[:MOST_EXAMPLES]
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


def leak_warnings(leaks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Words what `find_all_leaks` has found, a line for each corpus that is known.

    Example:
      >>> leak_warnings({"tsv:a": {"pairs": 9, "source": 2, "target": 1, "both": 1}})
      ['warning: of the 9 pairs of tsv:a 1 are in the training text as they are (2 by
      their source, 1 by their target). Scores on them measure memory.']
    """
    return [
        f"warning: of the {found['pairs']:,} pairs of {clip(spec, LONGEST_NAME)} "
        f"{found['both']:,} are in the training text as they are "
        f"({found['source']:,} by their source, {found['target']:,} by their target). "
        "Scores on them measure memory."
        for spec, found in leaks.items()
        if found["source"] or found["target"]
    ]


def open_held_out(spec: str, *, say: Callable[[str], None]) -> tuple[Corpus, ...]:
    """Finds the test sets that `data.held_out` names.

    Args:
      spec: as for `open_corpus`; "" names none.
      say: is told of sets of TFDS that are not prepared: to look a test set up is not
        worth a download, and so such a set is left out.

    Raises:
      ConfigError: the spec cannot be understood.
      InputMissingError: a file is not there or cannot be read.
    """
    attempts = Attempts()
    found = [
        attempts.attempt(_open_if_there, name, say=say) for name in split_spec(spec)
    ]
    attempts.raise_if_any_failed()
    return tuple(corpus for corpus in found if corpus is not None)


def _open_if_there(name: str, *, say: Callable[[str], None]) -> Corpus | None:
    try:
        return open_corpus(name, key="data.held_out")
    except InputMissingError:
        if not name.startswith("tfds:"):
            raise
        say(f"{name} is not prepared, and is not looked for in the training text.")
        return None
