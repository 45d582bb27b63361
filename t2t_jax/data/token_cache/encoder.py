"""Encodes chunks of sentence pairs as tokens; pure, so that any process can do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from t2t_jax.data.arrays import Flags, Hashes, Integers
from t2t_jax.data.config import SIDES, DataConfig
from t2t_jax.data.token_cache.filters import (
    KEPT,
    REASONS,
    DuplicateFilter,
    Reasons,
    Trigrams,
    drop_reasons,
    mark_filtered,
    pair_hashes,
    text_hashes,
)
from t2t_jax.data.token_cache.known_words import distinct_hashes
from t2t_jax.data.vocabulary.tokenizers import Tokenizer, load_tokenizer, tags_of

Examples: TypeAlias = dict[str, list[dict[str, Any]]]
"""By reason the first three dropped pairs, truncated, and their lines."""


def max_characters(config: DataConfig) -> int:
    """Returns the length in characters above which a line is not encoded."""
    # A piece has at most 16 characters, so a line of 64 per allowed subword is
    # certainly too long and need not be encoded.
    return 64 * config.max_length


class Chunk(NamedTuple):
    """Consecutive pairs of a corpus.

    Attributes:
      part: index of the corpus in the mixture.
      first: line number of its first pair, from 1.
      direction: the languages of its sources and targets; "" and "" for no tags.
      tag: with which, and a space, the sources begin; "" for none.
    """

    part: int
    first: int
    sources: list[str]
    targets: list[str]
    direction: tuple[str, str] = ("", "")
    tag: str = ""


class EncodedSentences(NamedTuple):
    """P sentences of one language.

    Attributes:
      tokens: of all sentences, each followed by eos.
      lengths: [P] tokens of each, eos included; int32.
    """

    tokens: Integers
    lengths: Integers
    hashes: Hashes

    def select(self, mask: Flags) -> EncodedSentences:
        """Returns the sentences for which `mask` [P] is true."""
        tokens = self.tokens[np.repeat(mask, self.lengths)]
        return EncodedSentences(tokens, self.lengths[mask], self.hashes[mask])


class Encoded(NamedTuple):
    """Result of encoding a chunk of P pairs, without its text.

    Attributes:
      part: as of the chunk, and `first`.
      reasons: [P] why each was dropped, an index into `filters.REASONS`, or `KEPT`.
      source_words: unique hashes of the words of `source`, sorted.
      examples: of dropped pairs, once they are known.
    """

    part: int
    first: int
    reasons: Reasons
    source: EncodedSentences
    target: EncodedSentences
    source_words: Hashes
    examples: Examples | None = None

    def without_duplicates(self, seen: DuplicateFilter) -> Encoded:
        """Drops the pairs that occurred before, and adds the others to `seen`."""
        is_new = seen.is_new(pair_hashes(self.source.hashes, self.target.hashes))
        if is_new.all():
            return self
        reasons = self.reasons.copy()
        reasons[reasons == KEPT] = np.where(is_new, KEPT, REASONS.index("duplicates"))
        # source_words stays: duplicates add no words.
        source, target = self.source.select(is_new), self.target.select(is_new)
        return self._replace(reasons=reasons, source=source, target=target)


@dataclass
class PairEncoder:
    """Encodes and filters pairs, on one core.

    Args:
      trigrams: of each language, for the filter `language`.
    """

    models: tuple[bytes, bytes]
    config: DataConfig
    dtype: str
    trigrams: Mapping[str, Trigrams] | None = None

    def __post_init__(self) -> None:
        load = partial(load_tokenizer, name="the vocabulary", advice="")
        tokenizers = {model: load(model) for model in set(self.models)}
        self._tokenizers = [tokenizers[model] for model in self.models]

    def encode(self, chunk: Chunk) -> Encoded:
        """Encodes pairs, special pieces as ordinary text, and filters them."""
        part, first, sources, targets, direction, tag = chunk
        tags = tags_of(self._tokenizers[0], *direction)
        sides = zip(self._tokenizers, (sources, targets), tags, strict=True)
        (source, lengths), (target, others) = (self._encode_side(*one) for one in sides)
        number = [*map(len, tags)]
        if tag:  # Filters do not see it.
            number[0] += len(self._tokenizers[0].encode([tag], num_threads=1)[0])
            sources = [line.removeprefix(f"{tag} ") for line in sources]
            source = source._replace(hashes=text_hashes(sources))
        copies = source.hashes == target.hashes
        reasons = drop_reasons(
            (lengths, others), copies=copies, tags=number, config=self.config
        )
        languages = direction if any(direction) else SIDES
        how: Any = {"config": self.config, "trigrams": self.trigrams}
        reasons = mark_filtered(reasons, sources, targets, languages=languages, **how)
        kept = reasons == KEPT
        words = distinct_hashes(compress(sources, kept))
        sides_kept = source.select(kept), target.select(kept)
        return Encoded(part, first, reasons, *sides_kept, words)

    def _encode_side(
        self, tokenizer: Tokenizer, lines: Sequence[str], tag: list[int]
    ) -> tuple[EncodedSentences, Integers]:
        """Returns lines, and [P] lengths above the limit for those not encoded."""
        most = max_characters(self.config)
        skipped = [len(line) > most for line in lines]
        bounded = [line if len(line) <= most else "" for line in lines]
        # More threads gain nothing: Python's lock serialises the lists of ids.
        ids = tokenizer.encode(bounded, add_eos=True, num_threads=1)
        if tag:  # A blank line stays its eos, and is dropped.
            ids = [[*tag, *one] if len(one) > 1 else one for one in ids]
        lengths = np.array([*map(len, ids)], np.int32)
        tokens = np.fromiter(chain.from_iterable(ids), self.dtype, lengths.sum())
        filtered = np.where(skipped, self.config.max_length + 1, lengths)
        return EncodedSentences(tokens, lengths, text_hashes(lines)), filtered
