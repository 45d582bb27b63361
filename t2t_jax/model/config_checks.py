"""Rules that the configurations of both models have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_jax.arguments import with_article
from t2t_jax.errors import Problems

CHOICES = {
    "norm_position": ("post", "pre"),
    "positions": ("sinusoidal", "learned"),
    "tying": ("all", "decoder", "none"),
    "compute_dtype": ("auto", "float32", "bfloat16"),
    "remat": (False, True),
    "attention": ("plain", "cudnn"),
}
"""What a key may hold, where it is neither a number nor free text."""

_LARGEST = 1_000_000
"""Of every size: what is beyond is a slip of the finger, and no machine holds it."""

MOST_LAYERS = 1_000
"""Of each stack: the compiler takes minutes for far fewer."""


def require_config(config: object, wanted: type, *, caller: str) -> None:
    """Checks that a module was given its configuration, and not its values alone.

    Raises:
      TypeError: it is of another type.
    """
    if not isinstance(config, wanted):
        name = wanted.__name__
        raise TypeError(
            f"{caller} takes {with_article(name)} as config, not "
            f"{with_article(type(config).__name__)}. Pass {name}(vocab_size=…)."
        )


def check_sizes(
    problems: Problems, config: object, section: str, *, names: Sequence[str]
) -> None:
    """Notes every size that is no whole number, or out of bounds."""
    for name in names:
        size = getattr(config, name)
        problems.require(
            is_size(size),
            f"{section}.{name}={size!r} must be a whole number from 1 to {_LARGEST:,}. "
            f"Change config.{section}.{name}.",
        )


def check_rates(
    problems: Problems, config: object, section: str, *, names: Sequence[str]
) -> None:
    """Notes every rate of dropout that is none."""
    for name in names:
        rate = getattr(config, name)
        # A comparison with NaN is False, so NaN is refused here as well.
        problems.require(
            is_number(rate) and 0 <= rate < 1,
            f"{section}.{name}={rate!r} must be in [0, 1): it is the probability of "
            f"being dropped (§5.4). Change config.{section}.{name}.",
        )


def check_words(problems: Problems, config: object, section: str) -> None:
    """Notes every word, of all of `CHOICES` that the configuration has, not known."""
    for name, known in CHOICES.items():
        word = getattr(config, name, known[0])
        problems.require(
            word in known,
            f"{section}.{name}={word!r} is not known; known are "
            f"{', '.join(map(repr, known))}. Change config.{section}.{name}.",
        )


def check_tying(problems: Problems, config: Any, section: str) -> None:
    """Notes where one matrix is to serve two vocabularies, or a vocabulary no size."""
    size = config.source_vocab_size
    problems.require(
        size == 0 or is_size(size),
        f"{section}.source_vocab_size={size!r} must be a whole number from 1 to "
        f"{_LARGEST:,}, or 0 for one vocabulary. "
        "Change config.vocabulary.source_size.",
    )
    problems.require(
        size == 0 or config.tying != "all",
        f"{section}.tying='all' needs one vocabulary of both sides, and the source has "
        f"its own. Change config.{section}.tying, or config.vocabulary.source_size.",
    )


def is_size(value: object) -> bool:
    """Tells a whole number within bounds; True and 8.0 are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return 1 <= value <= _LARGEST


def is_number(value: object) -> bool:
    """Tells an int or a float from anything else; True is neither."""
    return isinstance(value, int | float) and not isinstance(value, bool)
