"""Translations of lines, made of what a search returns: scores, attention, status."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError
from t2t_jax.types import EOS, PAD

if TYPE_CHECKING:
    from t2t_jax.data.trees.linearization import Parse
    from t2t_jax.data.vocabulary.pair import VocabularyPair
    from t2t_jax.data.vocabulary.vocabulary import Vocabulary
    from t2t_jax.decoding.scoring.teacher_forcing import Rescorer
    from t2t_jax.decoding.search.beam_search import BeamResult
    from t2t_jax.decoding.text.segments import Segment

Attention: TypeAlias = npt.NDArray[np.float32]

Status: TypeAlias = Literal[
    "unmet_terms",
    "invalid_utf8",
    "empty",
    "no_output",
    "no_eos",
    "repaired",
    "truncated",
    "short",
    "unfamiliar",
    "chunked",
    "ok",
]

UNFAMILIAR = 1 / 3
"""A line with a larger share of unseen words has the status `unfamiliar`."""

END = "</s>"
"""The piece of the eos token."""

_SHORTEST = 10  # subwords; the lengths of shorter sources and outputs differ more


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One output for one line.

    Attributes:
      text: without line ends; empty for an empty line.
      score: log-probability / `((5 + n) / 6) ** alpha`, or / `n ** alpha` with the
        normalization "power"; 0 for an empty line.
      log_probability: natural, summed over the tokens, those of a forced prefix and
        the eos included.
      num_tokens: n, the eos included.
      ended: whether it ended in eos before its limit.
      tokens: the n pieces, U+2581 for a space, `</s>` last if it ended. For a line that
        was translated in parts, n counts the eos of every part, and only the last one
        is among the pieces.
      token_log_probabilities: of each token, given those before; () if not requested.
      attention_TxS: [tokens, source tokens] float32, the weights with which each token
        was generated, averaged over the heads of one layer; None if not requested. A
        row sums to 1, less the weights on the eos of earlier parts of a split line.
    """

    text: str
    score: float
    log_probability: float
    num_tokens: int
    ended: bool
    tokens: tuple[str, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    attention_TxS: Attention | None = None

    def alignment(self) -> list[tuple[int, int]]:
        """Aligns each token with the source token of the largest attention weight.

        Returns:
          (source, target) numbers of tokens from 0, in the order of the target. The
          eos of either side is not aligned, nor are tokens without weights.

        Example:
          >>> weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0, 0, 1]])
          >>> Hypothesis(
          ...     text="b a",
          ...     score=-1.0,
          ...     log_probability=-1.0,
          ...     num_tokens=3,
          ...     ended=True,
          ...     tokens=("b", "a", "</s>"),
          ...     attention_TxS=weights,
          ... ).alignment()
          [(1, 0), (0, 1)]
        """
        if self.attention_TxS is None or not self.tokens:
            return []
        has_end = self.tokens[-1] == END
        weights_TxS = self.attention_TxS[: len(self.tokens) - has_end, :-1]
        if not weights_TxS.size:
            return []
        return [
            (int(source), target)
            for target, source in enumerate(weights_TxS.argmax(axis=1))
            if weights_TxS[target, source] > 0
        ]


def hypothesis_fields(
    one: Hypothesis, details: Collection[str], *, rounded: Callable[[float], Any]
) -> dict[str, Any]:
    """Returns what an output is in JSON, of the command line and of the server.

    Args:
      details: "token_scores" and "alignments" are added if they are among these.
    """
    fields: dict[str, Any] = {
        "translation": one.text,
        "score": rounded(one.score),
        "log_probability": rounded(one.log_probability),
        "num_tokens": one.num_tokens,
        "tokens": one.tokens,
    }
    if "token_scores" in details:
        logs = map(rounded, one.token_log_probabilities)
        fields["token_log_probabilities"] = list(logs)
    if "alignments" in details:
        fields["alignment"] = one.alignment()
    return fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """The translation of one line.

    Attributes:
      hypotheses: at least one, the best first; samples in the order they were drawn.
      source_tokens: the source pieces, `</s>` last; () for an empty line.
      num_parts: 0 for a blank line; more than 1 for a line that was translated in
        parts: sentence by sentence, or because it was too long.
      short: whether the best output of a part with 10 subwords or more has less than a
        third as many tokens.
      source_cut: whether a part was still longer than `decoding.max_source_length` and
        was truncated.
      invalid_utf8: whether the line, or its prefix, held bytes that are not UTF-8
        (lone surrogates in a string) or a NUL.
      unseen_words: share of the line's words that the training text does not contain, 0
        for no words; None if the training text is unknown.
      unmet_terms: the terms that the best output had to contain and does not: those
        that did not fit its limit, and those of a line that was translated in parts.
      parse: of a parser, the best output as a tree over the words of the line,
        repaired where it is none; None for other models, and for a blank line.
    """

    hypotheses: tuple[Hypothesis, ...]
    source_tokens: tuple[str, ...] = ()
    num_parts: int = 1
    short: bool = False
    source_cut: bool = False
    invalid_utf8: bool = False
    unseen_words: float | None = None
    unmet_terms: tuple[str, ...] = ()
    parse: Parse | None = None

    @property
    def text(self) -> str:
        """The best output's text."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The best output's score, 0 for an empty line."""
        return self.hypotheses[0].score

    @property
    def log_probability(self) -> float:
        """The best output's log-probability."""
        return self.hypotheses[0].log_probability

    @property
    def num_tokens(self) -> int:
        """The best output's tokens, its eos included."""
        return self.hypotheses[0].num_tokens

    @property
    def truncated(self) -> bool:
        """Whether the best output had not ended when it reached its limit."""
        return not self.hypotheses[0].ended

    @property
    def status(self) -> Status:
        """The most severe of `statuses`."""
        return self.statuses[0]

    @property
    def statuses(self) -> tuple[Status, ...]:
        """All conditions that hold, the most severe first; "ok" for none.

        What was required and is missing comes first.
        """
        is_true: dict[Status, bool] = {
            "unmet_terms": bool(self.unmet_terms),
            "invalid_utf8": self.invalid_utf8,
            "empty": not self.num_parts,
            "no_output": bool(self.num_parts) and not self.text.strip(),
            "no_eos": self.truncated,
            "repaired": self.parse is not None and self.parse.repaired,
            "truncated": self.source_cut,
            "short": self.short,
            "unfamiliar": (self.unseen_words or 0) > UNFAMILIAR,
            "chunked": self.num_parts > 1,
        }
        return tuple(name for name, holds in is_true.items() if holds) or ("ok",)


_EMPTY_HYPOTHESIS = Hypothesis(
    text="", score=0.0, log_probability=0.0, num_tokens=0, ended=True
)
EMPTY_TRANSLATION = Translation(hypotheses=(_EMPTY_HYPOTHESIS,), num_parts=0)
"""The translation of an empty line."""


def merge_parts(
    parts: Sequence[Translation], between: Sequence[str], config: DecodingConfig
) -> Translation:
    """Merges the translations of a line's parts into one.

    The r-th hypothesis consists of the r-th ones of the parts; a part with fewer
    contributes its last. Every eos but the last one is dropped from the tokens; its
    log-probability is kept. They are sorted by score; samples keep their order.

    Example:
      >>> part = dataclasses.replace(_EMPTY_HYPOTHESIS, text="x")
      >>> part = Translation(hypotheses=(part,))
      >>> merge_parts([part, part], ["", " "], DecodingConfig()).text
      'x x'
    """
    if len(parts) == 1:
        return parts[0]
    columns = [
        [part.hypotheses[min(rank, len(part.hypotheses) - 1)] for part in parts]
        for rank in range(max(len(part.hypotheses) for part in parts))
    ]
    joined = [_merge_column(column, between, config) for column in columns]
    if not config.sample:  # Finished ones first, as in a search.
        joined.sort(key=lambda one: (not one.ended, -one.score))
    source = [token for part in parts[:-1] for token in part.source_tokens[:-1]]
    return Translation(
        hypotheses=tuple(joined),
        source_tokens=(*source, *parts[-1].source_tokens),
        num_parts=len(parts),
        short=any(part.short for part in parts),
        source_cut=any(part.source_cut for part in parts),
    )


def _merge_column(
    column: Sequence[Hypothesis], between: Sequence[str], config: DecodingConfig
) -> Hypothesis:
    """Merges a hypothesis of each part into one."""
    text = ""
    tokens: list[str] = []
    logs: list[float] = []
    attentions: list[Attention] = []
    for number, (glue, one) in enumerate(zip(between, column, strict=True), 1):
        # No separator beside an empty part.
        text += glue + one.text if text and one.text else one.text
        # Every eos but the last one is dropped.
        is_last = number == len(column)
        end = len(one.tokens) - (one.ended and not is_last)
        tokens += one.tokens[:end]
        logs += one.token_log_probabilities[:end]
        if one.attention_TxS is not None:
            attentions.append(one.attention_TxS[:end])
    total = math.fsum(one.log_probability for one in column)
    n = sum(one.num_tokens for one in column)
    is_power = config.length_normalization == "power"
    length = max(1, n) if is_power else (5 + n) / 6
    return Hypothesis(
        text=text,
        score=total / length**config.length_penalty,
        log_probability=total,
        num_tokens=n,
        ended=all(one.ended for one in column),
        tokens=tuple(tokens),
        token_log_probabilities=tuple(logs),
        attention_TxS=_block_diagonal(attentions) if attentions else None,
    )


def _block_diagonal(attentions: Sequence[Attention]) -> Attention:
    """Arranges the parts' weights as blocks on the diagonal."""
    # The column of each source's eos but the last is dropped.
    blocks = [*(block[:, :-1] for block in attentions[:-1]), attentions[-1]]
    rows, columns = np.cumsum([block.shape for block in blocks], axis=0).T
    joined = np.zeros((rows[-1], columns[-1]), np.float32)
    for block, row, column in zip(blocks, rows, columns, strict=True):
        joined[row - len(block) : row, column - block.shape[1] : column] = block
    return joined


def _outputs(result: BeamResult, num_rows: int) -> tuple[Any, Any, list[list[Any]]]:
    """Returns rows, tokens and numbers of the outputs that there are: N of each."""
    # Missing outputs are omitted, but for the first.
    is_output_BxW = np.asarray(result.lengths_BxW)[:num_rows] > 0
    is_output_BxW[:, 0] = True
    rows, ranks = np.nonzero(is_output_BxW)
    tokens_NxT, *numbers = (np.asarray(leaf)[rows, ranks] for leaf in result)
    return rows, tokens_NxT, [leaf.tolist() for leaf in numbers]


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

    Raises:
      DataError: a score is not finite.
    """
    rows, tokens_NxT, numbers = _outputs(result, len(segments))
    scores, log_probabilities, lengths, ended = numbers
    sources_NxS = source_BxS[rows]
    logs_NxT, weights_NxTxS = (
        rescorer.rescore(sources_NxS, tokens_NxT) if rescorer else (None, None)
    )
    tokens = [row[:n] for row, n in zip(tokens_NxT.tolist(), lengths, strict=True)]
    # The eos is not text; an output that was truncated has none.
    texts = vocabularies.target.decode(
        [row[: len(row) - has_end] for row, has_end in zip(tokens, ended, strict=True)]
    )
    widths = (sources_NxS != PAD).sum(axis=1)
    hypotheses: list[list[Hypothesis]] = [[] for _ in segments]
    for number, (row, n) in enumerate(zip(rows.tolist(), lengths, strict=True)):
        require_finite(scores[number], segments[row].line, name="score")
        logs, weights = (), None
        if logs_NxT is not None:
            logs = tuple(logs_NxT[number, :n].tolist())
        if weights_NxTxS is not None:
            # A copy, so that a line's weights do not keep those of its batch.
            weights = weights_NxTxS[number, :n, : widths[number]].copy()
        hypothesis = Hypothesis(
            text=texts[number],
            score=scores[number],
            log_probability=log_probabilities[number],
            num_tokens=n,
            ended=ended[number],
            tokens=tuple(vocabularies.target.pieces(tokens[number])),
            token_log_probabilities=logs,
            attention_TxS=weights,
        )
        hypotheses[row].append(hypothesis)
    return [
        (segment, _of_segment(segment, tuple(own), vocabularies.source))
        for segment, own in zip(segments, hypotheses, strict=True)
    ]


def _of_segment(
    segment: Segment, hypotheses: tuple[Hypothesis, ...], vocabulary: Vocabulary
) -> Translation:
    return Translation(
        hypotheses=hypotheses,
        source_tokens=tuple(vocabulary.pieces([*segment.subwords, EOS])),
        source_cut=segment.cut,
        short=is_short(len(segment.subwords), hypotheses[0]),
    )


def is_short(subwords: int, best: Hypothesis) -> bool:
    """Returns whether an output is short for so many subwords of its source."""
    return subwords >= _SHORTEST and 3 * (best.num_tokens - best.ended) < subwords


def require_finite(number: float, line: int, *, name: str) -> None:
    """Checks a number of a line's scores.

    Raises:
      DataError: it is not finite.
    """
    if not math.isfinite(number):
        raise DataError(
            f"The {name} of line {line + 1} must be a finite number but is {number}: "
            "the model's weights are corrupt or its computation overflows. Use another "
            "checkpoint, or compute in float32."
        )
