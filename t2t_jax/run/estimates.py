"""What training takes: the time left, and the size that suits a number of pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

from t2t_jax.config import Config
from t2t_jax.model.counting import count_parameters
from t2t_jax.quantities import format_duration

# Measured on two CPU cores (benchmarks): a beam of 4 decodes 0.8 times as many target
# tokens a second as training reads, and the loss takes a third of a training step.
EVALUATION_COST = 1.6

_TOO_LONG = 12 * 3600.0


def estimate(
    config: Config,
    step: int,
    *,
    step_seconds: float,
    tokens_per_second: float,
    dev_tokens: int = 0,
    on_cpu: bool = False,
) -> str:
    """Describes the time left; for a long run on a CPU also what would shorten it.

    Args:
      step: the last one, before that of `config.steps`.
      dev_tokens: target tokens translated at each evaluation.
    """
    steps, every = config.steps, config.evaluation.every_steps
    # The last step has one too.
    evaluations = steps // every - step // every + (steps % every > 0) if every else 0
    evaluation = EVALUATION_COST * dev_tokens / (tokens_per_second or math.inf)
    left = (steps - step) * step_seconds + evaluations * evaluation
    pace = f"{step_seconds:{'.2g' if step_seconds < 10 else '.0f'}} s"
    what = f"{steps - step:,} steps of {pace}"
    if evaluations:
        noun = f"evaluation{'s' * (evaluations > 1)}"
        what += f" and {evaluations:,} {noun} of at least {format_duration(evaluation)}"
        # Outputs of an untrained model run to their length limit.
        what += ", more as long as translations reach their length limit"
    line = f"Estimated time left: {format_duration(left)} ({what})."
    if not on_cpu or left <= _TOO_LONG:
        return line
    fewer = _round_down(step + _TOO_LONG / left * (steps - step))
    return (
        f"{line}\n  That is more than 12 hours on a CPU. --config.steps={fewer} takes "
        f"about {format_duration(_TOO_LONG)}, and learns less. In a new --workdir, "
        "fewer config.data.tokens_per_batch or a smaller model, such as "
        "--config=own_text:small, take less; or use a GPU or TPU."
    )


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
      least: of the numbers of pairs that it suits, as `most` and `suits`.
      parameters: smallest number of parameters of encoder and decoder that counts as
        this size: the geometric mean of this row's and the smaller row's.
      two_cores: how long all its steps take on two CPU cores, at the speeds of
        benchmarks/README.md.
    """

    name: str
    least: float
    most: float
    suits: str
    parameters: float
    two_cores: str


ROWS = (
    Row("small", 0, 50_000, "50,000 pairs or fewer", 0, "80 minutes"),
    Row("medium", 50_000, 500_000, "50,000 to 500,000 pairs", 2_700_000, "10 hours"),
    Row("large", 500_000, math.inf, "500,000 pairs or more", 15_600_000, "2 months"),
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
    is_own = config.python.module or config.architecture != "transformer"
    if is_own or "phrasebook:" in config.data.train:
        return ""
    counted = count_parameters(config.model)
    size = counted.encoder + counted.decoder
    own = [row for row in ROWS if size >= row.parameters][-1]
    better = [row for row in ROWS if pairs >= row.least][-1]
    is_few = pairs * _FACTOR < own.least
    if not is_few and pairs <= _FACTOR * own.most:
        return ""
    found = "few for a model" if is_few else "enough for a larger model than one"
    return (
        f"{pairs:,} pairs are {found} of this size ({size:,} parameters without the "
        f"vocabulary). --config=own_text:{better.name} suits {better.suits}; all of it "
        f"takes {better.two_cores} on two CPU cores."
    )
