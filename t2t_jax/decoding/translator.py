"""Strings in, strings out: beam search over any number of lines."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_jax.decoding.beam_search import BeamResult
from t2t_jax.decoding.beam_step import BeamRules
from t2t_jax.decoding.chunked_search import chunked_beam_search
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.devices import mesh_of
from t2t_jax.decoding.lengths import OUR_IDS
from t2t_jax.decoding.source_batches import source_batches
from t2t_jax.errors import DataError
from t2t_jax.types import StepModel

if TYPE_CHECKING:
    from t2t_jax.data.vocabularies import Vocabularies

_LOGGER = logging.getLogger(__name__)


class Translation(NamedTuple):
    """What became of one line.

    Attributes:
      text: the translation, one line; empty for an empty line.
      score: log-probability / `((5 + n) / 6) ** alpha`; 0 for an empty line.
      log_probability: natural logarithm, summed over the tokens, the eos included.
      num_tokens: n, the decoded tokens, the eos included.
      truncated: whether the translation had not ended when it reached its limit.
      source_cut: whether the source was longer than `decoding.max_source_length`.
    """

    text: str
    score: float
    log_probability: float
    num_tokens: int
    truncated: bool
    source_cut: bool


_NOTHING = Translation("", 0.0, 0.0, 0, truncated=False, source_cut=False)


@dataclasses.dataclass(frozen=True)
class Translator:
    """Translates lines of text with a trained model.

    Lines of like length are decoded together, in at most 8 shapes, about 32 positions
    at a time: between these chunks the model's cache grows, so a batch costs what its
    longest output needs. Compiled programs are shared by all translators whose models
    have the same structure: new weights compile nothing. A line's translation does not
    depend on the lines around it, but for the last bits of its score.

    Where several devices hold the model, the rows of a batch are split over them.

    Paper: section 6.1.

    Attributes:
      model: a `StepModel` that is a pytree, its arrays at the leaves; each of its
        devices holds all of it.
      vocabularies: turn text into subwords and back.
      config: how to search.
      row_growth: where there are fewer lines than a batch has rows, it takes the next
        power of this; see `source_batches`.
    """

    model: StepModel
    vocabularies: Vocabularies
    config: DecodingConfig
    row_growth: int = 2

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translates every line.

        Args:
          lines: any text without line ends; a blank line becomes an empty one.

        Returns:
          One line for each, in the same order.

        Raises:
          DataError: the model's scores are not numbers.
        """
        return [translation.text for translation in self.translations(lines)]

    def translations(
        self, lines: Sequence[str], *, first: int = 0
    ) -> list[Translation]:
        """Translates every line and says how each one went.

        Args:
          lines: as in `translate`.
          first: as in `iterate`.

        Returns:
          One translation for each, in the same order.

        Raises:
          DataError: the model's scores are not numbers.
        """
        found = dict(self.iterate(lines, first=first))
        return [found[number] for number in range(len(lines))]

    def iterate(
        self, lines: Sequence[str], *, first: int = 0
    ) -> Iterator[tuple[int, Translation]]:
        """Translates batch by batch, for those who show progress.

        Sources that had to be cut are counted in one warning, at the end.

        Args:
          lines: as in `translate`.
          first: the lines before these in a longer text, for what an error says.

        Yields:
          (number of the line from 0, its translation), every line once, as soon as it
          is there: first those with nothing to translate, then the longest.

        Raises:
          DataError: the model's scores are not numbers.
        """
        subwords = self._encode(lines)
        longest = self.config.max_source_length - 1
        rules = BeamRules(self.config.beam_size, self.config.length_penalty)
        numbers = [number for number, source in enumerate(subwords) if source]
        for number, source in enumerate(subwords):
            if not source:
                yield number, _NOTHING
        sources = [subwords[number][:longest] for number in numbers]
        for batch in source_batches(
            sources,
            self.config,
            pad=OUR_IDS.pad,
            eos=OUR_IDS.eos,
            devices=mesh_of(self.model).size,
            row_growth=self.row_growth,
        ):
            result = chunked_beam_search(
                self.model,
                batch.source_BxS,
                max_extra_tokens=self.config.max_extra_tokens,
                rules=rules,
            )
            batch_numbers = [numbers[index] for index in batch.indices]
            translations = self._decode(result, len(batch_numbers))
            for number, translation in zip(batch_numbers, translations, strict=True):
                _require_finite(translation.score, first + number)
                was_cut = len(subwords[number]) > longest
                yield number, translation._replace(source_cut=was_cut)
        num_cut = sum(len(source) > longest for source in subwords)
        if num_cut:
            _LOGGER.warning(
                "%d of %d lines were longer than %d subwords and were cut there. "
                "Raise config.decoding.max_source_length to read them whole.",
                num_cut,
                len(lines),
                longest,
            )

    def _encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Finds the subwords of each line; none if it is blank."""
        subwords: list[list[int]] = [[] for _ in lines]
        numbers = [number for number, line in enumerate(lines) if line.strip()]
        encoded = self.vocabularies.source.encode(
            [_whole_characters(lines[number]) for number in numbers]
        )
        for number, source in zip(numbers, encoded, strict=True):
            subwords[number] = list(source)
        return subwords

    def _decode(self, result: BeamResult, num_sentences: int) -> list[Translation]:
        """Reads the best output of each sentence; the rows beyond are empty."""
        tokens, scores, log_probabilities, lengths, finished = (
            np.asarray(leaf)[:num_sentences, 0].tolist() for leaf in result
        )
        # The eos is not text; an output that was truncated has none.
        ends = [n - has_eos for n, has_eos in zip(lengths, finished, strict=True)]
        texts = self.vocabularies.target.decode(
            [row[:end] for row, end in zip(tokens, ends, strict=True)]
        )
        return [
            Translation(
                text=texts[row],
                score=scores[row],
                log_probability=log_probabilities[row],
                num_tokens=lengths[row],
                truncated=not finished[row],
                source_cut=False,
            )
            for row in range(num_sentences)
        ]


def _whole_characters(line: str) -> str:
    """Puts U+FFFD for halves of characters, which JSON can bring and UTF-8 cannot."""
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _require_finite(score: float, number: int) -> None:
    if not math.isfinite(score):
        raise DataError(
            f"The score of line {number + 1} must be a finite number but is {score}: "
            "the model's weights are damaged or its computation overflows. "
            "Take another checkpoint, or compute in float32."
        )
