"""The progress of a run, and the intervals of its actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from t2t_jax.types import DataPosition

Record = dict[str, Any]
"""A record of metrics.jsonl: JSON values, `step` and `kind` among them."""

Kinds = tuple[str, ...]
"""Why a checkpoint is saved: periodic, best, final, stopped."""


def format_perplexity(value: float, *, digits: int = 2) -> str:
    """Formats a perplexity; that of a diverged model would have hundreds of digits.

    Example:
      >>> format_perplexity(7.254), format_perplexity(1e304)
      ('7.25', '> 1e9')
    """
    return "> 1e9" if value > 1e9 else f"{value:.{digits}f}"


class Score(NamedTuple):
    """The score of an evaluation; the larger one is better.

    Attributes:
      score: F1 of trees, else BLEU; -1 for none.
      negative_loss: decides between equal scores; -inf if the loss is not finite.
    """

    score: float = -1.0
    negative_loss: float = -math.inf


def best_by(record: Record) -> Score:
    """Returns the score that decides which evaluation is best.

    Example:
      >>> best_by({"bleu": 0.0, "loss": 7.0}) < best_by({"bleu": 0.0, "loss": 6.0})
      True
      >>> best_by({"bleu": 20.0, "f1": 71.5}).score, best_by({"loss": 6.0}).score
      (71.5, -1.0)
    """
    score, loss = record.get("f1", record.get("bleu")), record.get("loss")
    if score is None:
        return Score()
    if loss is None or not math.isfinite(loss):
        return Score(float(score))
    return Score(float(score), -float(loss))


class RunProgress(NamedTuple):
    """The progress of a run, saved with every checkpoint.

    Attributes:
      position: the next batch to read.
      minutes: of training, without evaluation and saving.
      best_score: highest development score so far, of `best_by`; -1 before the first
        evaluation.
      best_loss: development loss at `best_score`; inf if unknown.
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
    pending: Kinds = ()
    best_loss: float = math.inf

    @property
    def best(self) -> Score:
        """The best score so far."""
        return Score(self.best_score, -self.best_loss)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, without the best score and loss if unknown."""
        values = self._asdict()
        if self.best_score < 0:
            del values["best_score"]
        if not math.isfinite(self.best_loss):
            del values["best_loss"]
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

    def after_evaluation(self, score: Score) -> RunProgress:
        """Returns the progress after an evaluation.

        Example:
          >>> once = RunProgress().after_evaluation(Score(20.0, -3.5))
          >>> twice = once.after_evaluation(Score(20.0, -3.6))
          >>> twice.best_score, twice.best_loss, twice.stale_evaluations
          (20.0, 3.5, 1)
        """
        if score > self.best:
            best, loss = score.score, -score.negative_loss
            return self._replace(best_score=best, best_loss=loss, stale_evaluations=0)
        stale = self.stale_evaluations + (score.score >= 0)
        return self._replace(stale_evaluations=stale)

    def completes(self, steps: int, *, patience: int = 0) -> bool:
        """Returns whether a run is complete, with its evaluation.

        Args:
          steps: of the run.
          patience: evaluations without a better score that end it; 0 for never.
        """
        has_stalled = 0 < patience <= self.stale_evaluations
        return (self.step >= steps or has_stalled) and not self.pending


class Intervals(NamedTuple):
    """Intervals in optimizer steps; 0 for never, except for `log`.

    Attributes:
      log: between training records; the first step has one too.
      evaluate: between evaluations; the last step is evaluated too, unless this is 0.
      patience: evaluations in a row without a better score that end the run.
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
