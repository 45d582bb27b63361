"""The pairs of a token cache, some of them modified in each epoch: `data.modifiers`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress
from random import Random
from typing import TypeAlias

import numpy as np

from t2t_jax.data.arrays import Hashes, Integers
from t2t_jax.data.batching.modifiers import Pair, modify
from t2t_jax.data.config import MODIFIERS, SIDES, DataConfig
from t2t_jax.data.corpora.corpus import Corpus, direction_of, parts_of, truncate
from t2t_jax.data.corpora.open import open_corpus, reads_trees
from t2t_jax.data.token_cache.token_cache import TokenCache, TokenSide
from t2t_jax.data.vocabulary.bpe_dropout import random_base, random_keys
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import tags_of
from t2t_jax.errors import ConfigError
from t2t_jax.types import EOS, UNK

_Tag: TypeAlias = tuple[int, ...]  # of a language, or none
_Side: TypeAlias = tuple[_Tag, str]
_Text: TypeAlias = tuple[_Side, _Side]
_Tags: TypeAlias = tuple[_Tag, _Tag]
_Tokens: TypeAlias = tuple[Integers, Integers]  # of sentences, and [P] how many each

_CHECKED_PAIRS = 200
_LONGEST_WORD = 12  # tokens
_MOST_SHORT = 200_000  # pairs


def open_glossary(config: DataConfig) -> Corpus:
    """Opens the corpus of `data.glossary`.

    Raises:
      UserError: as `open_corpus`.
    """
    how = {"key": "data.glossary", "joiner": config.subword_joiner}
    return open_corpus(config.glossary, **how)


class ModifiedPairs:
    """The pairs of a token cache, some of them modified in each epoch.

    What a pair becomes is a pure function of its tokens, the seed, the epoch and its
    number. Each modifier is drawn by itself, so a pair may get several. A pair with an
    unknown token stays as it is, and so does one that would get one, become empty, or
    become longer than `data.max_length`.

    Args:
      both: the vocabularies.
      seed: the run's.

    Raises:
      ConfigError: the pairs are trees; or there are no words for the modifier `words`;
        or the vocabulary cannot encode what a modifier makes.
      UserError: the glossary cannot be read.
    """

    def __init__(
        self, cache: TokenCache, both: VocabularyPair, *, config: DataConfig, seed: int
    ):
        if reads_trees(cache.meta["spec"]):
            raise ConfigError(
                f"data.modifiers={config.modifiers!r} changes sentences, and the text "
                "is trees. Set config.data.modifiers=''."
            )
        self._cache, self._vocabularies, self._config = cache, both, config
        self._sides = cache.source, cache.target
        self._rates, self._seed = config.modifier_rates, seed
        tags = {*both.source.tags.values()}
        # A target begins with a tag only where a source is marked with its own.
        self._tags = tags, tags if both.source.reads_source else set[int]()
        self._words = self._find_words() if "words" in self._rates else {}
        self._require_pieces()

    def encode(self, first: int, last: int, epoch: int) -> list[_Tokens]:
        """Returns the tokens of pairs `first` to `last` - 1 in an epoch, by side."""
        numbers = np.arange(first, last)
        drawn = {
            # Of 53 bits, which a float has: a rate of 1 is every pair.
            name: (self._random(numbers, epoch, name) >> np.uint64(11)) / 2.0**53 < rate
            for name, rate in self._rates.items()
        }
        pairs = np.flatnonzero(np.any([*drawn.values()], axis=0))
        keys = self._random(first + pairs, epoch, "").tolist()
        names = [[name for name in drawn if drawn[name][pair]] for pair in pairs]
        every = zip(names, keys, self._texts(first + pairs), strict=True)
        new = self._encode(self._modify(some, key, *text) for some, key, text in every)
        # Of an unknown word the text is lost: such a pair stays as it is.
        old = (side.ids(first + pairs) for side in self._sides)
        known = [UNK not in one + other for one, other in zip(*old, strict=True)]
        fit = np.array([*map(self._fits, *new)], np.bool_) & np.array(known, np.bool_)
        return [
            _replace(side, list(compress(ids, fit)), first, last, pairs[fit])
            for side, ids in zip(self._sides, new, strict=True)
        ]

    def _random(self, pairs: Integers, epoch: int, name: str) -> Hashes:
        """Returns random bits of pairs, others for each modifier."""
        number = MODIFIERS.index(name) + 1 if name else 0
        return random_keys(random_base(self._seed, epoch, len(SIDES), number), pairs)

    def _texts(self, pairs: Integers) -> list[_Text]:
        """Decodes pairs: of each side its tag, or none, and its text."""
        found, of_sides = [], (self._sides, self._vocabularies, self._tags)
        for side, vocabulary, known in zip(*of_sides, strict=True):
            ids = side.ids(pairs)
            tags = [tuple(one[: one[0] in known]) for one in ids]
            rest = (one[len(tag) :] for one, tag in zip(ids, tags, strict=True))
            found.append(zip(tags, vocabulary.decode(rest), strict=True))
        return list(zip(*found, strict=True))

    def _encode(self, texts: Iterable[_Text]) -> list[list[list[int]]]:
        """Encodes texts, by side."""
        sides, encoded = [*zip(*texts, strict=True)] or [(), ()], []
        for side, vocabulary in zip(sides, self._vocabularies, strict=True):
            pairs = zip(side, vocabulary.encode(text for _, text in side), strict=True)
            encoded.append([[*tag, *one, EOS] for (tag, _), one in pairs])
        return encoded

    def _modify(self, names: list[str], key: int, *sides: _Side) -> _Text:
        rng, ((tag, text), (own, other)) = Random(key), sides
        if "words" in names:
            words = self._words.get((tag, own)) or [(text, other)]
            text, other = words[int(rng.random() * len(words))]
        text, other = modify([n for n in names if n != "words"], text, other, rng)
        return (tag, text), (own, other)

    def _fits(self, *sides: list[int]) -> bool:
        """Returns whether a pair may take the place of another."""
        most = self._config.max_length
        return all(
            UNK not in ids and 1 + (ids[0] in tags) < len(ids) <= most
            for ids, tags in zip(sides, self._tags, strict=True)
        )

    def _find_words(self) -> dict[_Tags, list[Pair]]:
        """Returns pairs of words by their tags: the glossary's or the text's."""
        found: dict[_Tags, list[Pair]] = {}
        if self._config.glossary:
            for part, _ in parts_of(open_glossary(self._config)):
                found.setdefault(self._tags_of(part), []).extend(part)
        else:
            short = np.flatnonzero(np.maximum(*self._cache.lengths) <= _LONGEST_WORD)
            short = short[:: -(-len(short) // _MOST_SHORT) or 1]  # of all parts
            for (tag, source), (own, target) in self._texts(short):
                if len(source.split()) == len(target.split()) == 1:
                    found.setdefault((tag, own), []).append((source, target))
        # Blank ones stay: without them others would be drawn.
        filled = {
            tags
            for tags, pairs in found.items()
            if any(all(map(str.strip, pair)) for pair in pairs)
        }
        if not filled & set(map(self._tags_of, self._cache.corpora)):
            raise ConfigError(
                "The modifier words needs pairs of words: data.glossary="
                f"{self._config.glossary!r} has none in the languages of the text, or "
                "is empty and the text has no pair of one word on each side. Set "
                "config.data.glossary, or leave words out of config.data.modifiers."
            )
        return found

    def _tags_of(self, corpus: Corpus) -> _Tags:
        vocabulary = self._vocabularies.source
        known = (one if one in vocabulary.tags else "" for one in direction_of(corpus))
        source, target = tags_of(vocabulary, *known)
        return tuple(source), tuple(target)

    def _require_pieces(self) -> None:
        """Checks that the vocabulary has pieces for what each modifier makes."""
        texts = self._texts(np.arange(min(self._cache.num_pairs, _CHECKED_PAIRS)))
        for name in self._rates:
            new = [self._modify([name], key, *text) for key, text in enumerate(texts)]
            ids = zip(new, *self._encode(new), strict=True)
            unknown = [text for text, one, other in ids if UNK in one + other]
            if 2 * len(unknown) > len(texts):
                raise ConfigError(
                    f"data.modifiers has {name}, and the vocabulary lacks pieces for "
                    f"what it makes of {len(unknown)} of the first {len(texts)} pairs, "
                    f"such as {truncate(unknown[0][0][1])!r}. Train subwords with "
                    "config.vocabulary.byte_fallback=true, or leave it out."
                )


def _replace(
    side: TokenSide, ids: Sequence[list[int]], first: int, last: int, pairs: Integers
) -> _Tokens:
    """Returns tokens and lengths of a range of sentences, some of them replaced."""
    offsets = side.offsets[first : last + 1]
    was = np.diff(offsets)
    lengths, stays = was.copy(), np.ones(len(was), np.bool_)
    lengths[pairs], stays[pairs] = [len(one) for one in ids], False
    tokens = np.empty(lengths.sum(), side.tokens.dtype)
    mask = np.repeat(stays, lengths)
    tokens[mask] = side.tokens[offsets[0] : offsets[-1]][np.repeat(stays, was)]
    tokens[~mask] = [*chain.from_iterable(ids)]
    return tokens, lengths
