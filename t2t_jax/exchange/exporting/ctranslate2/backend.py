"""CTranslate2 as the second model of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.backends import Logs, Output, Pair
from t2t_jax.types import BOS, PAD, UNK


def piece_names(vocabularies: VocabularyPair) -> tuple[list[str], list[str]]:
    """Returns the pieces of source and target, by which CTranslate2 looks up ids.

    Special pieces have the same names on both sides, as CTranslate2 requires. Of equal
    pieces the vocabulary uses the first, so that the others can have other names.
    """
    source, target = (side.pieces(range(side.size)) for side in vocabularies)
    source[: UNK + 1] = target[: UNK + 1]
    return _distinct(source), _distinct(target)


def suppressed_pieces(config: DecodingConfig, pieces: Sequence[str]) -> list[str]:
    """Returns the target pieces that are never generated.

    Args:
      pieces: of the target vocabulary, by id.

    Example:
      >>> suppressed_pieces(DecodingConfig(), ["<pad>", "<s>", "</s>", "<unk>"])
      ['<pad>', '<s>']
    """
    return [pieces[id_] for id_ in (PAD, BOS, *([] if config.allow_unk else [UNK]))]


def _distinct(pieces: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for id_, piece in enumerate(pieces):
        name = piece
        while name in found:
            name = f"{name}<{id_}>"
        found[name] = None
    return list(found)


class CTranslate2Backend:
    """A CTranslate2 model on the CPU.

    Args:
      positions: number of positions of the model.

    Attributes:
      compute_type: number format of the computation, which depends on the processor.
    """

    def __init__(
        self,
        directory: Path,
        *,
        vocabularies: VocabularyPair,
        config: DecodingConfig,
        positions: int,
    ):
        import ctranslate2

        # Its threads wait for one another after every operation: beside another
        # program several took minutes for 100 lines that one translates in seconds.
        self._translator: Any = ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=1, intra_threads=1
        )
        self.compute_type: str = self._translator.compute_type
        self._source, self._target = piece_names(vocabularies)
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self._vocabularies, self._config = vocabularies, config
        self._positions = positions
        self._suppressed = suppressed_pieces(config, self._target)

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates with CTranslate2 within the length limits of this package.

        Its alpha is the exponent of n, whatever the configuration divides by. A call
        has one limit, so lines of equal length are translated in one.
        """
        subwords = self._vocabularies.source.encode(lines)
        found: list[tuple[int, ...]] = [()] * len(lines)
        by_length = sorted(range(len(lines)), key=lambda number: len(subwords[number]))
        for length, group in groupby(by_length, lambda number: len(subwords[number])):
            numbers = list(group)
            limit = min(
                length + self._config.max_extra_tokens,
                self._config.longest_output(length + 1),
                self._positions,
            )
            results = self._translator.translate_batch(
                [self._pieces(self._source, subwords[number]) for number in numbers],
                beam_size=1 if greedy else self._config.beam_size,
                length_penalty=0 if greedy else self._config.length_penalty,
                max_input_length=0,
                max_decoding_length=limit,
                min_decoding_length=self._config.min_tokens,
                suppress_sequences=[[piece] for piece in self._suppressed],
                return_end_token=True,
                max_batch_size=64,
            )
            for number, result in zip(numbers, results, strict=True):
                found[number] = tuple(self._ids[p] for p in result.hypotheses[0])
        texts = self._vocabularies.target.decode(found)
        return [Output(*pair) for pair in zip(texts, found, strict=True)]

    def score(self, pairs: Sequence[Pair]) -> list[Logs]:
        """Scores given tokens; CTranslate2 appends eos itself."""
        results = self._translator.score_batch(
            [self._pieces(self._source, source) for source, _ in pairs],
            [self._pieces(self._target, target) for _, target in pairs],
            max_batch_size=64,
            max_input_length=0,
        )
        return [np.asarray(result.log_probs, np.float32) for result in results]

    @staticmethod
    def _pieces(side: Sequence[str], ids: Iterable[int]) -> list[str]:
        return [side[id_] for id_ in ids]
