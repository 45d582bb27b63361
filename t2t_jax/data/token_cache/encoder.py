"""Text to tokens, a chunk of pairs at a time: pure, so that any process can do it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.batching.packing import Integers
from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.filters import (
    KEPT,
    Flags,
    Hashes,
    drop_reasons,
    text_hashes,
)
from t2t_jax.data.token_cache.known_words import distinct_hashes

# A piece has 16 characters at most, so a line four times beyond that for each of its
# subwords is too long whatever its pieces are, and is not worth encoding.
_CHARACTERS_PER_SUBWORD = 64
_NO_HASHES: Hashes = np.zeros(0, np.uint64)


def most_characters(config: DataConfig) -> int:
    """Returns how long a line may be to be worth encoding."""
    return _CHARACTERS_PER_SUBWORD * config.max_length


class EncodedSentences(NamedTuple):
    """Sentences of one language.

    Attributes:
      tokens: all of them on end, each followed by eos.
      lengths: [P] tokens of each, eos included; int32.
      hashes: [P] of their text.
    """

    tokens: Integers
    lengths: Integers
    hashes: Hashes

    def select(self, chosen: Flags) -> EncodedSentences:
        """Returns the sentences for which `chosen` [P] is true."""
        return EncodedSentences(
            self.tokens[np.repeat(chosen, self.lengths)],
            self.lengths[chosen],
            self.hashes[chosen],
        )


class Encoded(NamedTuple):
    """What became of a chunk of P pairs.

    Attributes:
      reasons: [P] why each was dropped, a number in `filters.REASONS`, or `KEPT`.
      source: the kept pairs' sentences to translate.
      target: their translations.
      source_words: hashes of the words of `source`, sorted, each once.
    """

    reasons: npt.NDArray[np.int8]
    source: EncodedSentences
    target: EncodedSentences
    source_words: Hashes = _NO_HASHES

    def with_reasons(self, reasons: npt.NDArray[np.int8]) -> Encoded:
        """Returns this without the pairs for which `reasons` [P] has one more."""
        still = reasons[self.reasons == KEPT] == KEPT
        if still.all():
            return self
        # Duplicates have no words of their own.
        return self._replace(
            reasons=reasons,
            source=self.source.select(still),
            target=self.target.select(still),
        )


class PairEncoder:
    """Encodes and filters pairs, on one core.

    Args:
      models: serialised SentencePiece models of source and target.
      dtype: of the tokens.
    """

    def __init__(self, models: tuple[bytes, bytes], config: DataConfig, dtype: str):
        import sentencepiece

        self.recipe = (models, config, dtype)
        self._config, self._dtype = config, dtype
        processors = {
            model: sentencepiece.SentencePieceProcessor(model_proto=model)
            for model in set(models)
        }
        self._processors = [processors[model] for model in models]

    def encode(self, sources: Sequence[str], targets: Sequence[str]) -> Encoded:
        """Cuts pairs into subwords, and drops those that the configuration refuses.

        Args:
          sources: [P] sentences to translate; what looks like a special piece in them
            is ordinary text.
          targets: [P] their translations.
        """
        texts = (sources, targets)
        source, target = (
            self._encode_side(processor, lines)
            for processor, lines in zip(self._processors, texts, strict=True)
        )
        reasons = drop_reasons(
            self._judged_lengths(sources, source),
            self._judged_lengths(targets, target),
            copies=source.hashes == target.hashes,
            config=self._config,
        )
        kept = reasons == KEPT
        words = distinct_hashes(compress(sources, kept))
        return Encoded(reasons, source.select(kept), target.select(kept), words)

    def _encode_side(self, processor: Any, lines: Sequence[str]) -> EncodedSentences:
        most = most_characters(self._config)
        # Its threads would make the lists of ids one after the other all the same.
        ids: list[list[int]] = processor.encode(
            [line if len(line) <= most else "" for line in lines],
            out_type=int,
            add_eos=True,
            num_threads=1,
        )
        lengths = np.fromiter(map(len, ids), np.int32, len(ids))
        total = int(lengths.sum())
        tokens = np.fromiter(chain.from_iterable(ids), self._dtype, total)
        return EncodedSentences(tokens, lengths, text_hashes(lines))

    def _judged_lengths(self, lines: Sequence[str], side: EncodedSentences) -> Integers:
        """Returns [P] lengths in which lines that were not encoded are too long."""
        most = most_characters(self._config)
        hopeless = np.fromiter((len(line) > most for line in lines), np.bool_)
        return np.where(hopeless, self._config.max_length + 1, side.lengths)
