"""`--mode=score`: computes the log-probability of given translations."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.evaluation.corpus import load_model, read_aligned, warn_of_exchange
from t2t_jax.cli.flags.options import ScoreOptions
from t2t_jax.cli.translation.formats import float32_repr
from t2t_jax.cli.translation.progress import start_progress
from t2t_jax.data.files.progress_bar import ProgressLabels

if TYPE_CHECKING:
    from t2t_jax.decoding.scoring.scorer import PairScore

_COLUMNS = "line score log_probability num_tokens per_token source_cut".split()


def run(options: ScoreOptions) -> None:
    """Scores each line of `options.reference` given its line of `options.source`.

    Raises:
      UserError: files, flags or workdir are invalid; before JAX is imported.
    """
    names = {"source": options.source, "reference": options.reference}
    joiner = options.config.data.subword_joiner
    pairs = tuple(read_aligned(names, joiner=joiner, may_be_empty=True).values())
    with open_output(options.output, inputs=names.values()) as out:
        model = load_model(options)
        warn_of_exchange(model, pairs)
        found: dict[int, PairScore] = {}
        labels = ProgressLabels("scored", "pairs")
        with start_progress(labels, len(pairs[0])) as progress:
            scores = model.scorer().iter_scores(pairs[0], pairs[1], **options.languages)
            for number, score in scores:
                found[number] = score
                progress.advance(1)
        in_order = [found[number] for number in range(len(pairs[0]))]
        write_lines(out, _lines(in_order, as_json=options.format == "jsonl"))
    print(_summary(in_order), file=sys.stderr)


def _lines(scores: Sequence[PairScore], *, as_json: bool) -> Iterator[str]:
    if not as_json:
        yield "\t".join(_COLUMNS)
    for line, score in enumerate(scores, start=1):
        values = {"line": line, **{name: getattr(score, name) for name in _COLUMNS[1:]}}
        for name in ("score", "log_probability", "per_token"):
            values[name] = float32_repr(values[name])
        if as_json:
            values["tokens"] = score.tokens
            logs = score.token_log_probabilities
            values["token_log_probabilities"] = list(map(float32_repr, logs))
            yield json.dumps(values, ensure_ascii=False)
        else:
            yield "\t".join(map(json.dumps, values.values()))


def _summary(scores: Sequence[PairScore]) -> str:
    """Summarizes all scores in one line."""
    num_tokens = sum(score.num_tokens for score in scores)
    if not num_tokens:
        return "Scored 0 pairs."
    mean = math.fsum(score.log_probability for score in scores) / num_tokens
    perplexity = math.exp(-mean) if mean > -700 else math.inf  # no OverflowError
    return (
        f"Scored {len(scores):,} pairs, {num_tokens:,} target tokens including eos: "
        f"log-probability per token {mean:.4f}, perplexity {perplexity:.2f}. "
        f"Natural logarithms. Sources cut: {sum(one.source_cut for one in scores):,}."
    )
