"""What training takes: the time left, and the size that suits a number of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from t2t_jax.config import Config
from t2t_jax.model.counting import count_parameters
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
    tokens_per_batch: int = 0
    parameters: int = 0
    on_cpu: bool = False

    def evaluations_after(self, step: int) -> int:
        """Counts the evaluations after a step; the last step has one too."""
        every = self.evaluate_every
        if not every or step >= self.steps:
            return 0
        return self.steps // every - step // every + (self.steps % every > 0)

    def seconds_left(
        self, step: int, *, step_seconds: float, tokens_per_second: float = 1.0
    ) -> float:
        """Estimates the seconds from a step to the end.

        Args:
          step_seconds: of one step.
          tokens_per_second: of evaluations, if they are not part of `step_seconds`.
        """
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
    pace = f"{step_seconds:{'.2g' if step_seconds < 10 else '.0f'}} s"
    what = f"{size.steps - step:,} steps of {pace}"
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


# A corpus beyond the limits of a row by this factor calls for another row.
_FACTOR = 2


class Row(NamedTuple):
    """A row of configs/own_text.py.

    Attributes:
      parameters: smallest number of parameters of encoder and decoder that counts as
        this size: the geometric mean of this row's and the smaller row's.
      two_cores: how long all its steps take on two CPU cores, at the speeds of
        benchmarks/README.md.
    """

    name: str
    pairs: float
    parameters: float
    two_cores: str


ROWS = (
    Row("small", 0, 0, "80 minutes"),
    Row("medium", 50_000, 2_700_000, "10 hours"),
    Row("large", 500_000, 15_600_000, "2 months"),
)
"""The rows, smallest first."""


def size_advice(config: Config, pairs: int) -> str:
    """Suggests the row that suits a training corpus if the model's size does not.

    Returns:
      A line; "" if the size suits the corpus, for the recurrent baseline, and for the
      phrasebook, whose sentences all follow one grammar.

    Example:
      >>> size_advice(Config(), 4_500_000)
      ''
      >>> size_advice(Config(), 29_000)
      '29,000 pairs are few for a model of this size (44,101,632 parameters without the
      vocabulary). --config=own_text:small suits 50,000 pairs or fewer; all of it takes
      80 minutes on two CPU cores.'
    """
    if config.architecture != "transformer" or "phrasebook:" in config.data.train:
        return ""
    counted = count_parameters(config.model)
    size = counted.encoder + counted.decoder
    number = max(n for n, row in enumerate(ROWS) if size >= row.parameters)
    most = ROWS[number + 1].pairs if number + 1 < len(ROWS) else math.inf
    fits = max(n for n, row in enumerate(ROWS) if pairs >= row.pairs)
    size_text = f"of this size ({size:,} parameters without the vocabulary)"
    row = (
        f"--config=own_text:{ROWS[fits].name} suits {_range(fits)}; all of it takes "
        f"{ROWS[fits].two_cores} on two CPU cores."
    )
    if pairs * _FACTOR < ROWS[number].pairs:
        return f"{pairs:,} pairs are few for a model {size_text}. {row}"
    if pairs > _FACTOR * most:
        return (
            f"{pairs:,} pairs are enough for a larger model than one {size_text}. {row}"
        )
    return ""


def _range(number: int) -> str:
    """Formats the numbers of pairs that a row suits."""
    least = ROWS[number].pairs
    if number + 1 == len(ROWS):
        return f"{least:,.0f} pairs or more"
    most = ROWS[number + 1].pairs
    return (
        f"{least:,.0f} to {most:,.0f} pairs" if least else f"{most:,.0f} pairs or fewer"
    )
