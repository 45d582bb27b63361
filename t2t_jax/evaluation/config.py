"""What can be set about evaluation during training (no JAX needed)."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.errors import Problems


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """When the development set is scored, and how much of it is shown.

    Attributes:
      every_steps: optimizer steps between evaluations; 0 means only after the last.
      bleu_sentences: development sentences decoded for BLEU, from the first;
        0 means all of them. The loss always covers all.
      num_samples: translations shown and written at each evaluation.
    """

    every_steps: int = 5_000
    bleu_sentences: int = 0
    num_samples: int = 5

    def __post_init__(self) -> None:
        problems = Problems()
        for name in ("every_steps", "bleu_sentences", "num_samples"):
            value = getattr(self, name)
            problems.require(
                value >= 0,
                f"evaluation.{name}={value} must be 0 or more. "
                f"Change config.evaluation.{name}.",
            )
        problems.raise_if_any()
