"""Scores of translations against raw references, by sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.errors import DataError


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    """Scores a translated corpus.

    Args:
      hypotheses: one line a sentence, as people would read them (detokenised).
      references: the raw references, aligned.

    Returns:
      `bleu` and `chrf` in percent, each with its sacreBLEU signature, without which
      a figure cannot be compared.

    Raises:
      DataError: the numbers of lines differ, or there are none.

    Departs: the paper's own figures are tokenised, compound-split BLEU, which is not
      comparable with sacreBLEU.

    Example:
      >>> corpus_scores(["Ein Hund bellt sehr laut."], ["Ein Hund bellt sehr laut."])
      {'bleu': 100.0..., 'bleu_signature': ..., 'chrf': 100.0, 'chrf_signature': ...}
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(hypotheses) != len(references) or not references:
        raise DataError(
            f"Scoring needs as many translations as references, and at least one: "
            f"{len(hypotheses)} and {len(references)} came. Check that both files "
            "have the same lines."
        )
    scores: dict[str, Any] = {}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        score = metric.corpus_score(list(hypotheses), [list(references)])
        scores[name] = score.score
        scores[f"{name}_signature"] = str(metric.get_signature())
    return scores
