"""Scores, their confidence intervals, and paired tests, by sacreBLEU's bootstrap."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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

_SEED_VARIABLE = "SACREBLEU_SEED"


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
    found: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
    for name in as_lines(metrics, caller="bootstrap_intervals", noun="metrics"):
        (result,) = _resample(name, [hypotheses], references, bleu=bleu)
        found[name] = {"mean": float(result.mean), "half_width": float(result.ci)}
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
        other, ours = _resample(name, [baseline, hypotheses], references, bleu=bleu)
        gain = ours.score - other.score
        is_better = gain < 0 if name == "ter" else gain > 0  # lower is better
        better = "system" if is_better else "baseline"
        found[name] = {
            "system": float(ours.score),
            "baseline": float(other.score),
            "better": better if gain else "neither",
            "p_value": float(ours.p_value) if gain and len(references) > 1 else None,
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
    name: str, lines: list[Sequence[str]], references: Sequence[str], bleu: BleuSettings
) -> list[Any]:
    """Scores and resamples with sacreBLEU; the first system is its baseline."""
    from sacrebleu.significance import PairedTest

    named: Any = [(str(number), list(some)) for number, some in enumerate(lines)]
    metric = {name: make_metric(name, references, bleu=bleu)}
    with _sacrebleu_seed():
        how: Any = {"references": None, "test_type": "bs", "n_samples": RESAMPLES}
        _, scores = PairedTest(named, metric, **how)()
    del scores["System"]  # the names; the metric remains
    ((*results,),) = scores.values()
    return results


@contextmanager
def _sacrebleu_seed() -> Iterator[None]:
    """Sets the seed through the environment, the only way, and restores that."""
    before = os.environ.pop(_SEED_VARIABLE, None)
    os.environ[_SEED_VARIABLE] = str(SEED)
    try:
        yield
    finally:
        del os.environ[_SEED_VARIABLE]
        if before is not None:
            os.environ[_SEED_VARIABLE] = before
