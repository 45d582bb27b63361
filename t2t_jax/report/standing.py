"""Where a run stands: its status, and the records of its best and newest evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from t2t_jax.config import Config
from t2t_jax.report.curves import number, training_seconds
from t2t_jax.run.status import read_status
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import Record, best_by


class Standing(NamedTuple):
    """Where a run stands.

    Attributes:
      state: a word, as in `run.status.read_status`.
      reason: a sentence.
      steps: of the whole run.
      seconds_left: estimated; None unless it is running.
      done_at: UTC, when it will be done; None unless it is running.
      minutes: of training so far.
      best: the record of the best evaluation.
      last: the record of the newest evaluation.
    """

    state: str
    reason: str
    step: int
    steps: int
    seconds_left: float | None
    done_at: str | None
    minutes: float
    best: Record | None
    last: Record | None


def standing(
    workdir: Workdir,
    config: Config,
    records: Sequence[Record],
    *,
    is_over: bool = False,
) -> Standing:
    """Finds out where a run stands.

    Args:
      records: from `curves.steps_of`.
      is_over: whether the training of this process has ended, though it still holds
        the lock.

    Raises:
      UserError: not a run, or its configuration is damaged.
    """
    status = read_status(workdir)
    evaluations = [record for record in records if record["kind"] == "eval"]
    scored = [r for r in evaluations if number(r, "bleu") is not None]
    state, reason = status["state"], status["reason"]
    step = max([status["step"] or 0, *(record["step"] for record in records)])
    if is_over and state == "running":
        state, reason = _end(config, records, step=step)
    is_running = state == "running"
    train = [record for record in records if record["kind"] == "train"]
    return Standing(
        state=state.replace("_", " "),
        reason=f"{reason[:1].upper()}{reason[1:]}.",
        step=step,
        steps=config.steps,
        seconds_left=status["seconds_left"] if is_running else None,
        done_at=status["done_at"] if is_running else None,
        minutes=sum(map(training_seconds, train)) / 60,
        # The lowest loss of equal ones, as checkpoints are kept.
        best=max(scored, key=best_by, default=None),
        last=evaluations[-1] if evaluations else None,
    )


def _end(config: Config, records: Sequence[Record], *, step: int) -> tuple[str, str]:
    """Returns state and reason at the end of a training that did not fail."""
    if not any(record["kind"] == "final" for record in records):
        return "stopped", f"by a signal, after step {step:,}, which is saved"
    if step >= config.steps:
        return "complete", "done"
    return "complete", (
        f"ended early: {config.evaluation.patience:,} evaluations in a row were not "
        "better (evaluation.patience)"
    )
