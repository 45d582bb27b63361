"""Scores given translations with teacher forcing, all positions in parallel."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.data.files.lines import LineProblems
from t2t_jax.data.line_arguments import as_lines
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import pair_batches
from t2t_jax.decoding.engine.device_rows import devices_of, gather_rows, shard_rows
from t2t_jax.decoding.scoring.teacher_forcing import Apply, rescore_rows
from t2t_jax.decoding.search.length_penalty import penalty_of
from t2t_jax.decoding.text.translation import require_finite
from t2t_jax.errors import DataError, UserError
from t2t_jax.types import EOS, PyTree

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.pair import VocabularyPair

_LOGGER = logging.getLogger(__name__)

Subwords: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Token ids of source and target, without eos."""

Logs: TypeAlias = npt.NDArray[np.float32]
"""Natural log-probabilities of a target's tokens and its eos."""


class PairScore(NamedTuple):
    """A model's score of one pair, in natural logarithms.

    Attributes:
      score: log-probability / `length_penalty(n, alpha)`, as in beam search, where n
        counts a forced tag of the target's language too.
      log_probability: of the target given the source, the eos included.
      num_tokens: n, the target's tokens, the eos included.
      tokens: the n pieces, U+2581 for a space, `</s>` at the end.
      token_log_probabilities: of each token, given those before it.
      source_cut: whether the source was longer than `decoding.max_source_length`.
    """

    score: float
    log_probability: float
    num_tokens: int
    tokens: tuple[str, ...]
    token_log_probabilities: tuple[float, ...]
    source_cut: bool

    @property
    def per_token(self) -> float:
        """The mean log-probability of a token; exp of its negative is a perplexity."""
        return self.log_probability / self.num_tokens


@dataclasses.dataclass(frozen=True)
class Scorer:
    """Scores pairs of text with a trained model.

    Pairs of similar length share a batch, in at most 8 shapes, each of which is
    compiled once for an `apply`. A pair's score does not depend on the pairs around it,
    except for its last bits. Where several devices hold the variables, the rows of a
    batch are split over them; the logits of a device's rows take 256 MiB at most,
    unless those of a single pair take more.

    Text is scored with the subwords that the vocabulary gives it. A translation that
    the model generated with other subwords had another score in the search.

    A blank target is its eos only. So is a blank source, which does not occur in
    training: `translate` skips the model there, scoring does not.

    Attributes:
      variables: its first argument, such as `{"params": params}`, replicated over its
        devices.
      max_length: positions of the model; None for no limit.
    """

    apply: Apply
    variables: PyTree = dataclasses.field(repr=False)
    vocabularies: VocabularyPair
    config: DecodingConfig
    max_length: int | None = None

    def scores(
        self, sources: Iterable[str], targets: Iterable[str], **languages: str | None
    ) -> list[PairScore]:
        """Scores every pair, in order.

        Args:
          sources: any text without line ends; sources longer than
            `config.max_source_length` are truncated, as in translation.
          targets: as many; they are never truncated.
          languages: `source_language` and `target_language`, as in
            `Translator.translate`; the tag with which a target begins is not scored.

        Raises:
          DataError: pairs are longer than `max_length`, or scores are not finite.
          TypeError: a side is a single string, or holds other things than strings.
          UserError: the number of sources and targets differs; or as in
            `Translator.translate`.
        """
        found = dict(self.iter_scores(sources, targets, **languages))
        return [found[number] for number in range(len(found))]

    def iter_scores(
        self, sources: Iterable[str], targets: Iterable[str], **languages: str | None
    ) -> Iterator[tuple[int, PairScore]]:
        """Scores batch by batch, for progress reports.

        Truncated sources are counted in one warning, at the end.

        Returns:
          An iterator over (number of the pair from 0, its score), every pair once, the
          longest first.

        Raises:
          DataError: pairs are longer than `max_length`, or scores are not finite.
          TypeError, UserError: as in `scores`.
        """
        sources = as_lines(sources, caller="score", noun="sources")
        targets = as_lines(targets, caller="score", noun="targets")
        return self._iterate(*self._encode(sources, targets, languages))

    def _iterate(
        self,
        pairs: Sequence[Subwords],
        truncated: Sequence[bool],
        tags: Sequence[Sequence[int]],
    ) -> Iterator[tuple[int, PairScore]]:
        lengths = np.array([len(target) + 1 for _, target in pairs])
        penalties = np.asarray(penalty_of(self.config, lengths))
        for number, logs_T in self.iter_logs(pairs):
            target = pairs[number][1][len(tags[number]) :]
            logs = tuple(logs_T.tolist()[-len(target) - 1 :])
            total = math.fsum(logs)
            require_finite(total, number, name="log-probability")
            score = PairScore(
                score=total / float(penalties[number]),
                log_probability=total,
                num_tokens=len(logs),
                tokens=tuple(self.vocabularies.target.pieces([*target, EOS])),
                token_log_probabilities=logs,
                source_cut=truncated[number],
            )
            yield number, score
        if any(truncated):
            _LOGGER.warning(
                f"Truncated {sum(truncated)} of {len(truncated)} sources that were "
                f"longer than {self.config.max_source_length - 1} subwords. "
                "Raise config.decoding.max_source_length to read them full."
            )

    def _encode(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        languages: Mapping[str, str | None],
    ) -> tuple[list[Subwords], list[bool], list[list[int]]]:
        """Encodes the pairs; also returns which sources were cut, and targets' tags."""
        if len(sources) != len(targets):
            raise UserError(
                f"Every source needs one target, but there are {len(sources)} "
                f"sources and {len(targets)} targets. Pass as many of both."
            )
        longest = self.config.max_source_length - 1
        texts, *tags = self.vocabularies.source.split_tags(sources, **languages)
        sides = zip(self.vocabularies, (texts, targets), tags, strict=True)
        full, outputs = (
            [[*tag, *ids] for tag, ids in zip(own, side.encode(lines), strict=True)]
            for side, lines, own in sides
        )
        cut = (source[:longest] for source in full)
        pairs: list[Subwords] = [*zip(cut, outputs, strict=True)]
        if self.max_length is not None:
            _check_target_lengths(pairs, self.max_length)
        return pairs, [len(source) > longest for source in full], tags[1]

    def iter_logs(self, pairs: Sequence[Subwords]) -> Iterator[tuple[int, Logs]]:
        """Scores pairs of subwords batch by batch.

        Yields:
          Number of the pair from 0, and the log-probability of each token of its target
          and of the eos.
        """
        mesh = devices_of(self.variables)
        for batch in pair_batches(
            pairs,
            self.config,
            vocab_size=self.vocabularies.target.size,
            max_length=self.max_length,
            devices=mesh.size,
        ):
            sides = (batch.source_BxS, batch.target_outputs_BxT)
            parts = tuple(shard_rows(side, mesh) for side in sides)
            found, _ = rescore_rows(
                (self.variables,), parts, applies=(self.apply,), mesh=mesh
            )
            for number, row in zip(batch.indices, gather_rows(found), strict=False):
                yield number, row[: len(pairs[number][1]) + 1]


def _check_target_lengths(pairs: Sequence[Subwords], max_length: int) -> None:
    problems = LineProblems()
    for number, pair in enumerate(pairs, start=1):
        for side, tokens in zip(("source", "target"), pair, strict=True):
            if len(tokens) >= max_length:
                problems.add(
                    f"Line {number}: the {side} must have at most {max_length} tokens "
                    f"with its eos (model.max_positions), but has {len(tokens) + 1}. "
                    "Shorten it, or remove the pair."
                )
    problems.raise_if_any(DataError)
