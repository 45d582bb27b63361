"""Scores, their confidence intervals, and paired tests, by sacreBLEU's bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.data.line_arguments import as_lines
from t2t_jax.evaluation.bleu import (
    DEFAULT_BLEU,
    IN_TRAINING,
    BleuSettings,
    check_aligned,
    corpus_scores,
    make_metric,
)

LEVEL = 0.95
RESAMPLES = 1000
SEED = 12345  # sacreBLEU's default, so that its command agrees


def bootstrap_intervals(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = IN_TRAINING,
    bleu: BleuSettings = DEFAULT_BLEU,
) -> dict[str, Any]:
    """Estimates confidence intervals of scores by bootstrap resampling.

    Args:
      metrics: names from `t2t_jax.evaluation.bleu.METRICS`.

    Returns:
      The level, the number of resamples and the seed; then for each metric the `mean`
      over the resampled corpora and the `half_width` of the interval around it, in
      percent.

    Example:
      >>> lines = ["Ein Hund bellt laut."]
      >>> bootstrap_intervals(lines, lines)["chrf"]
      {'mean': 100.0, 'half_width': 0.0}
    """
    from sacrebleu.significance import estimate_ci

    found: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
    for name in as_lines(metrics, caller="bootstrap_intervals", noun="metrics"):
        ((_, scores),) = _resample(name, [hypotheses], references, bleu)
        mean, half_width = map(float, estimate_ci(scores))
        found[name] = {"mean": mean, "half_width": half_width}
    return found


def paired_test(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    baseline: Sequence[str],
    metrics: Sequence[str] = IN_TRAINING,
    bleu: BleuSettings = DEFAULT_BLEU,
) -> dict[str, Any]:
    """Tests the difference of two systems by paired bootstrap resampling.

    Args:
      baseline: translations of the other system.

    Returns:
      The test, the number of resamples and the seed; then for each metric the scores of
      `system` and `baseline` in percent, which of the two is `better`, and the
      `p_value`: None if both scores are equal or there is a single line, as
      sacreBLEU's estimate is meaningless then.

    Raises:
      DataError, TypeError: as in `bleu.check_aligned`.

    Example:
      >>> lines = ["Ein Hund bellt sehr laut.", "Zwei Katzen schlafen gern lange."]
      >>> paired_test(lines, lines, baseline=["Hund.", "Katze."])["chrf"]["better"]
      'system'
    """
    for lines in (hypotheses, baseline):
        check_aligned(lines, references, caller="paired_test")
    found: dict[str, Any] = {"test": "paired bootstrap"}
    found |= {"resamples": RESAMPLES, "seed": SEED}
    for name in as_lines(metrics, caller="paired_test", noun="metrics"):
        (other, others), (own, owns) = _resample(
            name, [baseline, hypotheses], references, bleu
        )
        gain, differences = own - other, np.abs(owns - others)
        exceeding = int(np.sum(differences - differences.mean() > abs(gain)))
        p_value = (exceeding + 1) / (RESAMPLES + 1)  # sacreBLEU's, never 0
        is_better = gain < 0 if name == "ter" else gain > 0  # lower is better
        better = "system" if is_better else "baseline"
        found[name] = {
            "system": own,
            "baseline": other,
            "better": better if gain else "neither",
            "p_value": p_value if gain and len(references) > 1 else None,
        }
    return found


def scores_and_tests(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = IN_TRAINING,
    bleu: BleuSettings = DEFAULT_BLEU,
    baseline: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Computes scores with their signatures, `intervals`, and a `paired_test`.

    Args:
      baseline: translations of another system; None for no test.

    Raises:
      DataError, TypeError: as in `bleu.check_aligned`.

    Example:
      >>> list(scores_and_tests(["Ein Hund."], ["Ein Hund."], metrics=["chrf"]))
      ['chrf', 'chrf_signature', 'intervals']
    """
    settings: dict[str, Any] = {"metrics": metrics, "bleu": bleu}
    both = hypotheses, references
    found = corpus_scores(*both, **settings)
    found["intervals"] = bootstrap_intervals(*both, **settings)
    if baseline is not None:
        found["paired_test"] = paired_test(*both, baseline=baseline, **settings)
    return found


def _resample(
    name: str,
    systems: list[Sequence[str]],
    references: Sequence[str],
    bleu: BleuSettings,
) -> list[tuple[float, npt.NDArray[np.float64]]]:
    """Returns the score of each system, and [R] of resampled corpora, as sacreBLEU's.

    sacreBLEU's own loop holds all resampled corpora at once, up to 80 KB a line.
    """
    metric = make_metric(name, references, bleu=bleu)
    found = [metric._extract_corpus_statistics(list(one), None) for one in systems]
    tables = [np.array(statistics, np.float32) for statistics in found]
    generator, lines = np.random.default_rng(SEED), len(references)
    scores = np.zeros((len(systems), RESAMPLES))
    for sample in range(RESAMPLES):
        drawn = generator.choice(lines, lines)
        for own, table in zip(scores, tables, strict=True):
            own[sample] = metric._compute_score_from_stats(table[drawn].sum(0)).score
    totals = (float(metric._aggregate_and_compute(one).score) for one in found)
    return list(zip(totals, scores, strict=True))
