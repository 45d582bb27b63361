"""The merges of a BPE vocabulary as arrays, to segment encoded text anew.

A token is a piece, and a piece is its characters: the tokens of a sentence hold its
normalized text, so it can be segmented differently without the text itself. Tokens that
are not composed of characters (special and user-defined pieces, bytes) stay whole.

A symbol is what merges join: a character or a piece, by a number from `size` up. The
numbers below `size` are the ids of the vocabulary, for tokens that stay whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from t2t_jax.data.arrays import GOLDEN, Flags, Integers
from t2t_jax.data.vocabulary.byte_pairs import piece_of, split_characters, symbol_of
from t2t_jax.data.vocabulary.sentencepiece_ids import parse_sentencepiece
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES
from t2t_jax.errors import ConfigError

NO_RANK = 1 << 40
"""The rank of symbols that are not merged; others are far lower, times any length."""

_BPE = 2  # ModelType of SentencePiece's TrainerSpec
_MODEL_TYPES = {1: "unigram", 3: "word", 4: "character"}


class Merge(NamedTuple):
    """What two symbols are joined to; the lowest rank is merged first."""

    result: str
    rank: int


class Ragged(NamedTuple):
    """Lists of different lengths: their values one after another, and bounds.

    Attributes:
      starts: [N] index of each list's first value.
      lengths: [N] values of each list.
    """

    values: Integers
    starts: Integers
    lengths: Integers

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> Ragged:
        """Joins lists of integers."""
        every = list(lists)
        lengths = np.fromiter(map(len, every), np.int64, len(every))
        values = np.array([value for one in every for value in one], np.int64)
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def take(self, indices: Integers) -> Integers:
        """Concatenates the lists of some indices.

        Example:
          >>> Ragged.of([[7], [2, 3], []]).take(np.array([1, 2, 0, 1])).tolist()
          [2, 3, 7, 2, 3]
        """
        lengths = self.lengths[indices]
        shifts = self.starts[indices] - (np.cumsum(lengths) - lengths)
        taken: Integers = self.values[
            np.arange(lengths.sum()) + np.repeat(shifts, lengths)
        ]
        return taken


class _PairIndex:
    """Numbers of N keys, 64-bit integers of at least 0: a hash table with open slots.

    Six times as fast as a search in a sorted array, for 50,000 keys.
    """

    def __init__(self, keys: Sequence[int]):
        self.size = len(keys)
        bits = max(4, (4 * len(keys)).bit_length())
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        # The last key, of empty slots, equals none.
        self._keys = np.array([*keys, -1], np.int64)
        self._slots = np.full(1 << bits, len(keys), np.int64)
        left = np.arange(len(keys))
        places = self._hash(self._keys[:-1])
        while len(left):
            # Of several keys for an empty slot one remains, and the others go on.
            empty = self._slots[places] == self.size
            self._slots[places[empty]] = left[empty]
            others = self._slots[places] != left
            left, places = left[others], (places[others] + 1) & self._mask

    def _hash(self, keys: Integers) -> Integers:
        product = keys.astype(np.uint64) * GOLDEN
        return (product >> self._shift).astype(np.int64)

    def find(self, keys: Integers) -> Integers:
        """Returns the numbers of keys, N for those that are missing."""
        shape, keys = keys.shape, keys.ravel()
        places = self._hash(keys)
        found: Integers = self._slots.take(places)
        stored = self._keys.take(found)
        left = np.flatnonzero((stored != keys) & (stored >= 0))
        while len(left):
            places[left] = (places[left] + 1) & self._mask
            found[left] = self._slots.take(places[left])
            stored = self._keys.take(found[left])
            left = left[(stored != keys[left]) & (stored >= 0)]
        return found.reshape(shape)


@dataclass(frozen=True)
class MergeTable:
    """The merges of a vocabulary of `size` ids, for S symbols and ids.

    Attributes:
      characters: of each id the symbols of its characters, or itself if it stays whole.
      ids: of each symbol its ids: one, several bytes, or none if it has no piece.
      results: [M + 1] the symbol that each merge makes, and at last that of none.
      ranks: [M + 1] of each merge, the lowest is made first; and at last `NO_RANK`.
      whole_pairs: whether a merge is made at all places of a word before the next one
        (subword-nmt), instead of at one place (SentencePiece).
    """

    characters: Ragged
    ids: Ragged
    results: Integers
    ranks: Integers
    whole_pairs: bool
    _pairs: _PairIndex
    _neighbours: _PairIndex

    @property
    def no_symbol(self) -> int:
        """S, a number that is not of a symbol."""
        return len(self.ids.lengths)

    def find(self, left: Integers, right: Integers) -> Integers:
        """Returns the merges of symbols, from 0; M where there is none."""
        return self._pairs.find(left * (self.no_symbol + 1) + right)

    def may_join(self, left: Integers, right: Integers) -> Flags:
        """Returns whether characters occur side by side within any piece."""
        keys = left * (self.no_symbol + 1) + right
        return self._neighbours.find(keys) < self._neighbours.size


def load_merges(model: bytes, *, key: str) -> MergeTable:
    """Reads the merges of a vocabulary.

    Args:
      model: content of a SentencePiece model, or of a table of byte pairs.
      key: the configuration key that requires merges, for messages.

    Raises:
      ConfigError: the vocabulary has no merges.
    """
    if not model.startswith(b"{"):
        return _of_sentencepiece(parse_sentencepiece(model, name="vocabulary"), key)
    table = json.loads(model)
    if table["kind"] != "byte_pairs":
        raise _refusal(key, f"is a table of kind {table['kind']!r}")
    if table.get("merges") is None:
        raise _refusal(key, "is a list of words without merges")
    return _of_byte_pairs(table["pieces"], table["merges"])


def _refusal(key: str, what: str) -> ConfigError:
    return ConfigError(
        f"{key} skips merges of byte-pair encoding, and the vocabulary {what}. "
        f"Set config.{key}=0, or use a SentencePiece model of type BPE."
    )


def _of_sentencepiece(proto: Any, key: str) -> MergeTable:
    spec, kinds = proto.trainer_spec, type(proto).SentencePiece
    if spec.model_type != _BPE:
        name = _MODEL_TYPES.get(spec.model_type, "unknown")
        raise _refusal(key, f"is a SentencePiece model of type {name}")
    if any(piece.type == kinds.UNUSED for piece in proto.pieces):
        raise _refusal(key, "has pieces that are marked as unused")
    whole = {piece.piece for piece in proto.pieces if piece.type == kinds.USER_DEFINED}
    # A user-defined character is never part of a piece.
    scores = {
        piece.piece: piece.score
        for piece in proto.pieces
        if piece.type == kinds.NORMAL and whole.isdisjoint(piece.piece)
    }
    ranks = {
        score: rank
        for rank, score in enumerate(sorted({*scores.values()}, reverse=True))
    }
    numbers = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    has_bytes = any(piece.type == kinds.BYTE for piece in proto.pieces)

    def ids_of(symbol: str) -> list[int]:
        if symbol in scores:
            return [numbers[symbol]]
        bytes_ = symbol.encode() if has_bytes else b""
        return [numbers[f"<0x{byte:02X}>"] for byte in bytes_]

    # A piece that shorter ones do not make up is listed, and never made.
    symbols = {*scores} | {one for piece in scores for one in piece}
    return _build(
        [list(one.piece) if one.piece in scores else None for one in proto.pieces],
        {
            (piece[:cut], piece[cut:]): Merge(piece, ranks[score])
            for piece, score in scores.items()
            for cut in range(1, len(piece))
            if piece[:cut] in symbols and piece[cut:] in symbols
        },
        characters=list,
        ids_of=ids_of,
        whole_pairs=False,
    )


def _of_byte_pairs(pieces: list[str], merges: list[list[str]]) -> MergeTable:
    first = len(SPECIAL_PIECES)
    # Of equal pieces, or merges, the first counts.
    numbers = {
        piece: number for number, piece in reversed([*enumerate(pieces[first:], first)])
    }

    def ids_of(symbol: str) -> list[int]:
        number = numbers.get(piece_of(symbol))
        return [] if number is None else [number]

    return _build(
        [
            (number >= first and split_characters(symbol_of(piece))) or None
            for number, piece in enumerate(pieces)
        ],
        {
            (left, right): Merge(left + right, rank)
            for rank, (left, right) in reversed([*enumerate(merges)])
        },
        characters=split_characters,
        ids_of=ids_of,
        whole_pairs=True,
    )


def _build(
    tokens: Sequence[Sequence[str] | None],
    merges: Mapping[tuple[str, str], Merge],
    *,
    characters: Callable[[str], Sequence[str]],
    ids_of: Callable[[str], list[int]],
    whole_pairs: bool,
) -> MergeTable:
    """Numbers the symbols and sorts the pairs.

    Args:
      tokens: of each id its characters; None if it stays whole.
      merges: by the two symbols that are joined.
      characters: splits the symbol that a merge makes.
    """
    named = dict.fromkeys(one for token in tokens for one in token or ())
    for pair, merge in merges.items():
        named |= dict.fromkeys((*pair, merge.result))
    symbols = {symbol: number for number, symbol in enumerate(named, len(tokens))}
    radix = len(tokens) + len(symbols) + 1
    keys = {
        symbols[left] * radix + symbols[right]: merge
        for (left, right), merge in merges.items()
    }
    ordered = sorted(keys)
    joined = {
        symbols[one] * radix + symbols[other]
        for result in {merge.result for merge in merges.values()}
        for one, other in pairwise(characters(result))
        if one in symbols and other in symbols
    }
    results = [symbols[keys[key].result] for key in ordered]
    ranks = [keys[key].rank for key in ordered]
    return MergeTable(
        characters=Ragged.of(
            [number] if token is None else [symbols[one] for one in token]
            for number, token in enumerate(tokens)
        ),
        ids=Ragged.of([*([n] for n in range(len(tokens))), *map(ids_of, symbols)]),
        results=np.array([*results, radix - 1], np.int64),
        ranks=np.array([*ranks, NO_RANK], np.int64),
        whole_pairs=whole_pairs,
        _pairs=_PairIndex(ordered),
        _neighbours=_PairIndex(sorted(joined)),
    )
