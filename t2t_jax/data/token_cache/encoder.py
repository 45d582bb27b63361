"""Encodes chunks of sentence pairs as tokens; pure, so that any process can do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import Flags, Hashes, Integers
from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.filters import (
    KEPT,
    Trigrams,
    drop_reasons,
    mark_filtered,
    text_hashes,
)
from t2t_jax.data.token_cache.known_words import distinct_hashes
from t2t_jax.data.vocabulary.tokenizers import Tokenizer, load_tokenizer, tags_of

# A piece has at most 16 characters, so a line of 64 per allowed subword is certainly
# too long and need not be encoded.
_CHARACTERS_PER_SUBWORD = 64
_NO_HASHES: Hashes = np.zeros(0, np.uint64)


def max_characters(config: DataConfig) -> int:
    """Returns the length in characters above which a line is not encoded."""
    return _CHARACTERS_PER_SUBWORD * config.max_length


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
        return EncodedSentences(
            self.tokens[np.repeat(mask, self.lengths)],
            self.lengths[mask],
            self.hashes[mask],
        )


class Encoded(NamedTuple):
    """Result of encoding a chunk of P pairs.

    Attributes:
      reasons: [P] why each was dropped, an index into `filters.REASONS`, or `KEPT`.
      source_words: unique hashes of the words of `source`, sorted.
    """

    reasons: npt.NDArray[np.int8]
    source: EncodedSentences
    target: EncodedSentences
    source_words: Hashes = _NO_HASHES

    def with_reasons(self, reasons: npt.NDArray[np.int8]) -> Encoded:
        """Drops the pairs for which `reasons` [P] has one more."""
        still = reasons[self.reasons == KEPT] == KEPT
        if still.all():
            return self
        # source_words stays: duplicates add no words.
        source, target = self.source.select(still), self.target.select(still)
        return self._replace(reasons=reasons, source=source, target=target)


class PairEncoder:
    """Encodes and filters pairs, on one core.

    Args:
      trigrams: of each language, for the filter `language`.
    """

    def __init__(
        self,
        models: tuple[bytes, bytes],
        config: DataConfig,
        dtype: str,
        trigrams: Mapping[str, Trigrams] | None = None,
    ):
        self.recipe = (models, config, dtype, trigrams)
        self._config, self._dtype, self._trigrams = config, dtype, trigrams
        tokenizers = {
            model: load_tokenizer(model, name="the vocabulary", advice="")
            for model in set(models)
        }
        self._tokenizers = [tokenizers[model] for model in models]

    def encode(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        direction: tuple[str, str] = ("", ""),
        tag: str = "",
    ) -> Encoded:
        """Encodes pairs, special pieces as ordinary text, and filters them.

        Args:
          direction: the languages of both, which have tags; "" and "" for no tags.
          tag: as of a `Chunk`; filters do not see it.
        """
        tags = tags_of(self._tokenizers[0], *direction)
        sides = zip(self._tokenizers, (sources, targets), tags, strict=True)
        (source, lengths), (target, others) = (self._encode_side(*one) for one in sides)
        if tag:
            sources = [line.removeprefix(f"{tag} ") for line in sources]
            source = source._replace(hashes=text_hashes(sources))
        copies = source.hashes == target.hashes
        reasons = drop_reasons(lengths, others, copies=copies, config=self._config)
        how: Any = {"languages": direction} if any(direction) else {}
        how |= {"config": self._config, "trigrams": self._trigrams}
        reasons = mark_filtered(reasons, sources, targets, **how)
        kept = reasons == KEPT
        words = distinct_hashes(compress(sources, kept))
        return Encoded(reasons, source.select(kept), target.select(kept), words)

    def _encode_side(
        self, tokenizer: Tokenizer, lines: Sequence[str], tag: list[int]
    ) -> tuple[EncodedSentences, Integers]:
        """Returns lines, and [P] lengths above the limit for those not encoded."""
        most = max_characters(self._config)
        skipped = np.fromiter((len(line) > most for line in lines), np.bool_)
        bounded = [line if len(line) <= most else "" for line in lines]
        # More threads gain nothing: Python's lock serialises the lists of ids.
        ids = tokenizer.encode(bounded, add_eos=True, num_threads=1)
        if tag:  # A blank line stays its eos, and is dropped.
            ids = [[*tag, *one] if len(one) > 1 else one for one in ids]
        lengths = np.fromiter(map(len, ids), np.int32, len(ids))
        total = int(lengths.sum())
        tokens = np.fromiter(chain.from_iterable(ids), self._dtype, total)
        filtered = np.where(skipped, self._config.max_length + 1, lengths)
        return EncodedSentences(tokens, lengths, text_hashes(lines)), filtered
