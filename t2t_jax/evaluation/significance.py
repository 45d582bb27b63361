"""How sure a score is, and a difference of two: sacreBLEU's own bootstrap."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from t2t_jax.evaluation.bleu import IN_TRAINING, aligned, known_metrics, make_metric

LEVEL = 0.95
"""Share of the resampled corpora whose scores an interval holds."""

RESAMPLES = 1000
"""Corpora that are drawn from the sentences, with replacement."""

SEED = 12345
"""Of the draws; sacreBLEU's own, so that its command gives the same figures."""

_SEED_VARIABLE = "SACREBLEU_SEED"


def bootstrap_intervals(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    metrics: Iterable[str] = IN_TRAINING,
) -> dict[str, Any]:
    """Estimates how far each score would wander on other sentences of the same kind.

    Args:
      hypotheses: translations, one line a sentence.
      metrics: names out of `t2t_jax.evaluation.bleu.METRICS`.

    Returns:
      The level, the number of resamples and the seed; then for each metric the `mean`
      over the resampled corpora and the `half_width` of the interval around it, in
      percent.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side is a single string, or holds something else than strings.

    Example:
      >>> intervals(["Ein Hund bellt laut."], ["Ein Hund bellt laut."])["chrf"]
      {'mean': 100.0, 'half_width': 0.0}
    """
    hypotheses, references = aligned(hypotheses, references, caller="intervals")
    found: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
    for name in known_metrics(metrics, caller="intervals"):
        (result,) = _resampled(name, [hypotheses], references)
        found[name] = {
            "mean": float(result.mean),
            "half_width": float(result.ci),
        }
    return found


def paired_test(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    baseline: Iterable[str],
    metrics: Iterable[str] = IN_TRAINING,
) -> dict[str, Any]:
    """Tests whether two systems differ by more than the choice of sentences explains.

    Both are scored on the same resampled corpora (paired bootstrap).

    Args:
      hypotheses: translations of the system in question.
      baseline: translations of the system it is compared with.
      metrics: names out of `t2t_jax.evaluation.bleu.METRICS`.

    Returns:
      The test, the number of resamples and the seed; then for each metric the scores
      of `system` and `baseline` in percent, which of the two is `better`, and the
      `p_value`. Where both scores are the same it is None: sacreBLEU's estimate has
      no meaning there, and is a very small number.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side is a single string, or holds something else than strings.

    Example:
      >>> lines = ["Ein Hund bellt sehr laut.", "Zwei Katzen schlafen gern lange."]
      >>> paired_test(lines, lines, baseline=["Hund.", "Katze."])["chrf"]["better"]
      'system'
    """
    hypotheses, references = aligned(hypotheses, references, caller="paired_test")
    baseline, _ = aligned(baseline, references, caller="paired_test")
    found: dict[str, Any] = {
        "test": "paired bootstrap",
        "resamples": RESAMPLES,
        "seed": SEED,
    }
    for name in known_metrics(metrics, caller="paired_test"):
        other, ours = _resampled(name, [baseline, hypotheses], references)
        gain = ours.score - other.score
        if name == "ter":  # it counts edits: fewer are better
            gain = -gain
        found[name] = {
            "system": float(ours.score),
            "baseline": float(other.score),
            "better": _better(gain),
            "p_value": float(ours.p_value) if gain else None,
        }
    return found


def _better(gain: float) -> str:
    if not gain:
        return "neither"
    return "system" if gain > 0 else "baseline"


def _resampled(
    name: str, systems: Sequence[Sequence[str]], references: Sequence[str]
) -> list[Any]:
    """Lets sacreBLEU score and resample; the first system is its baseline."""
    from sacrebleu.significance import PairedTest

    named: list[tuple[str, Sequence[str]]] = [
        (str(number), list(lines)) for number, lines in enumerate(systems)
    ]
    metric = {name: make_metric(name, references)}
    with _seeded():
        test = PairedTest(
            named, metric, references=None, test_type="bs", n_samples=RESAMPLES
        )
        _, scores = test()
    del scores["System"]  # the names; what is left is the metric, as sacreBLEU calls it
    ((*results,),) = scores.values()
    return results


@contextmanager
def _seeded() -> Iterator[None]:
    """Sets the seed the only way there is, and leaves the environment as it was."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(SEED)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED_VARIABLE]
        else:
            os.environ[_SEED_VARIABLE] = before
