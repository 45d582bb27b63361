"""Scores of translations against raw references, by sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.errors import DataError

METRICS = ("bleu", "chrf", "ter")
"""What can be scored: higher is better, but of the last lower is."""

IN_TRAINING = METRICS[:2]
"""What is scored at every evaluation of a run."""


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = IN_TRAINING,
) -> dict[str, Any]:
    """Scores a translated corpus.

    Args:
      hypotheses: one line a sentence, as people would read them (detokenised).
      references: the raw references, aligned.
      metrics: names out of `METRICS`.

    Returns:
      Each metric in percent, unrounded, and with its sacreBLEU signature, without
      which a figure cannot be compared.

    Raises:
      DataError: the numbers of lines differ, or there are none.

    Departs: the paper's own figures are tokenised, compound-split BLEU, which is not
      comparable with sacreBLEU; see `t2t_jax.evaluation.paper_bleu`.

    Example:
      >>> corpus_scores(["Ein Hund bellt sehr laut."], ["Ein Hund bellt sehr laut."])
      {'bleu': 100.0..., 'bleu_signature': ..., 'chrf': 100.0, 'chrf_signature': ...}
    """
    require_aligned(hypotheses, references)
    scores: dict[str, Any] = {}
    for name in metrics:
        metric = make_metric(name, references)
        scores[name] = metric.corpus_score(list(hypotheses), None).score
        scores[f"{name}_signature"] = str(metric.get_signature())
    return scores


def make_metric(name: str, references: Sequence[str]) -> Any:
    """Makes a sacreBLEU metric with its default settings.

    Args:
      name: out of `METRICS`.
      references: raw references, read once for all that will be scored.

    Returns:
      The metric; where it is asked for a score, the references are None.

    Example:
      >>> make_metric("ter", ["Ein Hund."]).corpus_score(["Ein Hund."], None).score
      0.0
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    kinds: dict[str, Any] = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
    return kinds[name](references=[list(references)])


def require_aligned(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Checks that there is one translation for each reference.

    Raises:
      DataError: the numbers of lines differ, or there are none.
    """
    if len(hypotheses) != len(references) or not references:
        raise DataError(
            f"Scoring needs as many translations as references, and at least one: "
            f"{len(hypotheses)} and {len(references)} came. Check that both files "
            "have the same lines."
        )
