"""Configuration of checkpointing (no JAX needed)."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.errors import ErrorCollector, at_least_1, off_or_more


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

    every_steps: int = off_or_more(0)
    every_minutes: float = off_or_more(10.0)
    every_epochs: int = off_or_more(0)
    keep: int = at_least_1(5)

    def __post_init__(self) -> None:
        ErrorCollector("checkpoint", self).raise_if_any()

    @property
    def is_periodic(self) -> bool:
        """Whether an interval is enabled.

        Example:
          >>> CheckpointConfig(every_minutes=0.0).is_periodic
          False
        """
        return bool(self.every_steps or self.every_minutes or self.every_epochs)
