"""Which row of configs/own_text.py suits a number of sentence pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

from t2t_jax.config import Config
from t2t_jax.model.counting import count_parameters

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
