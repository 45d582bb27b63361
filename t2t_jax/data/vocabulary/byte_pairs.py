"""Byte-pair encoding of words, after learned merges and a word list.

As fairseq's models use it: a text of words, separated by spaces, is split by the merges
of a file of codes, each piece but the last of a word ends in `@@`, and a dictionary
gives the pieces their ids.

Paper: §5.1, its reference [31] (Sennrich et al.).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from t2t_jax.errors import DataError

_END_OF_WORD = "</w>"
_CONTINUES = "@@"
LONGEST_KEPT = 64
"""Characters of words whose pieces are kept; 65,536 of any length would fill memory."""

_ADVICE = "Pass a file of codes that subword-nmt or fastBPE has learned."


def read_merges(text: str, *, name: str) -> list[tuple[str, str]]:
    """Reads a file of codes: two pieces a line, the most frequent first.

    Those of fastBPE have a count on each line, and no line with a version.

    Args:
      name: of the file, for messages.

    Raises:
      DataError: the file is of another version, or a line is not two pieces.
    """
    lines = text.removesuffix("\n").split("\n")
    has_counts = re.fullmatch(r"[^ ]+ [^ ]+ [0-9]+\s*", lines[0]) is not None
    # Before version 0.2 the end of a word was a piece of its own.
    if not has_counts and lines[0].split() != ["#version:", "0.2"]:
        raise DataError(f"{name} does not begin with '#version: 0.2'. {_ADVICE}")
    first = 0 if has_counts else 1
    merges = []
    for number, line in enumerate(lines[first:], start=first + 1):
        kept = line.rstrip("\r ")
        pieces = (kept.rpartition(" ")[0] if has_counts else kept).split(" ")
        if len(pieces) != 2 or not all(pieces):
            fault = f"{name}, line {number:,}: {line[:40]!r} is not two pieces"
            raise DataError(f"{fault}. {_ADVICE}")
        merges.append((pieces[0], pieces[1]))
    return merges


class BytePairEncoder:
    """Splits words into pieces.

    Args:
      merges: pairs of pieces, the first to be merged first.

    Example:
      >>> encoder = BytePairEncoder([("l", "o"), ("lo", "w</w>"), ("e", "r</w>")])
      >>> encoder.split("low lower")
      ['low', 'lo@@', 'w@@', 'er']
      >>> join_pieces(["low", "lo@@", "w@@", "er"])
      'low lower'
    """

    def __init__(self, merges: Sequence[tuple[str, str]]):
        # Of two equal merges the first counts.
        self._ranks = {pair: rank for rank, pair in reversed([*enumerate(merges)])}
        self._merge_once = lru_cache(maxsize=1 << 16)(self._merge)

    def split(self, text: str) -> list[str]:
        """Returns the pieces of a text, whose words are separated by spaces."""
        return list(chain.from_iterable(map(self._split_word, text.split())))

    def _split_word(self, word: str) -> list[str]:
        return (self._merge_once if len(word) <= LONGEST_KEPT else self._merge)(word)

    def _merge(self, word: str) -> list[str]:
        """Merges the pair of lowest rank everywhere, as long as there is one.

        In O(L log L) for L characters: pairs wait in a heap by rank and place, and a
        pair whose pieces have been merged with others is dropped when it comes up.
        """
        pieces = [*split_characters(word + _END_OF_WORD), ""]
        following = [*range(1, len(pieces)), 0]  # a linked list; merged ones are ""
        previous = [*range(-1, len(pieces) - 1)]
        waiting: list[tuple[int, int]] = []

        def rank_at(place: int) -> int | None:
            return self._ranks.get((pieces[place], pieces[following[place]]))

        changed: Iterable[int] = range(len(word))
        while True:
            for place in changed:
                if (rank := rank_at(place)) is not None:
                    heapq.heappush(waiting, (rank, place))
            if not waiting:
                break
            lowest, places, changed = waiting[0][0], [], []
            # All places first: what a merge begins comes after the last of its rank.
            while waiting and waiting[0][0] == lowest:
                places.append(heapq.heappop(waiting)[1])
            for place in places:
                if rank_at(place) == lowest:
                    merged = following[place]
                    pieces[place], pieces[merged] = pieces[place] + pieces[merged], ""
                    following[place] = following[merged]
                    previous[following[merged]] = place
                    changed += [previous[place], place]
        *others, last = filter(None, pieces)
        return [*(one + _CONTINUES for one in others), last.removesuffix(_END_OF_WORD)]


def split_characters(symbol: str) -> list[str]:
    """Splits a symbol of the merges into those that merges begin with.

    Example:
      >>> split_characters("low</w>"), split_characters("low")
      (['l', 'o', 'w</w>'], ['l', 'o', 'w'])
    """
    if not symbol.endswith(_END_OF_WORD):
        return list(symbol)
    word = symbol.removesuffix(_END_OF_WORD)
    return [*word[:-1], word[-1:] + _END_OF_WORD]


def symbol_of(piece: str) -> str:
    """Returns the symbol of the merges that a piece stands for.

    Example:
      >>> symbol_of("er"), symbol_of("lo@@")
      ('er</w>', 'lo')
    """
    if piece.endswith(_CONTINUES):
        return piece.removesuffix(_CONTINUES)
    return piece + _END_OF_WORD


def piece_of(symbol: str) -> str:
    """Returns the piece that stands for a symbol of the merges.

    Example:
      >>> piece_of("er</w>"), piece_of("lo")
      ('er', 'lo@@')
    """
    if symbol.endswith(_END_OF_WORD):
        return symbol.removesuffix(_END_OF_WORD)
    return symbol + _CONTINUES


def join_pieces(pieces: Iterable[str]) -> str:
    """Joins pieces to words, separated by spaces."""
    return f"{' '.join(pieces)} ".replace(f"{_CONTINUES} ", "").strip()
