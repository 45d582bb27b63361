"""The progress of a run, and the intervals of its actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from t2t_jax.types import DataPosition

Record = dict[str, Any]
"""A record of metrics.jsonl: JSON values, `step` and `kind` among them."""


def best_by(record: Record) -> float:
    """Returns the score that decides which evaluation is best: of trees F1, else BLEU.

    Example:
      >>> best_by({"bleu": 20.0}), best_by({"bleu": 20.0, "f1": 71.5}), best_by({})
      (20.0, 71.5, -1.0)
    """
    score = record.get("f1", record.get("bleu"))
    return -1.0 if score is None else float(score)


class RunProgress(NamedTuple):
    """The progress of a run, saved with every checkpoint.

    Attributes:
      position: the next batch to read.
      minutes: of training, without evaluation and saving.
      best_score: highest development score so far, of `best_by`; -1 before the first
        evaluation.
      stale_evaluations: number since the one of `best_score`.
      saved_minutes: `minutes` at the last periodic checkpoint.
      window: the `Sums` of the steps since the last training record, so that a
        resumed run writes the same record as an uninterrupted one; () for none.
        (A record's gradient norm is that of its last update.)
      skipped: updates skipped in the run; see `training.step.skip_bad_updates`.
      pending: kinds of the checkpoint of this step, if its evaluation was cancelled by
        a signal and has to be repeated; else ().
    """

    step: int = 0
    position: DataPosition = DataPosition(0, 0)
    minutes: float = 0.0
    best_score: float = -1.0
    stale_evaluations: int = 0
    saved_minutes: float = 0.0
    window: tuple[float, ...] = ()
    gradient_norm: float = 0.0
    skipped: int = 0
    skipped_in_a_row: int = 0
    pending: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, without `best_score` before an evaluation."""
        values = self._asdict()
        if self.best_score < 0:
            del values["best_score"]
        return values

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> RunProgress:
        """Returns the progress that a checkpoint has saved as JSON.

        Example:
          >>> saved = {"step": 3, "position": [0, 7], "best_score": 20.0}
          >>> RunProgress.from_dict(saved).best_score
          20.0
        """
        values = dict(saved)
        values["position"] = DataPosition(*values["position"])
        for name in ("window", "pending"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)

    def after_evaluation(self, score: float) -> RunProgress:
        """Returns the progress after an evaluation; -1 is for one without a score.

        Example:
          >>> once = RunProgress().after_evaluation(20.0).after_evaluation(19.5)
          >>> once.best_score, once.stale_evaluations
          (20.0, 1)
        """
        if score > self.best_score:
            return self._replace(best_score=score, stale_evaluations=0)
        stale = self.stale_evaluations + (score >= 0)
        return self._replace(stale_evaluations=stale)

    def completes(self, steps: int, *, patience: int = 0) -> bool:
        """Returns whether a run is complete, with its evaluation.

        Args:
          steps: of the run.
          patience: evaluations in a row without a better BLEU that end it; 0 for never.
        """
        has_stalled = 0 < patience <= self.stale_evaluations
        return (self.step >= steps or has_stalled) and not self.pending


class Intervals(NamedTuple):
    """Intervals in optimizer steps; 0 for never, except for `log`.

    Attributes:
      log: between training records; the first step has one too.
      evaluate: between evaluations; the last step is evaluated too, unless this is 0.
      patience: evaluations in a row without a better BLEU that end the run.
      show_seconds: seconds between metrics on the console; those of a process's first
        and 20th step are always shown.
      save_steps: between periodic checkpoints.
      save_minutes: between periodic checkpoints, in minutes of training.
      save_epochs: between periodic checkpoints, in epochs.
    """

    steps: int
    log: int
    evaluate: int
    patience: int = 0
    show_seconds: float = math.inf
    save_steps: int = 0
    save_minutes: float = 0.0
    save_epochs: int = 0
