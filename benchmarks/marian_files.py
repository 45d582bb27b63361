"""What Marian reads: ids as words, and the table of these words.

A word of a text for Marian is the number of our id, so that both read the same subwords
without any text being cut again. Nothing that imports JAX or PyTorch is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from t2t_jax.types import BOS, EOS, PAD, UNK

_SPECIAL = {EOS: "</s>", UNK: "<unk>"}


def to_line(ids: Iterable[int]) -> str:
    """Writes ids, without eos, as a line.

    Example:
      >>> to_line([17, 4])
      '17 4'
    """
    return " ".join(map(str, ids))


def from_line(line: str) -> list[int]:
    """Reads the ids of a line.

    Example:
      >>> from_line("17 4"), from_line("")
      ([17, 4], [])
    """
    return [int(word) for word in line.split()]


def training_ids(size: int) -> list[int]:
    """Returns our id of each id of Marian, whose first two are eos and unk.

    Marian has neither pad nor bos. They are the last, so that its matrices are as large
    as ours; no text holds them.

    Example:
      >>> training_ids(7)
      [2, 3, 4, 5, 6, 0, 1]
    """
    return [EOS, UNK, *range(UNK + 1, size), PAD, BOS]


def write_vocabulary(path: Path, ids: Sequence[int]) -> None:
    """Writes the table of words.

    Args:
      path: ends in .yml.
      ids: our id of each id of Marian.
    """
    names = (_SPECIAL.get(id_, str(id_)) for id_ in ids)
    lines = (f"{json.dumps(name)}: {number}\n" for number, name in enumerate(names))
    path.write_text("".join(lines), encoding="utf-8")


def write_lines(path: Path, sentences: Iterable[Iterable[int]]) -> None:
    """Writes sentences of ids, each without eos, one a line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{to_line(ids)}\n" for ids in sentences)
