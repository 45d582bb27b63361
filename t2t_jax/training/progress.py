"""Where a run stands, and when something is due."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from t2t_jax.types import DataPosition

Record = dict[str, Any]
"""What a run says of itself: JSON values, with `step` and `kind` among them."""


class RunProgress(NamedTuple):
    """Where a run stands; saved with every checkpoint.

    Attributes:
      step: optimizer steps made.
      position: the next batch to read.
      minutes: of training, evaluation and saving left out.
      best_bleu: highest development BLEU so far; -1 before the first evaluation.
      saved_minutes: `minutes` at the last periodic checkpoint.
      window: the `Sums` of the steps since the last training record, so that a
        resumed run writes the record that it would have written; () for none.
        (A record's gradient norm is that of its last update.)
      gradient_norm: of the last update.
      skipped: steps of the run that made no update; see
      `training.step.skip_bad_updates`.
      skipped_in_a_row: how many of them are the last steps made.
      pending: the kinds of the checkpoint of this very step, if the evaluation after
        it was given up for a signal and has to be made up for; () as a rule.
    """

    step: int = 0
    position: DataPosition = DataPosition(0, 0)
    minutes: float = 0.0
    best_bleu: float = -1.0
    saved_minutes: float = 0.0
    window: tuple[float, ...] = ()
    gradient_norm: float = 0.0
    skipped: int = 0
    skipped_in_a_row: int = 0
    pending: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, as they are saved; without a BLEU there is none.

        Example:
          >>> "best_bleu" in Progress(7).to_dict()
          False
        """
        values = self._asdict()
        if self.best_bleu < 0:
            del values["best_bleu"]
        return values

    def completes(self, steps: int) -> bool:
        """Tells whether a run of so many steps is over.

        Example:
          >>> Progress(7).completes(7), Progress(7, pending=("stopped",)).completes(7)
          (True, False)
        """
        return self.step >= steps and not self.pending


class Intervals(NamedTuple):
    """When something is due, in optimizer steps; 0 is never, but for `log`.

    Attributes:
      steps: at which training is complete.
      log: between training records; the first step has one too.
      evaluate: between evaluations; the last step is evaluated too, unless this is 0.
      show_seconds: seconds after which metrics are shown again, whatever the records;
        those of a process's first and 20th step always are.
      save_steps: between periodic checkpoints.
      save_minutes: between periodic checkpoints, in minutes of training.
      save_epochs: between periodic checkpoints, in passes over the corpus.
    """

    steps: int
    log: int
    evaluate: int
    show_seconds: float = math.inf
    save_steps: int = 0
    save_minutes: float = 0.0
    save_epochs: int = 0
