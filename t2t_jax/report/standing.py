"""Where a run stands, for its page and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.config import Config
from t2t_jax.report.curves import training_seconds
from t2t_jax.run.status import read_status
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import Record


def standing(
    workdir: Workdir,
    config: Config,
    records: Sequence[Record],
    *,
    is_over: bool = False,
) -> dict[str, Any]:
    """Finds out where a run stands.

    Args:
      records: from `curves.steps_of`.
      is_over: whether the training of this process has ended, though it still holds
        the lock.

    Returns:
      What `run.status.read_status` returns, with `minutes` of training so far, `step`
      and `steps` also of a model, and `state` and `reason` in words and as a sentence.

    Raises:
      UserError: not a run, or its configuration is damaged.
    """
    found = read_status(workdir)
    step = max([found["step"] or 0, *(record["step"] for record in records)])
    found |= {"step": step, "steps": config.steps}
    if is_over and found["state"] == "running":
        found |= {"seconds_left": None, "done_at": None} | _end(config, records, found)
    seconds = (training_seconds(one) for one in records if one["kind"] == "train")
    return found | {
        "state": found["state"].replace("_", " "),
        "reason": f"{found['reason'][:1].upper()}{found['reason'][1:]}.",
        "minutes": sum(seconds) / 60,
    }


def _end(
    config: Config, records: Sequence[Record], found: dict[str, Any]
) -> dict[str, str]:
    """Returns state and reason at the end of a training that did not fail."""
    if not any(record["kind"] == "final" for record in records):
        reason = f"by a signal, after step {found['step']:,}, which is saved"
        return {"state": "stopped", "reason": reason}
    reason = "done"
    if found["step"] < config.steps:
        reason = (
            f"ended early: {config.evaluation.patience:,} evaluations in a row were "
            "not better (evaluation.patience)"
        )
    return {"state": "complete", "reason": reason}
