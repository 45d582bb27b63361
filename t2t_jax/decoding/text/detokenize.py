"""Converts search results into text hypotheses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.scoring.teacher_forcing import Rescorer, RescoreResult
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.text.segments import Segment
from t2t_jax.decoding.text.translation import Attention, Hypothesis, Translation
from t2t_jax.errors import DataError

if TYPE_CHECKING:
    from t2t_jax.data.vocabulary.pair import VocabularyPair
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary


_SHORTEST = 10  # subwords; the lengths of shorter sources and outputs differ more


def to_translations(
    result: BeamResult,
    source_BxS: npt.NDArray[np.int32],
    segments: Sequence[Segment],
    *,
    vocabularies: VocabularyPair,
    rescorer: Rescorer | None = None,
) -> list[tuple[Segment, Translation]]:
    """Converts a search result into one translation per segment.

    Args:
      result: of a search, on the host.
      segments: those of the first rows; rows beyond are empty.
    """
    outputs = _hypotheses(
        result, source_BxS, len(segments), vocabularies.target, rescorer
    )
    pieces = [
        vocabularies.source.pieces([*segment.subwords, DEFAULT_IDS.eos])
        for segment in segments
    ]
    return [
        (
            segment,
            Translation(
                hypotheses=hypotheses,
                source_tokens=tuple(tokens),
                source_cut=segment.cut,
                short=_is_short(hypotheses[0], len(segment.subwords)),
            ),
        )
        for segment, tokens, hypotheses in zip(segments, pieces, outputs, strict=True)
    ]


def _is_short(best: Hypothesis, subwords: int) -> bool:
    """Returns whether an output is much shorter than its source, of some length."""
    return subwords >= _SHORTEST and 3 * (best.num_tokens - best.ended) < subwords


def _hypotheses(
    result: BeamResult,
    source_BxS: npt.NDArray[np.int32],
    num_sentences: int,
    vocabulary: Vocabulary,
    rescorer: Rescorer | None,
) -> list[tuple[Hypothesis, ...]]:
    """Returns the hypotheses of each sentence, at least one each."""
    lengths = np.asarray(result.lengths_BxW)[:num_sentences]
    # Missing outputs are omitted, but for the first.
    kept = lengths > 0
    kept[:, 0] = True
    rows, ranks = np.nonzero(kept)
    tokens_NxT = np.asarray(result.tokens_BxWxT)[rows, ranks]
    ended_N = np.asarray(result.finished_BxW)[rows, ranks]
    lengths_N = lengths[rows, ranks].tolist()
    tokens = [row[:n] for row, n in zip(tokens_NxT.tolist(), lengths_N, strict=True)]
    # The eos is not text; an output that was truncated has none.
    ends = [n - bool(has) for n, has in zip(lengths_N, ended_N.tolist(), strict=True)]
    texts = vocabulary.decode(
        [row[: max(end, 0)] for row, end in zip(tokens, ends, strict=True)]
    )
    rescored = RescoreResult(None, None)
    if rescorer is not None:
        rescored = rescorer.rescore(source_BxS[rows], tokens_NxT)
    widths = (source_BxS[rows] != 0).sum(axis=1).tolist()
    scores = np.asarray(result.scores_BxW)[rows, ranks].tolist()
    logs = np.asarray(result.log_probabilities_BxW)[rows, ranks].tolist()
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
            token_log_probabilities=_scores(rescored, number, length),
            attention_TxS=_weights(rescored, number, length, widths[number]),
        )
        found[row].append(hypothesis)
    return [tuple(hypotheses) for hypotheses in found]


def _scores(rescored: RescoreResult, number: int, length: int) -> tuple[float, ...]:
    logs_NxT = rescored.log_probabilities_BxT
    if logs_NxT is None:
        return ()
    values: Sequence[float] = logs_NxT[number, :length].tolist()
    return tuple(values)


def _weights(
    rescored: RescoreResult, number: int, length: int, width: int
) -> Attention | None:
    weights_NxTxS = rescored.attention_BxTxS
    if weights_NxTxS is None:
        return None
    # A copy, so that a line's weights do not keep those of its batch.
    return weights_NxTxS[number, :length, :width].copy()


def check_finite(hypotheses: Iterable[Hypothesis], *, line: int) -> None:
    """Checks that the scores are finite.

    Raises:
      DataError: a score is not finite.
    """
    for hypothesis in hypotheses:
        if not math.isfinite(hypothesis.score):
            raise DataError(
                f"The score of line {line + 1} must be a finite number but is "
                f"{hypothesis.score}: the model's weights are corrupt or its "
                "computation overflows. Use another checkpoint, or compute in float32."
            )
