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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from t2t_jax.data.arrays import GOLDEN, Flags, Hashes, Integers
from t2t_jax.data.vocabulary.merge_table import NO_RANK, MergeTable

SAMPLING_VERSION = "1"
"""Version of the algorithm; versions segment the same sentences differently."""

_JOINED = -1
_RANDOM_BITS = 53
# Words are segmented together with those of at most a third more characters.
_WIDTHS = np.array([2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 40, 64, 128])
_FEW = 0.7  # of the words of a grid: then it is made smaller


def random_keys(base: Hashes, numbers: Integers) -> Hashes:
    """Returns random bits for each number, a pure function of `base` [1] and it."""
    return _mix(base + _multiples(numbers + 1))


def _multiples(numbers: Integers) -> Hashes:
    return numbers.astype(np.uint64) * GOLDEN


def _mix(values: Hashes) -> Hashes:
    """Hashes 64 bits to 64 bits (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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
      >>> from t2t_jax.data.config import VocabularyConfig
      >>> from t2t_jax.data.vocabulary.merge_table import load_merges
      >>> from t2t_jax.data.vocabulary.vocabulary import Vocabulary
      >>> lines = 5 * ["low"] + 2 * ["lower"] + 6 * ["newest"] + 3 * ["widest"]
      >>> vocabulary = Vocabulary.train(lines, config=VocabularyConfig(size=22), seed=0)
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
    sentences = _split_words(tokens, lengths, table)
    sizes = np.diff(sentences.starts, append=len(sentences.symbols))
    words = _Words(sentences.starts, sizes, _word_keys(sentences, keys))
    widths = np.append(_WIDTHS, max(int(sizes.max(initial=0)), _WIDTHS[-1] + 1))
    groups = np.where(sizes < 2, -1, np.searchsorted(widths, sizes))
    symbols = sentences.symbols.copy()
    for group, width in enumerate(widths.tolist()):
        chosen = np.flatnonzero(groups == group)
        if len(chosen):
            grid = _Grid(symbols, words.take(chosen), table, width)
            grid.merge(_thresholds(dropout, most=width), into=symbols)
    # A character without a piece would be an unknown token.
    has_unknown = np.zeros(len(sizes), np.bool_)
    word_of = np.repeat(np.arange(len(sizes)), sizes)
    left = symbols != _JOINED
    has_unknown[word_of[left][table.ids.lengths[symbols[left]] == 0]] = True
    _restore(symbols, has_unknown[word_of], sentences, tokens)
    counts = _count_tokens(symbols, sentences, table, len(lengths))
    if (too_long := counts > max_length).any():
        _restore(symbols, too_long[sentences.sentence_of], sentences, tokens)
        counts = np.where(too_long, lengths, counts)
    return table.ids.take(symbols[symbols != _JOINED]), counts


class _Sentences(NamedTuple):
    """P sentences as characters, and the words that merges may join them to.

    Attributes:
      symbols: [C] characters of all sentences.
      sentence_of: [C] the sentence of each.
      starts: [W] index of each word's first character.
      token_starts: index of each token's first character.
    """

    symbols: Integers
    sentence_of: Integers
    starts: Integers
    token_starts: Integers


class _Words(NamedTuple):
    """Words: index of the first character, number of characters, random bits."""

    starts: Integers
    sizes: Integers
    keys: Hashes

    def take(self, mask: Integers | Flags) -> _Words:
        return _Words(self.starts[mask], self.sizes[mask], self.keys[mask])


def _split_words(tokens: Integers, lengths: Integers, table: MergeTable) -> _Sentences:
    symbols = table.characters.take(tokens)
    sizes = table.characters.lengths[tokens]
    begins = np.ones(len(symbols), np.bool_)
    # A merge makes a piece: it never spans characters that no piece has side by side.
    # Eos is in none.
    begins[1:] = ~table.may_join(symbols[:-1], symbols[1:])
    sentence_of = np.repeat(np.repeat(np.arange(len(lengths)), lengths), sizes)
    starts = np.flatnonzero(begins)
    return _Sentences(symbols, sentence_of, starts, np.cumsum(sizes) - sizes)


def _word_keys(sentences: _Sentences, keys: Hashes) -> Hashes:
    """Hashes the key of each word's sentence with its number in it, from 1."""
    sentence = sentences.sentence_of[sentences.starts]
    first = np.searchsorted(sentence, sentence)
    numbers = np.arange(1, len(first) + 1) - first
    return _mix(keys[sentence] + _multiples(numbers))


def _thresholds(dropout: float, *, most: int) -> Hashes:
    """Returns p, p^2, … in units of random bits, ascending, for `most` merges.

    By repeated multiplication, which is the same on every machine; a logarithm is not.
    """
    values: list[int] = []
    power = dropout
    while len(values) < most and (threshold := int(power * 2**_RANDOM_BITS)):
        values.append(threshold)
        power *= dropout
    return np.array(values[::-1], np.uint64)


