"""Estimates how long a run takes, and suggests smaller settings for long runs."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.quantities import format_duration

# Measured on two CPU cores (benchmarks): a beam of 4 decodes 0.8 times as many target
# tokens a second as training reads, and the loss takes a third of a training step.
EVALUATION_COST = 1.6

_TOO_LONG = 12 * 3600.0
_MIN_TOKENS = 1_024


@dataclass(frozen=True, kw_only=True)
class RunSize:
    """The sizes that determine how long a run takes.

    Attributes:
      evaluate_every: optimizer steps between evaluations; 0 for none.
      dev_tokens: target tokens translated at each evaluation.
      tokens_per_batch: tokens per side of a batch, padding included.
    """

    steps: int
    evaluate_every: int = 0
    dev_tokens: int = 0
    tokens_per_batch: int
    parameters: int
    on_cpu: bool

    def evaluations_after(self, step: int) -> int:
        """Counts the evaluations after a step; the last step has one too."""
        every = self.evaluate_every
        if not every or step >= self.steps:
            return 0
        return self.steps // every - step // every + (self.steps % every > 0)

    def seconds_left(
        self, step: int, *, step_seconds: float, tokens_per_second: float
    ) -> float:
        """Estimates the seconds from a step to the end, evaluations included."""
        evaluation = EVALUATION_COST * self.dev_tokens / tokens_per_second
        steps = max(0, self.steps - step)
        return steps * step_seconds + self.evaluations_after(step) * evaluation


def estimate(
    size: RunSize, step: int, *, step_seconds: float, tokens_per_second: float
) -> str:
    """Describes the time left; for a long run on a CPU also what would shorten it."""
    left = size.seconds_left(
        step, step_seconds=step_seconds, tokens_per_second=tokens_per_second
    )
    evaluations = size.evaluations_after(step)
    what = f"{size.steps - step:,} steps of {_short(step_seconds)}"
    if evaluations:
        one = EVALUATION_COST * size.dev_tokens / tokens_per_second
        noun = "evaluation" if evaluations == 1 else "evaluations"
        # Outputs of an untrained model run to their length limit.
        what += f" and {evaluations:,} {noun} of at least {format_duration(one)}, more"
        what += " as long as translations reach their length limit"
    line = f"Estimated time left: {format_duration(left)} ({what})."
    if not size.on_cpu or left <= _TOO_LONG:
        return line
    return "\n".join([line, *_suggestions(size, step, left)])


def _short(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _suggestions(size: RunSize, step: int, left: float) -> list[str]:
    """Suggests settings with which a run takes about 12 hours."""
    steps = _round_down(step + _TOO_LONG / left * (size.steps - step))
    lines = [
        "  That is more than 12 hours on a CPU. Shorter, each by itself:",
        f"  --config.steps={steps} takes about {format_duration(_TOO_LONG)} "
        "(and learns less)",
    ]
    tokens = _round_down(_TOO_LONG / left * size.tokens_per_batch)
    tokens = max(tokens, _MIN_TOKENS)
    if tokens < size.tokens_per_batch:
        shorter = left * tokens / size.tokens_per_batch
        lines.append(
            f"  --config.data.tokens_per_batch={tokens} takes about "
            f"{format_duration(shorter)} (in a new --workdir)"
        )
    lines.append(
        f"  a smaller model than this one of {size.parameters:,} parameters, such as "
        "--config=own_text:small (in a new --workdir)"
    )
    return [*lines, "  or a GPU or TPU."]


def _round_down(number: float) -> int:
    """Rounds a number down to two significant digits.

    Example:
      >>> _round_down(5_678.9), _round_down(71.0), _round_down(3.4)
      (5600, 71, 3)
    """
    unit = int(10 ** max(0, len(str(int(number))) - 2))
    return max(1, int(number) // unit * unit)
