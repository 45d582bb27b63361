"""Translates lines of text: tokenize, batch, search, detokenize."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.data.line_arguments import as_lines
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import SourceBatch, source_batches, source_lengths
from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.engine.device_rows import abstract_key, devices_of
from t2t_jax.decoding.engine.run_batches import (
    MAX_CONCURRENT,
    OOM_ERRORS,
    Shape,
    rows_that_fit,
    run_batches,
)
from t2t_jax.decoding.scoring.teacher_forcing import Rescorer
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.static_params import SearchParams, params_from_config
from t2t_jax.decoding.search.tree_constraint import TreeConstraint, tree_constraint
from t2t_jax.decoding.shortlist import Shortlist, load_shortlist
from t2t_jax.decoding.text.segments import (
    Segment,
    is_text,
    make_segments,
    warn_truncated,
)
from t2t_jax.decoding.text.stages import (
    MinimumBayesRisk,
    Parses,
    Prefixes,
    Samples,
    Stage,
    Trees,
    UnseenWords,
)
from t2t_jax.decoding.text.terms import TermEncoder, TermStage, check_terms
from t2t_jax.decoding.text.translation import (
    EMPTY_TRANSLATION,
    Translation,
    merge_parts,
    to_translations,
)
from t2t_jax.errors import UserError
from t2t_jax.types import PAD, UNK, StepModel

if TYPE_CHECKING:
    from t2t_jax.data.source_lines import SourceLines
    from t2t_jax.data.token_cache.known_words import KnownWords
    from t2t_jax.data.vocabulary.pair import VocabularyPair

_WARM_LENGTHS = 3  # of most single lines


@dataclasses.dataclass(frozen=True)
class Translator:
    """Translates lines of text with a trained model.

    Lines of similar length share a batch, in at most 8 shapes, and are decoded about 32
    positions at a time: between these chunks the model's cache grows, so a batch costs
    what its longest output needs. Models of one structure share compiled programs. A
    line's translation does not depend on those around it, except for the last bits of
    its score.

    Lines are translated sentence by sentence where `config.segment` says so. What is
    longer than `config.max_source_length` is split at the end of a sentence or a
    clause. The translations of the parts are joined.

    Paper: section 6.1.

    Attributes:
      model: a `StepModel` that is a pytree, replicated over its devices.
      row_growth: with fewer lines than a batch has rows, it takes the next power of
        this; see `source_batches`.
      source_lines: how long the source lines of the training text are, beyond which
        `config.segment=auto` splits; None for no splitting.
      max_concurrent: batches in flight on a single device; with 1 everything runs in
        the caller's thread, under its JAX context managers.
      is_parser: whether outputs are read as trees, for `Translation.parse`.

    Raises:
      DataError: `config.shortlist` is not one of these vocabularies.
      InputMissingError: it does not exist.
      UserError: it is not possible with the model.
    """

    model: StepModel
    vocabularies: VocabularyPair
    config: DecodingConfig
    row_growth: int = 2
    rescorer: Rescorer | None = None
    known_words: KnownWords | None = None
    source_lines: SourceLines | None = None
    max_concurrent: int = MAX_CONCURRENT
    is_parser: bool = False

    def __post_init__(self) -> None:
        _ = self._shortlist  # loaded now, so that a wrong one is refused at the start

    def translate(
        self,
        lines: Iterable[str],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> list[str]:
        """Translates every line, in order.

        Args:
          lines: any text without line ends; a blank line becomes an empty one.
          source_language: such as "en", of a model that reads it, as M2M-100 does;
            None for that of the tag that each line begins with, such as `>>en-de<<`.
          target_language: of a model with tags of several, such as "de"; None for the
            language whose tag each line begins with, such as `>>de<<`; "" for lines as
            they are, with or without a tag.

        Raises:
          DataError: the model's scores are not finite.
          TypeError: `lines` is a single string, or holds other things than strings.
          UserError: the model has no tag of a language, or several and none is given.
        """
        found = self.translations(
            lines, source_language=source_language, target_language=target_language
        )
        return [translation.text for translation in found]

    def translations(
        self,
        lines: Iterable[str],
        *,
        first: int = 0,
        prefixes: Iterable[str] | None = None,
        terms: Iterable[Iterable[str]] | None = None,
        **languages: str | None,
    ) -> list[Translation]:
        """Translates every line, with scores, tokens and status.

        The arguments are those of `iter_translations`.

        Raises:
          DataError: the model's scores are not finite.
          TypeError: as in `translate`, of prefixes too.
          UserError: as in `iter_translations`.
        """
        options: Any = {"prefixes": prefixes, "terms": terms, **languages}
        found = dict(self.iter_translations(lines, first=first, **options))
        return [found[number] for number in range(len(found))]

    def iter_translations(
        self,
        lines: Iterable[str],
        *,
        first: int = 0,
        prefixes: Iterable[str] | None = None,
        terms: Iterable[Iterable[str]] | None = None,
        **languages: str | None,
    ) -> Iterator[tuple[int, Translation]]:
        """Translates batch by batch, for progress reports.

        Truncated lines are counted in one warning, at the end.

        Args:
          first: number of lines before these in a longer text, for errors and for
            sampling: a line's samples depend on its number in the complete text.
          prefixes: a forced prefix for each line, "" for none; None for no prefixes. A
            line that is split uses it for its first part. A blank line becomes an empty
            one all the same.
          terms: for each line the words and phrases that its translation must contain;
            None for no terms. What did not fit is in `Translation.unmet_terms`.
          languages: `source_language` and `target_language`, as in `translate`. Each
            part of a line gets its tags.

        Returns:
          An iterator over (number of the line from 0, its translation), every line
          once, as soon as it is translated: first the blank ones, then the longest.

        Raises:
          ConfigError: a single line does not fit the memory of a device.
          DataError: the model's scores are not finite, or a prefix is longer than the
            limit of its translation; a term is empty or cannot be written with the
            target vocabulary; or a line does not suit `config.constraint`.
          TypeError: as in `translate`, of prefixes and terms too.
          UserError: the numbers of lines and of prefixes or terms differ, or terms are
            not possible with the configuration; or as in `translate`.
        """
        lines = as_lines(lines, caller="translate")
        lines, tags, forced = self.vocabularies.source.split_tags(lines, **languages)
        stages: list[Stage] = []
        if self.config.mbr != "none":
            stages.append(MinimumBayesRisk(self.config.n_best))
        if prefixes is not None or any(forced):
            prefixes = [""] * len(lines) if prefixes is None else prefixes
            prefixes = as_lines(prefixes, caller="translate", noun="prefixes")
            _require_as_many(prefixes, lines, noun="prefixes")
            target = self.vocabularies.target
            stages.append(Prefixes(prefixes, target, self.config, first, forced))
        if terms is not None:
            of_line = {"caller": "translate", "noun": "terms of a line"}
            lists = [as_lines(one, **of_line) for one in terms]
            _require_as_many(lists, lines, noun="lists of terms")
            check_terms(self.config)
            stages.append(TermStage(lists, self._terms, self.config, first=first))
        stages += self._stages(lines)
        return self._iterate(lines, stages, first=first, tags=tags)

    def check_terms(self, terms: Sequence[Sequence[str]], *, first: int = 0) -> None:
        """Checks the terms of lines without translating.

        Args:
          first: number of lines before these in a longer text, for messages.

        Raises:
          DataError: a term is empty or cannot be written with the target vocabulary.
        """
        self._terms.encode(terms, first=first)

    @functools.cached_property
    def _terms(self) -> TermEncoder:
        return TermEncoder(self.vocabularies.target)

    @functools.cached_property
    def _tree(self) -> TreeConstraint:
        size = self.vocabularies.target.size
        return tree_constraint(self.vocabularies.target.pieces(range(size)))

    def _stages(self, lines: Sequence[str] = ()) -> list[Stage]:
        """Lists the other stages that these lines pass; none for plain lines."""
        stages: list[Stage] = []
        config = self.config
        if config.constraint == "tree":
            stages.append(Trees(self._tree, config))
        if config.sample:
            stages.append(Samples(config.seed))
        if self.known_words is not None:
            stages.append(UnseenWords(self.known_words, lines))
        if self.is_parser:
            stages.append(Parses(lines))
        return stages

    def _iterate(
        self,
        lines: Sequence[str],
        stages: Sequence[Stage],
        *,
        first: int,
        tags: Sequence[Sequence[int]],
    ) -> Iterator[tuple[int, Translation]]:
        segments = self._segments(lines, stages, first=first, tags=tags)
        num_parts = Counter(segment.line - first for segment in segments)

        def finish(number: int, translation: Translation) -> tuple[int, Translation]:
            if not is_text(lines[number]):
                translation = dataclasses.replace(translation, invalid_utf8=True)
            for stage in stages:
                translation = stage.finish(number, translation)
            return number, translation

        for number in range(len(lines)):
            if not num_parts[number]:
                yield finish(number, EMPTY_TRANSLATION)
        found: dict[int, list[tuple[Segment, Translation]]] = {}
        for segment, translation in self._decode(segments, stages):
            number = segment.line - first
            done = found.setdefault(number, [])
            done.append((segment, translation))
            if len(done) == num_parts[number]:
                done.sort(key=lambda one: one[0].part)
                between = [part.before for part, _ in found.pop(number)]
                joined = merge_parts([one for _, one in done], between, self.config)
                yield finish(number, joined)
        warn_truncated(segments, len(lines), self.config.max_source_length - 1)

    def _segments(
        self,
        lines: Sequence[str],
        stages: Sequence[Stage],
        *,
        first: int,
        tags: Sequence[Sequence[int]],
    ) -> list[Segment]:
        makes_trees = self.is_parser or self.config.constraint == "tree"
        segments = make_segments(
            lines,
            self.vocabularies.source,
            self.config,
            source_lines=None if makes_trees else self.source_lines,
            whole={number for stage in stages for number in stage.whole},
            first=first,
            tags=tags,
        )
        for stage in stages:
            stage.prepare(segments)
        return segments

    def with_row_growth(self, row_growth: int) -> Translator:
        """Returns a copy with another `row_growth`; see `source_batches`."""
        return dataclasses.replace(self, row_growth=row_growth)

    def warm_up(self, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Compiles the programs for single lines.

        With a shortlist these are the ones for the fewest candidates; the others are
        compiled at first use.

        Args:
          is_enough: polled before each shape; True ends the warm-up.
        """
        devices = devices_of(self.model).size
        for length in source_lengths(self.config.max_source_length)[:_WARM_LENGTHS]:
            if is_enough():
                return
            rows_that_fit(self.model, self.config, 1, length)
            with suppress(*OOM_ERRORS):  # raised again where the shape is needed
                self._compile((devices, length))

    def _compile(self, shape: Shape) -> None:
        """Runs a search on an empty batch of this shape."""
        self._search(np.full(shape, PAD, np.int32), [], self._stages())

    def _decode(
        self, segments: Sequence[Segment], stages: Sequence[Stage]
    ) -> Iterator[tuple[Segment, Translation]]:
        """Decodes segments of similar length together, the longest first."""
        devices = devices_of(self.model).size

        def translate_batch(batch: SourceBatch) -> list[tuple[Segment, Translation]]:
            members = [segments[index] for index in batch.indices]
            return to_translations(
                self._search(batch.source_BxS, members, stages),
                batch.source_BxS,
                members,
                vocabularies=self.vocabularies,
                rescorer=self.rescorer,
            )

        batches = source_batches(
            [segment.subwords for segment in segments],
            self.config,
            devices=devices,
            row_growth=self.row_growth,
            fit=functools.partial(rows_that_fit, self.model, self.config),
        )
        keys = [stage.key for stage in stages if stage.key is not None]
        if self.config.shortlist:  # The number of candidates is that of a batch.
            keys.append("shortlist")
        for translations in run_batches(
            translate_batch,
            batches,
            # With prefixes or terms the programs depend on their lengths too.
            compile_shape=None if keys else self._compile,
            cache_key=(abstract_key(self.model), self._search_params, *keys),
            config=self.config,
            devices=devices,
            max_concurrent=self.max_concurrent,
        ):
            yield from translations

    def _search(
        self,
        source_BxS: npt.NDArray[np.int32],
        segments: Sequence[Segment],
        stages: Sequence[Stage],
    ) -> BeamResult:
        rows, length = source_BxS.shape
        max_length = self.config.longest_output(length)
        model, params, inputs = self.model, self._search_params, dict[str, Any]()
        batch = self._shortlist and self._shortlist.of_batch(source_BxS, segments)
        for stage in stages:
            own = batch.segments if batch else segments
            inputs |= stage.inputs(own, rows, max_length)
        if batch:
            model = self.model.restricted(batch.ids_C)  # type: ignore[attr-defined]
            tags = range(UNK + 1, UNK + 1 + len(params.forbidden))
            params = dataclasses.replace(params, forbidden=tuple(tags))
            inputs["allowed_BxC"] = batch.allowed_BxC
            if "constraint" in inputs:  # Its arrays are of all ids.
                inputs["constraint"] = jax.tree.map(
                    lambda leaf_V: leaf_V[batch.ids_C], inputs["constraint"]
                )
        extra = self.config.max_extra_tokens
        found = chunked_search(
            model, source_BxS, max_extra_tokens=extra, search_params=params, **inputs
        )
        if not batch:
            return found
        return found._replace(tokens_BxWxT=batch.ids_C[found.tokens_BxWxT])

    @functools.cached_property
    def _shortlist(self) -> Shortlist | None:
        """Loads the shortlist of the configuration.

        Raises:
          UserError: the model has its matrix of logits elsewhere.
        """
        if not self.config.shortlist:
            return None
        members = getattr(self.model, "members", [self.model])
        if not all(hasattr(one, "restricted") for one in members):
            raise UserError(
                f"decoding.shortlist={self.config.shortlist} needs models that "
                "compute logits of some ids: a Transformer that searches with a cache, "
                "or the recurrent baseline. Unset config.decoding.shortlist."
            )
        return load_shortlist(self.config.shortlist, self.vocabularies)

    @functools.cached_property
    def _search_params(self) -> SearchParams:
        tags = tuple(self.vocabularies.target.tags.values())
        return dataclasses.replace(params_from_config(self.config), forbidden=tags)


def _require_as_many(
    given: Sequence[object], lines: Sequence[str], *, noun: str
) -> None:
    if len(given) != len(lines):
        raise UserError(
            f"There must be as many {noun} as lines, but there are {len(lines)} lines "
            f"and {len(given)} {noun}. Pass as many, empty ones for none."
        )