class _Grid:
    """W words of at most L characters, one a column, whose pieces are merged.

    Attributes:
      symbols: [L + 1, W] pieces of each word, then `no_symbol`.
      order: [L, W] rank and row of the merge of each piece with the next one.
      repeated: [W] with `whole_pairs`, the order of the merge that was made and has
        more places below; -1 if there is none.
    """

    def __init__(self, symbols: Integers, words: _Words, table: MergeTable, width: int):
        self.words, self.table, self.width = words, table, width
        rows = np.arange(width + 1)[:, None]
        inside = rows < words.sizes
        places = np.where(inside, words.starts + rows, 0)
        self.symbols = np.where(inside, symbols[places], table.no_symbol)
        self.order = self._orders(self.symbols[:-1], self.symbols[1:], rows[:-1])
        self.repeated = np.full(len(words.starts), -1)

    def _orders(self, left: Integers, right: Integers, rows: Integers) -> Integers:
        ranks = self.table.ranks.take(self.table.find(left, right))
        return ranks * self.width + rows

    def merge(self, thresholds: Hashes, *, into: Integers) -> None:
        """Merges until all possible merges of each word are skipped.

        Args:
          thresholds: the more of them are above a word's random bits, the more merges
            it skips.
          into: characters of all words, replaced by pieces and `_JOINED`.
        """
        active: Integers = np.arange(len(self.words.starts))
        step = 0
        while len(active):
            step += 1
            bits = _mix(self.words.keys[active] + _multiples(np.array([step])))
            bits >>= np.uint64(64 - _RANDOM_BITS)
            skipped = len(thresholds) - np.searchsorted(thresholds, bits, "right")
            best = self._pick(active, skipped)
            found = best < NO_RANK
            ends = ~found & (self.repeated[active] < 0)
            self.repeated[active[~found]] = -1
            self._join(active[found], best[found])
            active = active[~ends]
            if len(active) < _FEW * len(self.words.starts):
                active = self._keep(active, into)

    def _pick(self, columns: Integers, skipped: Integers) -> Integers:
        """Returns the order of a word's best merge but for `skipped` better ones."""
        order, repeated = self.order, self.repeated[columns]
        if len(columns) < order.shape[1]:
            order = np.take(order, columns, axis=1)
        best: Integers = order.min(axis=0)
        some = np.flatnonzero((skipped > 0) | (repeated >= 0))
        if len(some):
            first = repeated[some]
            last = np.where(first < 0, NO_RANK, first - first % self.width + self.width)
            others = np.take(order, some, axis=1)
            allowed = (others > first) & (others < last)
            ranked = np.sort(np.where(allowed, others, NO_RANK), axis=0)
            row = np.minimum(skipped[some], self.width - 1)
            best[some] = ranked[row, np.arange(len(some))]
        return best

    def _join(self, columns: Integers, order: Integers) -> None:
        """Joins a piece of some columns with the next one, and moves up the others."""
        symbols = np.take(self.symbols, columns, axis=1)
        orders = np.take(self.order, columns, axis=1)
        rows, every = order % self.width, np.arange(len(columns))
        merges = self.table.find(symbols[rows, every], symbols[rows + 1, every])
        below = np.arange(self.width)[:, None] > rows
        symbols[:-1] = np.where(below, symbols[1:], symbols[:-1])
        orders[:-1] = np.where(below[:-1], orders[1:] - 1, orders[:-1])
        symbols[rows, every] = self.table.results.take(merges)
        # Above the first row is the last one, which holds no symbol.
        for at in (rows - 1, rows):
            left, right = symbols[at, every], symbols[at + 1, every]
            orders[at, every] = self._orders(left, right, at)
        self.symbols[:, columns], self.order[:, columns] = symbols, orders
        if self.table.whole_pairs:
            same = (orders > order) & (orders < order - rows + self.width)
            self.repeated[columns] = np.where(same.any(axis=0), order, -1)

    def _keep(self, columns: Integers, into: Integers) -> Integers:
        """Stores the words, and keeps some of them; returns the columns left."""
        rows = np.arange(self.width)[:, None]
        inside = rows < self.words.sizes
        pieces = self.symbols[:-1][inside]
        pieces[pieces == self.table.no_symbol] = _JOINED
        into[(self.words.starts + rows)[inside]] = pieces
        self.words = self.words.take(columns)
        self.symbols = np.take(self.symbols, columns, axis=1)  # contiguous
        self.order = np.take(self.order, columns, axis=1)
        self.repeated = self.repeated[columns]
        return np.arange(len(columns))


def _restore(
    symbols: Integers, places: Flags, sentences: _Sentences, tokens: Integers
) -> None:
    """Replaces the characters of whole tokens by these tokens."""
    symbols[places] = _JOINED
    restored = places[sentences.token_starts]
    symbols[sentences.token_starts[restored]] = tokens[restored]


def _count_tokens(
    symbols: Integers, sentences: _Sentences, table: MergeTable, count: int
) -> Integers:
    """Returns [P] the tokens of each sentence."""
    left = symbols != _JOINED
    numbers = table.ids.lengths[symbols[left]]
    # Exact: the sums are far below 2^53.
    sums = np.bincount(sentences.sentence_of[left], numbers, minlength=count)
    return sums.astype(np.int64)
