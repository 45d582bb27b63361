"""From seconds to the figures of `decode.py`: rates, latencies, scores."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from step_figures import compare

from t2t_jax.evaluation.bleu import corpus_scores

RATE = "sentences_per_second"
_SHORT_LINES = 20


def batch_figures(
    rounds: Sequence[Sequence[float]], *, rows: int, length: int
) -> dict[str, Any]:
    """Makes figures of calls with outputs of a known length.

    Args:
      rounds: seconds of each call of each round.
      rows: sentences of a call.
      length: tokens of an output.

    Returns:
      Rates of the median round and of the best one, and what a call took: the median
      of all.
    """
    rates = [rows * len(calls) / sum(calls) for calls in rounds]
    median = statistics.median(rates)
    return {
        RATE: median,
        f"best_{RATE}": max(rates),
        "tokens_per_second": length * median,
        "call_ms": 1e3 * statistics.median(call for calls in rounds for call in calls),
        "calls_a_round": len(rounds[0]),
        "rounds": [round(rate, 2) for rate in rates],
    }


def at_headline(by_batch: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """Puts the figures that count in front of those of all batches.

    Args:
      by_batch: figures by the number of sentences of a call.

    Returns:
      The rates of the largest batch, the milliseconds of a single sentence if there
      were any, and `batches`, which has everything.
    """
    largest = by_batch[max(by_batch)]
    figures = {name: largest[name] for name in (RATE, "tokens_per_second")}
    if 1 in by_batch:
        figures["latency_ms"] = by_batch[1]["call_ms"]
    batches = {str(rows): found for rows, found in by_batch.items()}
    return {**figures, "batches": batches}


def text_figures(
    rounds: Sequence[tuple[float, int]], texts: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    """Makes figures of lines that were translated freely.

    Args:
      rounds: seconds and output tokens of each.
      texts: what came of the lines.
      references: what should have come; none where nobody knows.
    """
    rates = [len(texts) / seconds for seconds, _ in rounds]
    figures = {
        RATE: statistics.median(rates),
        f"best_{RATE}": max(rates),
        "tokens_per_second": statistics.median(
            tokens / seconds for seconds, tokens in rounds
        ),
        "tokens": rounds[0][1],
        "rounds": [round(rate, 2) for rate in rates],
    }
    if references:
        figures.update(corpus_scores(texts, references, metrics=("bleu",)))
    return figures


def latency_figures(seconds: Sequence[float]) -> dict[str, float]:
    """Makes figures of short lines that came one by one, each another one.

    Args:
      seconds: of each. The first one pays for what a single line needs and no batch
        before it did; the others are of a warm process.
    """
    warm = seconds[1:] or seconds
    return {
        "very_first_ms": 1e3 * seconds[0],
        "median_ms": 1e3 * statistics.median(warm),
        "longest_ms": 1e3 * max(warm),
    }


def short_lines(lines: Sequence[str]) -> list[str]:
    """Picks the shortest lines, none twice.

    Args:
      lines: of a text.

    Example:
      >>> short_lines(["a b", "", "a", "a"])
      ['a', 'a b']
    """
    different = dict.fromkeys(line for line in lines if line.strip())
    return sorted(different, key=len)[:_SHORT_LINES]


def compared(ours: dict[str, Any], peers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Sets our figures beside those of peers, in all and batch by batch.

    Args:
      ours: from `at_headline` or `text_figures`.
      peers: by name; the first is that of `peer` and `ratio`.

    Returns:
      What `step_figures.compare` returns, and `ratios_by_batch` where there are any.
    """
    report = compare(ours, peers, rate=RATE)
    if "batches" not in ours:
        return report
    by_batch = {
        rows: {
            name: figures[RATE] / peer["batches"][rows][RATE]
            for name, peer in peers.items()
        }
        for rows, figures in ours["batches"].items()
    }
    return {**report, "ratios_by_batch": by_batch}
