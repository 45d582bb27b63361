"""Configuration of checkpointing (no JAX needed)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from t2t_jax.errors import ErrorCollector


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """When checkpoints are saved, and how many are kept.

    The three intervals can be combined; 0 turns one off. Always saved are the last
    step, the step at which a signal stops the run, and every step with a new best
    development BLEU.

    Attributes:
      every_steps (optimizer steps): Interval of periodic checkpoints; 0 for none.
      every_minutes (minutes): Training time between periodic checkpoints; 0 for none.
        Paper: §6.1 writes one every 10 minutes.
      every_epochs (epochs): Passes over the corpus between periodic checkpoints; 0 for
        none.
      keep (checkpoints): Number of newest periodic checkpoints kept, beside the best
        and the last one. Paper: §6.1 averages the last 5 (base) or 20 (big).
    """

    every_steps: int = 0
    every_minutes: float = 10.0
    every_epochs: int = 0
    keep: int = 5

    def __post_init__(self) -> None:
        problems = ErrorCollector("checkpoint", self)
        every = ("every_steps", "every_minutes", "every_epochs")
        problems.of("be 0 (off) or more", lambda x: 0 <= x < math.inf, *every)
        problems.of("be at least 1", lambda x: x >= 1, "keep")
        problems.raise_if_any()

    @property
    def is_periodic(self) -> bool:
        """Whether an interval is enabled.

        Example:
          >>> CheckpointConfig(every_minutes=0.0).is_periodic
          False
        """
        return bool(self.every_steps or self.every_minutes or self.every_epochs)
