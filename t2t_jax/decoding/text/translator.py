"""Strings in, strings out: searching any number of lines."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from t2t_jax.arguments import as_lines
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.background_compile import BackgroundCompiler, Shape
from t2t_jax.decoding.engine.batching import (
    SourceBatch,
    single_line_shapes,
    source_batches,
)
from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.engine.concurrent_batches import MAX_CONCURRENT, map_concurrently
from t2t_jax.decoding.engine.device_rows import abstract_key, devices_of
from t2t_jax.decoding.engine.oom_retry import OOM_ERRORS, decode_with_oom_retry
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.search.static_params import params_from_config
from t2t_jax.decoding.text.batch_inputs import (
    check_prefix_lengths,
    encoded_prefixes,
    make_batch_inputs,
)
from t2t_jax.decoding.text.detokenize import require_finite, to_translations
from t2t_jax.decoding.text.rescoring import Rescorer
from t2t_jax.decoding.text.segments import (
    Segment,
    is_text,
    make_segments,
    warn_truncated,
)
from t2t_jax.decoding.text.translation import NOTHING, Translation, merge_parts
from t2t_jax.types import StepModel

if TYPE_CHECKING:
    from t2t_jax.data.token_cache.known_words import KnownWords
    from t2t_jax.data.vocabulary.pair import VocabularyPair


@dataclasses.dataclass(frozen=True)
class Translator:
    """Translates lines of text with a trained model.

    Lines of like length are decoded together, in at most 8 shapes, about 32 positions
    at a time: between these chunks the model's cache grows, so a batch costs what its
    longest output needs. Models of one structure share compiled programs. A line's
    translation does not depend on those around it, but for the last bits of its score.

    A line that is longer than `config.max_source_length` is split at the end of a
    sentence or a clause, and its parts are translated and joined.

    Where several devices hold the model, the rows of a batch are split over them.

    Paper: section 6.1.

    Attributes:
      model: a `StepModel` that is a pytree, its arrays at the leaves; each of its
        devices holds all of it.
      vocabularies: turn text into subwords and back.
      config: how to search.
      row_growth: where there are fewer lines than a batch has rows, it takes the next
        power of this; see `source_batches`.
      examiner: finds the scores of single tokens, or attention; None: neither.
      known_words: the source words of the training text; None where they are not known.
      at_once: batches under way where one device has the model; with 1 all is done in
        the caller's thread, and in what JAX's context managers have set there.
    """

    model: StepModel
    vocabularies: VocabularyPair
    config: DecodingConfig
    row_growth: int = 2
    examiner: Rescorer | None = None
    known_words: KnownWords | None = None
    at_once: int = MAX_CONCURRENT

    def translate(self, lines: Iterable[str]) -> list[str]:
        """Translates every line.

        Args:
          lines: any text without line ends; a blank line becomes an empty one.

        Returns:
          One line for each, in the same order.

        Raises:
          DataError: the model's scores are not numbers.
          TypeError: `lines` is a single string, or holds something else than strings.
        """
        lines = as_lines(lines, caller="translate")
        return [translation.text for translation in self.translations(lines)]

    def translations(
        self,
        lines: Iterable[str],
        *,
        first: int = 0,
        prefixes: Iterable[str] | None = None,
    ) -> list[Translation]:
        """Translates every line and says how each one went.

        Returns:
          One translation for each, in the same order.

        Raises:
          DataError: the model's scores are not numbers.
          TypeError: as in `translate`, of prefixes too.
          UserError: there are not as many prefixes as lines.
        """
        lines = as_lines(lines, caller="translations")
        found = dict(self.iter_translations(lines, first=first, prefixes=prefixes))
        return [found[number] for number in range(len(lines))]

    def iter_translations(
        self,
        lines: Iterable[str],
        *,
        first: int = 0,
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[tuple[int, Translation]]:
        """Translates batch by batch, for those who show progress.

        Sources that had to be cut are counted in one warning, at the end.

        Args:
          first: the lines before these in a longer text, for what an error says, and
            for drawing: a line's samples depend on its number in the whole text.
          prefixes: what the translation of each line must begin with, "" for nothing;
            None: nothing anywhere. Of a line that is split, that of its first part. A
            blank line becomes an empty one all the same.

        Returns:
          An iterator over (number of the line from 0, its translation), every line
          once, as soon as it is there: first those with nothing to translate, then the
          longest.

        Raises:
          ConfigError: a line does not fit the memory of a device even alone.
          DataError: the model's scores are not numbers, or a prefix is longer than the
            translation of its line may be.
          TypeError: as in `translate`, of prefixes too.
          UserError: there are not as many prefixes as lines.
        """
        lines = as_lines(lines, caller="iterate")
        if prefixes is not None:
            prefixes = as_lines(prefixes, caller="iterate", noun="prefixes")
        return self._iterate(lines, prefixes, first=first)

    def _iterate(
        self, lines: Sequence[str], prefixes: Sequence[str] | None, *, first: int
    ) -> Iterator[tuple[int, Translation]]:
        forced = encoded_prefixes(
            prefixes, self.vocabularies.target, num_lines=len(lines)
        )
        longest = self.config.max_source_length - 1
        sources = make_segments(lines, self.vocabularies.source, longest=longest)
        check_prefix_lengths(forced, sources, self.config, first=first)
        parts_of: dict[int, list[Segment]] = {}
        for source in sources:
            parts_of.setdefault(source.line, []).append(source)
        notes = self._notes(lines, prefixes)
        for number in range(len(lines)):
            if number not in parts_of:
                yield number, dataclasses.replace(NOTHING, **notes[number])
        found: dict[tuple[int, int], Translation] = {}
        for source, translation in self._decoded(sources, forced, first=first):
            number = source.line
            require_finite(translation.hypotheses, line=first + number)
            found[number, source.part] = translation
            parts = parts_of[number]
            if all((number, part.part) in found for part in parts):
                joined = merge_parts(
                    [found.pop((number, part.part)) for part in parts],
                    [part.before for part in parts],
                    length_penalty=self.config.length_penalty,
                    ranked=not self.config.sample,
                )
                yield number, dataclasses.replace(joined, **notes[number])
        warn_truncated(sources, len(lines), longest)

    def _notes(
        self, lines: Sequence[str], prefixes: Sequence[str] | None
    ) -> list[dict[str, Any]]:
        """Returns what is known of each line before it is translated."""
        begins = prefixes or [""] * len(lines)
        shares: Sequence[float | None] = [None] * len(lines)
        if self.known_words is not None:
            shares = self.known_words.unseen_shares(lines)
        return [
            {
                "invalid_utf8": not (is_text(line) and is_text(begin)),
                "unseen_words": share,
            }
            for line, begin, share in zip(lines, begins, shares, strict=True)
        ]

    def with_row_growth(self, row_growth: int) -> Translator:
        """Returns this with batches of other sizes; see `source_batches`."""
        return dataclasses.replace(self, row_growth=row_growth)

    def warm_up(self, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Compiles what a line that comes alone is likely to need.

        Args:
          is_enough: asked before each shape whether somebody waits for another.
        """
        for shape in single_line_shapes(
            self.config, devices=devices_of(self.model).size
        ):
            if is_enough():
                return
            with suppress(*OOM_ERRORS):  # What does not fit is told to who needs it.
                self._compile(shape)

    def _compile(self, shape: Shape) -> None:
        """Searches for nothing, in a batch of this shape."""
        self._search(np.full(shape, DEFAULT_IDS.pad, np.int32), [], [], first=0)

    def _search(
        self,
        source_BxS: npt.NDArray[np.int32],
        members: Sequence[Segment],
        forced: Sequence[list[int]],
        *,
        first: int,
    ) -> BeamResult:
        rows, room = len(source_BxS), source_BxS.shape[1] + self.config.max_extra_tokens
        return chunked_search(
            self.model,
            source_BxS,
            max_extra_tokens=self.config.max_extra_tokens,
            rules=params_from_config(self.config),
            **make_batch_inputs(
                self.config, members, forced, rows=rows, room=room, first=first
            ),
        )

    def _decoded(
        self, sources: Sequence[Segment], forced: Sequence[list[int]], *, first: int
    ) -> Iterator[tuple[Segment, Translation]]:
        """Decodes batch by batch, in smaller ones where they do not fit the memory."""
        devices = devices_of(self.model).size
        batches = source_batches(
            [source.subwords for source in sources],
            self.config,
            pad=DEFAULT_IDS.pad,
            eos=DEFAULT_IDS.eos,
            devices=devices,
            row_growth=self.row_growth,
        )
        decode = partial(self._decode, sources=sources, forced=forced, first=first)
        return decode_with_oom_retry(
            decode, batches, config=self.config, devices=devices, at_once=self.at_once
        )

    def _decode(
        self,
        left: deque[SourceBatch],
        at_once: int,
        *,
        sources: Sequence[Segment],
        forced: Sequence[list[int]],
        first: int,
    ) -> Iterator[tuple[Segment, Translation]]:
        """Decodes batches, and takes away those that are done."""
        # Prefixes have shapes of their own, which are not known before.
        shapes = [batch.source_BxS.shape for batch in left if not any(forced)]
        likewise = (abstract_key(self.model), self.config, any(forced))
        with BackgroundCompiler(self._compile, shapes, likewise=likewise) as ahead:

            def translated(batch: SourceBatch) -> list[tuple[Segment, Translation]]:
                members = [sources[index] for index in batch.indices]
                with ahead.compiling(batch.source_BxS.shape):
                    found = self._search(batch.source_BxS, members, forced, first=first)
                return to_translations(
                    found,
                    batch.source_BxS,
                    members,
                    vocabularies=self.vocabularies,
                    examiner=self.examiner,
                )

            for _, translations in map_concurrently(
                translated,
                left,
                is_ready=lambda batch: ahead.is_compiled(batch.source_BxS.shape),
                at_once=at_once,
            ):
                yield from translations
