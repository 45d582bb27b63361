"""The lines on which an export is compared with its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from t2t_jax.data.vocabulary import Vocabulary
from t2t_jax.errors import DataError


class CheckText(NamedTuple):
    """What is translated both ways.

    Attributes:
      name: where it comes from.
      sources: lines with something to translate, none too long for the model.
      references: of each.
      num_left_out: lines that were empty or too long.
    """

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]
    num_left_out: int = 0


def choose_lines(
    name: str,
    pairs: Sequence[tuple[str, str]],
    *,
    vocabulary: Vocabulary,
    longest: int,
    most: int,
) -> CheckText:
    """Takes the first lines that both sides can translate whole.

    Args:
      name: where they come from.
      pairs: source and reference.
      vocabulary: of the source.
      longest: subwords that a source may have, with its eos.
      most: lines to take.

    Raises:
      DataError: none can be translated.
    """
    lengths = [len(ids) + 1 for ids in vocabulary.encode([pair[0] for pair in pairs])]
    kept: list[tuple[str, str]] = []
    num_left_out = 0
    for pair, length in zip(pairs, lengths, strict=True):
        if len(kept) == most:
            break
        if pair[0].strip() and 1 < length <= longest:
            kept.append(pair)
        else:
            num_left_out += 1
    if not kept:
        raise DataError(
            f"{name} must have a line of 1 to {longest - 1} subwords for the export to "
            "be checked, and has none. Name other files with --source and --reference."
        )
    sources, references = zip(*kept, strict=True)
    return CheckText(name, sources, references, num_left_out)
