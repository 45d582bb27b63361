"""Configuration of the optimizer, the training step and its reports. Without JAX."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from t2t_jax.errors import ErrorCollector

GRADIENT_DTYPES = ("float32", "bfloat16")
ON_NONFINITE = ("skip", "stop")

# A trace stays in memory until its last step.
_MAX_PROFILED = 100

_MAX_PARTS = 100_000
_MAX_WARMUP = 1_000_000_000  # optimizer steps
_YEAR = 31_536_000  # seconds; the clocks of threads refuse far longer waits


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam and the learning rate of §5.3.

    Paper: §5.3, with beta1 0.9, beta2 0.98, epsilon 1e-9 and 4,000 warm-up steps.

    Attributes:
      warmup_steps (optimizer steps): Steps over which the learning rate rises linearly.
      peak_learning_rate (per update): Learning rate at the end of the warm-up; 0 for
        the paper's `d_model^-0.5 * warmup_steps^-0.5`.
      beta1 (decay rate): Adam's decay rate of the first moment, in [0, 1).
      beta2 (decay rate): Adam's decay rate of the second moment, in [0, 1).
      epsilon (constant): Added to the square root of the second moment, above 0.
    """

    warmup_steps: int = 4_000
    peak_learning_rate: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            self.warmup_steps >= 1,
            f"optimizer.warmup_steps={self.warmup_steps} must be at least 1. "
            "Change config.optimizer.warmup_steps.",
        )
        problems.limit("optimizer.warmup_steps", self.warmup_steps, _MAX_WARMUP)
        problems.check(
            0 <= self.peak_learning_rate < math.inf,
            f"optimizer.peak_learning_rate={self.peak_learning_rate} must be a "
            "positive number, or 0 for the paper's. "
            "Change config.optimizer.peak_learning_rate.",
        )
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            problems.check(
                0 <= value < 1,
                f"optimizer.{name}={value} must lie in [0, 1). "
                f"Change config.optimizer.{name}.",
            )
        problems.check(
            0 < self.epsilon < math.inf,
            f"optimizer.epsilon={self.epsilon} must be a positive number. "
            "Change config.optimizer.epsilon.",
        )
        problems.raise_if_any()


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What the training step computes, and in how many parts.

    Attributes:
      label_smoothing (probability): Probability mass spread evenly over the vocabulary.
        Paper: §5.4, 0.1.
      micro_batches (parts): Parts of its rows that each device processes one after the
        other, so that a large batch fits into small memory; 0 (`auto` on the command
        line) for the fewest that fit. Only the order of sums changes.
      gradient_dtype: Type of the gradients that devices exchange over the mesh axis
        `data`; "bfloat16" halves the bytes. Departs: "bfloat16" rounds the gradient of
        each group of devices to 8 bits.
      loss_chunks (parts): Parts of each target for which logits and loss are computed
        one after the other, so that no device holds the logits of all its tokens. Only
        the order of sums changes.
      on_nonfinite: What follows a step whose loss or gradient is infinite or NaN; its
        update is not applied. "skip" continues, "stop" ends the run.
      max_bad_steps (optimizer steps): The run ends after this many consecutive steps
        without an update.
      skip_gradient_norm (L2 norm): Updates whose global gradient norm is above this are
        skipped; 0 to apply all. Departs: above 0, updates of the paper's optimizer are
        left out.
      step_timeout (seconds): A run without a new step for this long counts as stuck:
        each process prints the stacks of its threads and exits. 0 for no limit.
      pause_timeout (seconds): The same limit while a run compiles, evaluates or saves,
        and for the first three steps after that.
    """

    label_smoothing: float = 0.1
    micro_batches: int = 1
    gradient_dtype: str = "float32"
    loss_chunks: int = 1
    on_nonfinite: str = "skip"
    max_bad_steps: int = 10
    skip_gradient_norm: float = 0.0
    step_timeout: float = 600.0
    pause_timeout: float = 3600.0

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            0 <= self.label_smoothing < 1,
            f"training.label_smoothing={self.label_smoothing} must lie in [0, 1) "
            "(§5.4). Change config.training.label_smoothing.",
        )
        problems.check(
            self.micro_batches >= 0,
            f"training.micro_batches={self.micro_batches} must be at least 1, or 0 "
            "for the fewest that fit. Change config.training.micro_batches.",
        )
        problems.check(
            self.gradient_dtype in GRADIENT_DTYPES,
            f"training.gradient_dtype={self.gradient_dtype!r} must be one of "
            f"{', '.join(GRADIENT_DTYPES)}. Change config.training.gradient_dtype.",
        )
        problems.check(
            self.loss_chunks >= 1,
            f"training.loss_chunks={self.loss_chunks} must be at least 1: parts of "
            "each row. Change config.training.loss_chunks.",
        )
        problems.check(
            self.on_nonfinite in ON_NONFINITE,
            f"training.on_nonfinite={self.on_nonfinite!r} must be one of "
            f"{', '.join(ON_NONFINITE)}. Change config.training.on_nonfinite.",
        )
        problems.check(
            self.max_bad_steps >= 1,
            f"training.max_bad_steps={self.max_bad_steps} must be at least 1. "
            "Change config.training.max_bad_steps.",
        )
        self._check_limits(problems)
        for name in ("skip_gradient_norm", "step_timeout", "pause_timeout"):
            value = getattr(self, name)
            problems.check(
                0 <= value < math.inf,
                f"training.{name}={value} must be 0 (off) or more. "
                f"Change config.training.{name}.",
            )
        problems.raise_if_any()

    def _check_limits(self, problems: ErrorCollector) -> None:
        """Checks upper limits."""
        problems.limit("training.micro_batches", self.micro_batches, _MAX_PARTS)
        problems.limit("training.loss_chunks", self.loss_chunks, _MAX_PARTS)
        for name in ("step_timeout", "pause_timeout"):
            value = getattr(self, name)
            if math.isfinite(value):
                why = "a year; 0 is no limit"
                problems.limit(f"training.{name}", value, _YEAR, why=why)


@dataclass(frozen=True, kw_only=True)
class LoggingConfig:
    """How often a run reports metrics.

    Attributes:
      every_steps (optimizer steps): Interval of the records in metrics.jsonl; the first
        step has one too.
      every_seconds (seconds): Interval of progress lines if stderr is not a terminal;
        the first step has one too. On a terminal they are shown each second.
    """

    every_steps: int = 100
    every_seconds: float = 10.0

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            self.every_steps >= 1,
            f"logging.every_steps={self.every_steps} must be at least 1. "
            "Change config.logging.every_steps.",
        )
        problems.check(
            0 <= self.every_seconds < math.inf,
            f"logging.every_seconds={self.every_seconds} must be 0 or more. "
            "Change config.logging.every_seconds.",
        )
        problems.raise_if_any()


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """Which steps of a run are profiled.

    Attributes:
      steps: First and last of at most 100 steps to trace, such as "10:15", into the
        `profile` directory of the workdir; empty for none.
    """

    steps: str = ""

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        problems.check(
            not self.steps or 1 <= len(self.span) <= _MAX_PROFILED,
            f'profile.steps={self.steps!r} must be "first:last" with '
            f"1 <= first <= last, at most {_MAX_PROFILED} steps in all, or empty for "
            "none. Change config.profile.steps.",
        )
        problems.raise_if_any()

    @property
    def span(self) -> range:
        """The numbers of the steps; empty for none.

        Example:
          >>> list(ProfileConfig(steps="3:5").span)
          [3, 4, 5]
        """
        # At most twelve digits: a range of more could not be counted.
        found = re.fullmatch("([1-9][0-9]{0,11}):([1-9][0-9]{0,11})", self.steps)
        return range(int(found[1]), int(found[2]) + 1) if found else range(0)
