"""Scores of development translations: intervals of one run, tests between several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.evaluation.significance import bootstrap_intervals, paired_test
from t2t_jax.run.dev_outputs import DevOutput, DevOutputs
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import Record


def best_output(workdir: Workdir, best: Record | None) -> DevOutput | None:
    """Reads the translations of the best evaluation; None if there are none.

    Args:
      best: the record of that evaluation.

    Raises:
      DataError: a file is too large.
    """
    return None if best is None else DevOutputs(workdir.path).read(best["step"])


def scores_of(output: DevOutput) -> dict[str, Any]:
    """Scores translations, with intervals by bootstrap resampling.

    Returns:
      What `corpus_scores` returns; `intervals`, from `bootstrap_intervals`; `step`
      and the number of `sentences`.
    """
    lines = output.hypotheses, output.references
    return {
        "step": output.step,
        "sentences": len(output.references),
        **corpus_scores(*lines),
        "intervals": bootstrap_intervals(*lines),
    }


def compare_outputs(outputs: Sequence[DevOutput | None]) -> list[dict[str, Any]]:
    """Compares translations of the same sentences with those of the first.

    Returns:
      One result each: `step` and either `scores` and `test` (from `paired_test`; None
      for the first), or `missing`, the reason why there is no test.
    """
    base = next((output for output in outputs if output), None)
    results: list[dict[str, Any]] = []
    for output in outputs:
        if output is None:
            reason = "no translations of its development set are saved"
            results.append({"step": None, "missing": reason})
        elif base is not None and output.references != base.references:
            reason = "its development set is another one"
            results.append({"step": output.step, "missing": reason})
        else:
            test = None
            if output is not base and base is not None:
                test = paired_test(
                    output.hypotheses, output.references, baseline=base.hypotheses
                )
            results.append(
                {"step": output.step, "scores": scores_of(output), "test": test}
            )
    return results
