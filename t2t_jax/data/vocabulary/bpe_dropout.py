"""BPE-dropout: segments words with merges skipped at random.

Paper: Provilkov et al., "BPE-Dropout: Simple and Effective Subword Regularization"
  (2020), algorithm 1: of the merges that are possible in a word each is skipped with
  probability p, the best of the others is made, and so on until all are skipped. With
  p = 0 that is byte-pair encoding, and with p = 1 the characters.
Departs: the paper "Attention Is All You Need" has one segmentation of each word. A word
  of which a piece would not be in the vocabulary keeps its usual segmentation, so no
  unknown tokens are made.

SentencePiece's own sampling has one generator for a whole process, which its versions
seed differently, and never returns to a merge that it has skipped. Here the merges are
made in NumPy, for thousands of words at once; and a word's randomness is a hash of a
key, of the sentence, of the word's place and of the number of merges before.

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
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from t2t_jax.data.arrays import GOLDEN, Flags, Hashes, Integers
from t2t_jax.data.vocabulary.byte_pairs import piece_of, split_characters, symbol_of
from t2t_jax.data.vocabulary.sentencepiece_ids import parse_sentencepiece
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES
from t2t_jax.errors import ConfigError

SAMPLING_VERSION = "1"
"""Version of the algorithm; versions segment the same sentences differently."""

_NO_RANK = 1 << 40  # of symbols that are not merged; others are far lower
_JOINED = -1
_RANDOM_BITS = 53
# Words are segmented together with those of at most a third more characters.
_WIDTHS = (2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 40, 64, 128)
_BPE = 2  # ModelType of SentencePiece's TrainerSpec
_MODEL_TYPES = {1: "unigram", 3: "word", 4: "character"}


def random_base(*numbers: int) -> Hashes:
    """Returns [1] 64 random bits, a pure function of some numbers."""
    state = np.random.SeedSequence(numbers)
    return state.generate_state(1, np.uint64).astype(np.uint64)


def random_keys(base: Hashes, numbers: Integers) -> Hashes:
    """Returns random bits for each number, a pure function of `base` [1] and it."""
    return _mix(base + (numbers + 1).astype(np.uint64) * GOLDEN)


def _mix(values: Hashes) -> Hashes:
    """Hashes 64 bits to 64 bits (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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
        values = np.array([*chain.from_iterable(every)], np.int64)
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def take(self, indices: Integers) -> Integers:
        """Concatenates the lists of some indices.

        Example:
          >>> Ragged.of([[7], [2, 3], []]).take(np.array([1, 2, 0, 1])).tolist()
          [2, 3, 7, 2, 3]
        """
        lengths = self.lengths[indices]
        shifts = self.starts[indices] - (np.cumsum(lengths) - lengths)
        places = np.arange(lengths.sum()) + np.repeat(shifts, lengths)
        taken: Integers = self.values.take(places)
        return taken


class _PairIndex:
    """Numbers of N pairs of symbols: a hash table with open slots.

    Six times as fast as a search in a sorted array, for 50,000 pairs.
    """

    def __init__(self, pairs: Iterable[tuple[int, int]], *, radix: int):
        keys = sorted(left * radix + right for left, right in pairs)
        self.size, self._radix = len(keys), radix
        bits = max(4, (4 * len(keys)).bit_length())
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        # The last key, of empty slots, equals none.
        self._keys = np.array([*keys, -1], np.int64)
        self._slots = np.full(1 << bits, self.size, np.int64)
        for number, place in enumerate(self._hash(self._keys[:-1]).tolist()):
            while self._slots[place] < self.size:
                place = (place + 1) & self._mask
            self._slots[place] = number

    def _hash(self, keys: Integers) -> Integers:
        return (keys.astype(np.uint64) * GOLDEN >> self._shift).astype(np.int64)

    def find(self, left: Integers, right: Integers) -> Integers:
        """Returns the numbers of pairs in their order, N for those that are missing."""
        keys = (left * self._radix + right).ravel()
        places = self._hash(keys)
        found: Integers = self._slots.take(places)
        others: Integers = np.arange(len(keys))
        while True:
            stored = self._keys.take(found[others])
            others = others[(stored != keys[others]) & (stored >= 0)]
            if not len(others):
                return found.reshape(left.shape)
            places[others] = (places[others] + 1) & self._mask
            found[others] = self._slots.take(places[others])


@dataclass(frozen=True)
class MergeTable:
    """The merges of a vocabulary of `size` ids, for S symbols and ids.

    Attributes:
      characters: of each id the symbols of its characters, or itself if it stays whole.
      ids: of each symbol its ids: one, several bytes, or none if it has no piece.
      results: [M + 1] the symbol that each merge makes, and at last that of none.
      ranks: [M + 1] of each merge, the lowest is made first; and at last `_NO_RANK`.
      whole_pairs: whether a merge is made at all places of a word before the next one
        (subword-nmt), instead of at one place (SentencePiece).
      merges: the two symbols of each merge.
      neighbours: the characters that are side by side within any piece.
    """

    characters: Ragged
    ids: Ragged
    results: Integers
    ranks: Integers
    whole_pairs: bool
    merges: _PairIndex
    neighbours: _PairIndex

    @property
    def no_symbol(self) -> int:
        """S, a number that is not of a symbol."""
        return len(self.ids.lengths)


def load_merges(model: bytes, *, key: str) -> MergeTable:
    """Reads the merges of a vocabulary.

    Args:
      model: content of a SentencePiece model, or of a table of byte pairs.
      key: the configuration key that requires merges, for messages.

    Raises:
      ConfigError: the vocabulary has no merges.
    """
    try:
        if not model.startswith(b"{"):
            return _of_sentencepiece(parse_sentencepiece(model, name="vocabulary"))
        table = json.loads(model)
        if table["kind"] != "byte_pairs":
            raise ValueError(f"is a table of kind {table['kind']!r}")
        return _of_byte_pairs(table["pieces"], table.get("merges"))
    except ValueError as error:
        fault = f"{key} skips merges of byte-pair encoding, and the vocabulary {error}"
        change = f"Set config.{key}=0, or use a SentencePiece model of type BPE."
        raise ConfigError(f"{fault}. {change}") from error


def _of_sentencepiece(proto: Any) -> MergeTable:
    kind, kinds = proto.trainer_spec.model_type, type(proto).SentencePiece
    if kind != _BPE:
        known = _MODEL_TYPES.get(kind, "unknown")
        raise ValueError(f"is a SentencePiece model of type {known}")
    if any(piece.type == kinds.UNUSED for piece in proto.pieces):
        raise ValueError("has pieces that are marked as unused")
    whole = {piece.piece for piece in proto.pieces if piece.type == kinds.USER_DEFINED}
    # A user-defined character is never part of a piece.
    normal = (one for one in proto.pieces if one.type == kinds.NORMAL)
    scores = {x.piece: x.score for x in normal if whole.isdisjoint(x.piece)}
    falling = sorted({*scores.values()}, reverse=True)
    ranks = {score: rank for rank, score in enumerate(falling)}
    numbers = {piece.piece: number for number, piece in enumerate(proto.pieces)}
    has_bytes = any(piece.type == kinds.BYTE for piece in proto.pieces)

    def ids_of(symbol: str) -> list[int]:
        if symbol in scores:
            return [numbers[symbol]]
        bytes_ = symbol.encode() if has_bytes else b""
        return [numbers[f"<0x{byte:02X}>"] for byte in bytes_]

    # A piece that shorter ones do not make up is listed, and never made.
    symbols = {*scores} | {one for piece in scores for one in piece}
    merges = {
        (piece[:cut], piece[cut:]): ranks[score]
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in symbols and piece[cut:] in symbols
    }
    tokens = [list(one.piece) if one.piece in scores else None for one in proto.pieces]
    return _build(tokens, merges, split=list, ids_of=ids_of, whole_pairs=False)


def _of_byte_pairs(pieces: list[str], merges: list[list[str]] | None) -> MergeTable:
    if merges is None:
        raise ValueError("is a list of words without merges")
    first = len(SPECIAL_PIECES)
    # Of equal pieces, or merges, the first counts.
    numbers = {piece: n for n, piece in reversed([*enumerate(pieces)][first:])}
    ranks = {(one, other): n for n, (one, other) in reversed([*enumerate(merges)])}

    def ids_of(symbol: str) -> list[int]:
        number = numbers.get(piece_of(symbol))
        return [] if number is None else [number]

    tokens = [split_characters(symbol_of(piece)) for piece in pieces[first:]]
    how: Any = {"split": split_characters, "ids_of": ids_of, "whole_pairs": True}
    return _build([*[None] * first, *tokens], ranks, **how)


def _build(
    tokens: Sequence[Sequence[str] | None],
    merges: Mapping[tuple[str, str], int],
    *,
    split: Callable[[str], Sequence[str]],
    ids_of: Callable[[str], list[int]],
    whole_pairs: bool,
) -> MergeTable:
    """Numbers the symbols and sorts the pairs.

    Args:
      tokens: of each id its characters; None if it stays whole.
      merges: ranks by the two symbols that are joined.
      split: splits a symbol into characters.
    """
    named = dict.fromkeys(one for token in tokens for one in token or ())
    for left, right in merges:
        named |= dict.fromkeys((left, right, left + right))
    symbols = {symbol: number for number, symbol in enumerate(named, len(tokens))}
    none = len(tokens) + len(symbols)
    pairs = sorted(merges, key=lambda pair: (symbols[pair[0]], symbols[pair[1]]))
    inside = {pair for a, b in merges for pair in pairwise(split(a + b))}

    def index(pairs: Iterable[tuple[str, str]]) -> _PairIndex:
        known = ((a, b) for a, b in pairs if a in symbols and b in symbols)
        return _PairIndex(((symbols[a], symbols[b]) for a, b in known), radix=none + 1)

    characters = (
        [number] if token is None else [symbols[one] for one in token]
        for number, token in enumerate(tokens)
    )
    return MergeTable(
        characters=Ragged.of(characters),
        ids=Ragged.of([*([n] for n in range(len(tokens))), *map(ids_of, symbols)]),
        results=np.array([*(symbols[a + b] for a, b in pairs), none], np.int64),
        ranks=np.array([*(merges[pair] for pair in pairs), _NO_RANK], np.int64),
        whole_pairs=whole_pairs,
        merges=index(merges),
        neighbours=index(inside),
    )


def sample_segmentations(
    tokens: Integers,
    lengths: Integers,
    *,
    table: MergeTable,
    dropout: float,
    keys: Hashes,
    max_length: int,
) -> tuple[Integers, Integers]:
    """Segments sentences anew, each as a pure function of its tokens and its key.

    Args:
      tokens: of P sentences, each followed by eos, as encoded without dropout.
      lengths: [P] tokens of each sentence, eos included.
      dropout: probability of skipping a merge, from 0 to 1.
      keys: [P] random bits of each sentence.
      max_length: a sentence that would have more tokens keeps its own.

    Returns:
      The tokens of all sentences, and [P] the number of each.

    Example:
      >>> from t2t_jax.data.vocabulary.vocabulary import Vocabulary
      >>> lines = 5 * ["low"] + 2 * ["lower"] + 6 * ["newest"] + 3 * ["widest"]
      >>> vocabulary = Vocabulary.train(lines, 22)
      >>> tokens = np.array([*vocabulary.encode(["lowest"])[0], 2])
      >>> vocabulary.pieces(tokens)
      ['▁low', 'est', '</s>']
      >>> sampled, _ = sample_segmentations(
      ...     tokens, np.array([3]), table=load_merges(vocabulary.model, key="dropout"),
      ...     dropout=0.5, keys=np.array([5], np.uint64), max_length=9
      ... )
      >>> vocabulary.pieces(sampled)
      ['▁', 'lo', 'w', 'e', 's', 't', '</s>']
    """
    sizes = table.characters.lengths[tokens]
    token_starts = np.cumsum(sizes) - sizes
    characters = table.characters.take(tokens)
    sentence_of = np.repeat(np.repeat(np.arange(len(lengths)), lengths), sizes)
    starts = _word_starts(characters, table)
    word_keys = _word_keys(sentence_of[starts], keys)
    symbols = _merge_words(characters, starts, word_keys, table, dropout)

    def restore(places: Flags) -> None:
        """Replaces the symbols of whole tokens by these tokens."""
        symbols[places] = _JOINED
        restored = places[token_starts]
        symbols[token_starts[restored]] = tokens[restored]

    # A character without a piece would be an unknown token.
    is_unknown = (symbols != _JOINED) & (table.ids.lengths[symbols] == 0)
    if is_unknown.any():
        sizes_of = np.diff(starts, append=len(symbols))
        word_of = np.repeat(np.arange(len(starts)), sizes_of)
        restore(np.isin(word_of, word_of[is_unknown]))
    left = symbols != _JOINED
    numbers = table.ids.lengths[symbols[left]]
    # Exact: the sums are far below 2^53.
    sums = np.bincount(sentence_of[left], numbers, minlength=len(lengths))
    counts = sums.astype(np.int64)
    if (too_long := counts > max_length).any():
        restore(too_long[sentence_of])
        counts = np.where(too_long, lengths, counts)
    return table.ids.take(symbols[symbols != _JOINED]), counts


def _word_starts(characters: Integers, table: MergeTable) -> Integers:
    """Returns the index of the first character of each word: what merges may join."""
    begins = np.ones(len(characters), np.bool_)
    # A merge makes a piece: it never spans characters that no piece has side by side.
    # Eos is in none.
    neighbours = table.neighbours
    begins[1:] = neighbours.find(characters[:-1], characters[1:]) == neighbours.size
    return np.flatnonzero(begins)


def _word_keys(sentence_of: Integers, keys: Hashes) -> Hashes:
    """Hashes the key of each word's sentence with its number in it, from 1."""
    first = np.searchsorted(sentence_of, sentence_of)
    return random_keys(keys[sentence_of], np.arange(len(first)) - first)


class _Words(NamedTuple):
    """W words of at most L characters, one a column, whose pieces are merged.

    Attributes:
      starts: [W] index of the first character.
      sizes: [W] number of characters.
      keys: [W] random bits.
      symbols: [L + 1, W] pieces of each word, then `no_symbol`.
      order: [L, W] rank and row of the merge of each piece with the next one.
      repeated: [W] with `whole_pairs`, the order of the merge that was made and has
        more places below; -1 if there is none.
    """

    starts: Integers
    sizes: Integers
    keys: Hashes
    symbols: Integers
    order: Integers
    repeated: Integers

    def take(self, columns: Flags) -> _Words:
        """Returns some of the words."""
        parts: list[Any] = [np.compress(columns, part, axis=-1) for part in self]
        return _Words(*parts)


def _merge_words(
    characters: Integers, starts: Integers, keys: Hashes, table: MergeTable, rate: float
) -> Integers:
    """Returns characters, in place of each merged one its piece and then `_JOINED`."""
    sizes = np.diff(starts, append=len(characters))
    widths = [*_WIDTHS, max(int(sizes.max(initial=0)), _WIDTHS[-1] + 1)]
    symbols = characters.copy()
    for shorter, width in pairwise([1, *widths]):
        chosen = np.flatnonzero((sizes > shorter) & (sizes <= width))
        rows = np.arange(width + 1)[:, None]
        inside = rows < sizes[chosen]
        places = np.where(inside, starts[chosen] + rows, 0)
        pieces = np.where(inside, characters[places], table.no_symbol)
        order = _orders(pieces[:-1], pieces[1:], rows[:-1], table, width)
        own = starts[chosen], sizes[chosen], keys[chosen]
        words = _Words(*own, pieces, order, np.full(len(chosen), -1))
        _merge(words, table, _thresholds(rate, most=width), into=symbols)
    return symbols


def _thresholds(dropout: float, *, most: int) -> Hashes:
    """Returns p, p^2, … in units of random bits, ascending, for `most` merges.

    By repeated multiplication, which is the same on every machine; a logarithm is not.
    """
    powers = np.cumprod(np.full(most, dropout))
    values: Hashes = (powers * 2.0**_RANDOM_BITS).astype(np.uint64)
    return values[values > 0][::-1]


def _orders(
    left: Integers, right: Integers, rows: Integers, table: MergeTable, width: int
) -> Integers:
    return table.ranks.take(table.merges.find(left, right)) * width + rows


def _merge(
    words: _Words, table: MergeTable, thresholds: Hashes, *, into: Integers
) -> None:
    """Merges until all possible merges of each word are skipped.

    Args:
      thresholds: the more of them are above a word's random bits, the more merges it
        skips.
      into: characters of all words, replaced by pieces and `_JOINED`.
    """
    step = 0
    while len(words.starts):
        bits = random_keys(words.keys, np.array([step])) >> np.uint64(64 - _RANDOM_BITS)
        skipped = len(thresholds) - np.searchsorted(thresholds, bits, "right")
        best = _pick(words, skipped)
        found = best < _NO_RANK
        ends = ~found & (words.repeated < 0)
        words.repeated[~found] = -1
        if ends.any():
            _store(words.take(ends), table, into)
            words, best, found = words.take(~ends), best[~ends], found[~ends]
        _join(words, np.flatnonzero(found), best[found], table)
        step += 1


def _pick(words: _Words, skipped: Integers) -> Integers:
    """Returns the order of each word's best merge but for `skipped` better ones."""
    order, repeated, width = words.order, words.repeated, len(words.order)
    best: Integers = order.min(axis=0)
    if len(some := np.flatnonzero((skipped > 0) | (repeated >= 0))):
        first = repeated[some]
        last = np.where(first < 0, _NO_RANK, first - first % width + width)
        others = np.take(order, some, axis=1)
        allowed = (others > first) & (others < last)
        ranked = np.sort(np.where(allowed, others, _NO_RANK), axis=0)
        best[some] = ranked[np.minimum(skipped[some], width - 1), np.arange(len(some))]
    return best


def _join(words: _Words, columns: Integers, best: Integers, table: MergeTable) -> None:
    """Joins a piece of some columns with the next one, and moves up the others."""
    width = len(words.order)
    symbols = np.take(words.symbols, columns, axis=1)
    order = np.take(words.order, columns, axis=1)
    rows, every = best % width, np.arange(len(columns))
    merges = table.merges.find(symbols[rows, every], symbols[rows + 1, every])
    below = np.arange(width)[:, None] > rows
    symbols[:-1] = np.where(below, symbols[1:], symbols[:-1])
    order[:-1] = np.where(below[:-1], order[1:] - 1, order[:-1])
    symbols[rows, every] = table.results.take(merges)
    # Above the first row is the last one, which holds no symbol.
    for at in (rows - 1, rows):
        left, right = symbols[at, every], symbols[at + 1, every]
        order[at, every] = _orders(left, right, at, table, width)
    words.symbols[:, columns], words.order[:, columns] = symbols, order
    if table.whole_pairs:
        same = (order > best) & (order < best - rows + width)
        words.repeated[columns] = np.where(same.any(axis=0), best, -1)


def _store(words: _Words, table: MergeTable, into: Integers) -> None:
    """Replaces the characters of words by their pieces."""
    rows = np.arange(len(words.order))[:, None]
    inside = rows < words.sizes
    pieces = words.symbols[:-1][inside]
    pieces[pieces == table.no_symbol] = _JOINED
    into[(words.starts + rows)[inside]] = pieces
