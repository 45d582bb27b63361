"""What is not as the paper has it, by name: always, or because a configuration says so.

What the paper itself varies is no departure; see `t2t_jax.description.variations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from t2t_jax.config import ARCHITECTURES, Config, to_dict
from t2t_jax.data.config import DataConfig
from t2t_jax.description.choices import CHOICES
from t2t_jax.parsing import flatten

_TOKENS_PER_BATCH = 25_000
_NEAR = 0.2
"""How far from the paper's "approximately 25000" a batch may be and still be near."""


class Departure(NamedTuple):
    """Something that is not as in the paper.

    Attributes:
      name: what.
      paper: how the paper has it.
      here: how it is with this configuration.
      key: the configuration key that decides; "" where none does.
    """

    name: str
    paper: str
    here: str
    key: str


_PACKED = Departure(
    "packed rows",
    "pairs batched by approximate length (§5.1)",
    "several pairs share a row; segments and positions keep them apart",
    "",
)

_ALWAYS = (
    Departure(
        "dropout masks",
        "not said (§5.4)",
        "a hash of step, site, row and place: the same on any number of devices",
        "",
    ),
    Departure(
        "vocabulary",
        "byte-pair encoding (En-De), word pieces (En-Fr) (§5.1)",
        "SentencePiece's BPE on raw text, of a sample where there is much of it",
        "",
    ),
    Departure(
        "scores",
        "tokenised, compound-split BLEU (Table 2)",
        "sacreBLEU on raw text, with its signature",
        "",
    ),
    Departure(
        "search",
        "pad and bos not mentioned (§6.1)",
        "never said; a beam of 1 is greedy",
        "",
    ),
)


def departures(config: Config) -> list[Departure]:
    """Lists all that is not as in the paper.

    Args:
      config: of the experiment.

    Returns:
      What departs whatever is configured, then what this configuration chooses.

    Example:
      >>> [departure.name for departure in departures(Config())]
      ['packed rows', 'dropout masks', 'vocabulary', ..., 'longest sentence']
    """
    packed = [_PACKED] if config.data.layout == "packed" else []
    return [*packed, *_ALWAYS, _lengths(config), *_chosen(config), *_computed(config)]


def _lengths(config: Config) -> Departure:
    return Departure(
        "longest sentence",
        "no bound said",
        f"pairs with a side over {config.data.max_length:,} subwords are left out of "
        f"training; sources over {config.decoding.max_source_length:,} are split",
        # Some bound there always is: only another than the usual is a choice.
        "" if config.data.max_length == DataConfig.max_length else "data.max_length",
    )


def _chosen(config: Config) -> Iterator[Departure]:
    values = dict(flatten(to_dict(config)))
    section = ARCHITECTURES[config.architecture]
    for choice in CHOICES:
        key = choice.key.replace("network", section)
        # The baseline has not all the keys of the Transformer.
        value = values.get(key, choice.faithful)
        if value != choice.faithful:
            here = choice.here.format(value).replace("model.", f"{section}.")
            yield Departure(choice.name, choice.paper, here, key)


def _computed(config: Config) -> Iterator[Departure]:
    """Yields what takes more than a comparison with one value."""
    tokens = config.data.tokens_per_batch
    if not math.isclose(tokens, _TOKENS_PER_BATCH, rel_tol=_NEAR):
        yield Departure(
            "batch size",
            f"about {_TOKENS_PER_BATCH:,} tokens a side (§5.1)",
            f"{tokens:,} slots a side",
            "data.tokens_per_batch",
        )
    given, optimizer = config.optimizer.peak_learning_rate, config.optimizer
    equation = (config.network.d_model * optimizer.warmup_steps) ** -0.5
    if given and not math.isclose(given, equation, rel_tol=1e-3):
        yield Departure(
            "peak learning rate",
            f"(d_model * warmup_steps)^-0.5 = {equation:.3e} (§5.3, equation 3)",
            f"{given:.3e}",
            "optimizer.peak_learning_rate",
        )
    yield from _checkpoints(config)


def _checkpoints(config: Config) -> Iterator[Departure]:
    """Yields how the checkpoints that are averaged differ from the paper's."""
    every, spacing = config.checkpoint, []
    if every.every_steps:
        spacing.append(("every_steps", f"{every.every_steps:,} steps"))
    if every.every_epochs:
        spacing.append(("every_epochs", f"{every.every_epochs} epoch(s)"))
    if every.every_minutes not in (0, 10) or (every.every_minutes and spacing):
        spacing.append(("every_minutes", f"{every.every_minutes:g} minutes"))
    if not spacing and not every.every_minutes:
        spacing.append(("every_minutes", "none but the best and the last"))
    if spacing:
        yield Departure(
            "spacing of checkpoints",
            "10 minutes (§6.1)",
            " and ".join(text for _, text in spacing),
            f"checkpoint.{spacing[0][0]}",
        )
    if every.keep not in (5, 20):
        yield Departure(
            "checkpoints averaged",
            "the last 5, of big models the last 20 (§6.1)",
            f"{every.keep}",
            "checkpoint.keep",
        )
