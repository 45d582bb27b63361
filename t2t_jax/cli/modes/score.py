"""`--mode=score`: computes the log-probability of given translations."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.evaluation.corpus import read_aligned, warn_of_exchange
from t2t_jax.cli.flags.translation import ScoreOptions
from t2t_jax.cli.translation.formats import float32_repr
from t2t_jax.cli.translation.progress import start_progress
from t2t_jax.data.files.progress_bar import ProgressLabels

if TYPE_CHECKING:
    from t2t_jax.decoding.scoring.scorer import PairScore

    _ToLines: TypeAlias = Callable[[Sequence[PairScore]], Iterator[str]]

_COLUMNS = (
    "line",
    "score",
    "log_probability",
    "num_tokens",
    "per_token",
    "source_cut",
)


def run(options: ScoreOptions) -> int:
    """Scores each line of `options.reference` given its line of `options.source`.

    Raises:
      UserError: files, flags or workdir are invalid; before JAX is imported.
    """
    options.workdir.require()
    to_lines = _FORMATS[options.format or "tsv"]
    names = {"source": options.source, "reference": options.reference}
    texts = read_aligned(
        names, joiner=options.config.data.subword_joiner, may_be_empty=True
    )
    pairs = texts["source"], texts["reference"]
    inputs = (options.source, options.reference)
    with open_output(options.output, inputs=inputs) as out:
        from t2t_jax.inference.load import load

        model = load(
            options.workdir.path,
            checkpoint=options.checkpoint,
            decoding=options.config.decoding,
        )
        warn_of_exchange(model, pairs)
        found: dict[int, PairScore] = {}
        with start_progress(
            ProgressLabels("scored", "pairs"), len(pairs[0])
        ) as progress:
            for number, score in model.scorer().iter_scores(*pairs):
                found[number] = score
                progress.advance(1)
        scores = [found[number] for number in range(len(pairs[0]))]
        write_lines(out, to_lines(scores))
    print(_summary(scores), file=sys.stderr)
    return 0


def _tsv(scores: Sequence[PairScore]) -> Iterator[str]:
    yield "\t".join(_COLUMNS)
    for line, score in enumerate(scores, start=1):
        yield "\t".join(map(json.dumps, _row(line, score).values()))


def _jsonl(scores: Sequence[PairScore]) -> Iterator[str]:
    for line, score in enumerate(scores, start=1):
        row = _row(line, score)
        row["tokens"] = score.tokens
        row["token_log_probabilities"] = [
            float32_repr(number) for number in score.token_log_probabilities
        ]
        yield json.dumps(row, ensure_ascii=False)


_FORMATS: dict[str, _ToLines] = {"tsv": _tsv, "jsonl": _jsonl}


def _row(line: int, score: PairScore) -> dict[str, Any]:
    return dict(
        zip(
            _COLUMNS,
            (
                line,
                float32_repr(score.score),
                float32_repr(score.log_probability),
                score.num_tokens,
                float32_repr(score.per_token),
                score.source_cut,
            ),
            strict=True,
        )
    )


def _summary(scores: Sequence[PairScore]) -> str:
    """Summarizes all scores in one line."""
    num_tokens = sum(score.num_tokens for score in scores)
    if not num_tokens:
        return "Scored 0 pairs."
    mean = math.fsum(score.log_probability for score in scores) / num_tokens
    num_cut = sum(score.source_cut for score in scores)
    return (
        f"Scored {len(scores):,} pairs, {num_tokens:,} target tokens including eos: "
        f"log-probability per token {mean:.4f}, perplexity {_exp(-mean):.2f}. "
        f"Logarithms are natural (log_e). Sources cut: {num_cut:,}."
    )


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf
