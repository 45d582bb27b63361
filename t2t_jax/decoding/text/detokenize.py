"""From what a search has found to hypotheses in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.text.rescoring import Rescorer, RescoreResult
from t2t_jax.decoding.text.segments import Segment
from t2t_jax.decoding.text.translation import Attention, Hypothesis, Translation
from t2t_jax.errors import DataError


class _Vocabulary(Protocol):
    def decode(self, sequences: Iterable[Iterable[int]], /) -> list[str]: ...

    def pieces(self, ids: Iterable[int], /) -> list[str]: ...


class _Vocabularies(Protocol):
    @property
    def source(self) -> _Vocabulary: ...

    @property
    def target(self) -> _Vocabulary: ...


def to_translations(
    result: BeamResult,
    source_BxS: npt.NDArray[np.int32],
    sources: Sequence[Segment],
    *,
    vocabularies: _Vocabularies,
    examiner: Rescorer | None = None,
) -> list[tuple[Segment, Translation]]:
    """Puts what was found beside what was read.

    Args:
      result: of a search, on the host.
      source_BxS: [B, S] what was searched for.
      sources: lines, or parts of them, of the first rows; those beyond are empty.
      examiner: takes a second look at every output, if there is one.
    """
    hypotheses = to_hypotheses(
        result,
        source_BxS,
        num_sentences=len(sources),
        vocabulary=vocabularies.target,
        examiner=examiner,
    )
    found = []
    for source, of_one in zip(sources, hypotheses, strict=True):
        pieces = tuple(vocabularies.source.pieces([*source.subwords, DEFAULT_IDS.eos]))
        one = Translation(
            hypotheses=of_one, source_tokens=pieces, source_cut=source.cut
        )
        found.append((source, one))
    return found


def to_hypotheses(
    result: BeamResult,
    source_BxS: npt.NDArray[np.int32],
    *,
    num_sentences: int,
    vocabulary: _Vocabulary,
    examiner: Rescorer | None = None,
) -> list[tuple[Hypothesis, ...]]:
    """Reads the outputs of each sentence; the rows beyond are empty.

    Args:
      result: of a search, on the host.
      source_BxS: [B, S] what was searched for.
      num_sentences: rows that hold a sentence.
      examiner: takes a second look at every output, if there is one.

    Returns:
      The hypotheses of each sentence as the search has sorted them, at least one.
    """
    lengths = np.asarray(result.lengths_BxW)[:num_sentences]
    # A place without an output is left out, unless nothing at all was found.
    kept = lengths > 0
    kept[:, 0] = True
    rows, places = np.nonzero(kept)
    tokens_NxT = np.asarray(result.tokens_BxWxT)[rows, places]
    ended_N = np.asarray(result.finished_BxW)[rows, places]
    lengths_N = lengths[rows, places].tolist()
    tokens = [row[:n] for row, n in zip(tokens_NxT.tolist(), lengths_N, strict=True)]
    # The eos is not text; an output that was truncated has none.
    ends = [n - bool(has) for n, has in zip(lengths_N, ended_N.tolist(), strict=True)]
    texts = vocabulary.decode(
        [row[: max(end, 0)] for row, end in zip(tokens, ends, strict=True)]
    )
    findings = RescoreResult(None, None)
    if examiner is not None:
        findings = examiner.rescore(source_BxS[rows], tokens_NxT)
    widths = (source_BxS[rows] != 0).sum(axis=1).tolist()
    scores = np.asarray(result.scores_BxW)[rows, places].tolist()
    logs = np.asarray(result.log_probabilities_BxW)[rows, places].tolist()
    found: list[list[Hypothesis]] = [[] for _ in range(num_sentences)]
    for number, row in enumerate(rows.tolist()):
        length = lengths_N[number]
        hypothesis = Hypothesis(
            text=texts[number],
            score=scores[number],
            log_probability=logs[number],
            num_tokens=length,
            ended=bool(ended_N[number]),
            tokens=tuple(vocabulary.pieces(tokens[number])),
            token_log_probabilities=_scores(findings, number, length),
            attention_TxS=_weights(findings, number, length, widths[number]),
        )
        found[row].append(hypothesis)
    return [tuple(hypotheses) for hypotheses in found]


def _scores(findings: RescoreResult, number: int, length: int) -> tuple[float, ...]:
    logs_NxT = findings.log_probabilities_BxT
    if logs_NxT is None:
        return ()
    values: Sequence[float] = logs_NxT[number, :length].tolist()
    return tuple(values)


def _weights(
    findings: RescoreResult, number: int, length: int, width: int
) -> Attention | None:
    weights_NxTxS = findings.attention_BxTxS
    if weights_NxTxS is None:
        return None
    # A copy, so that a line's weights do not keep those of its batch.
    return weights_NxTxS[number, :length, :width].copy()


def require_finite(hypotheses: Iterable[Hypothesis], *, line: int) -> None:
    """Checks that a model's scores are numbers.

    Args:
      line: its number in the whole text, from 0.

    Raises:
      DataError: one is not.
    """
    for hypothesis in hypotheses:
        if not math.isfinite(hypothesis.score):
            raise DataError(
                f"The score of line {line + 1} must be a finite number but is "
                f"{hypothesis.score}: the model's weights are damaged or its "
                "computation overflows. Take another checkpoint, or compute in float32."
            )
