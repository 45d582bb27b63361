"""What differs between two configurations, and what of it may under a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_jax.config import Config, to_dict
from t2t_jax.errors import DataError
from t2t_jax.parsing import flatten

# A run may go on with another value of these; any other key is part of what the
# experiment is, and changing it under a run would make its numbers mean nothing.
CHANGEABLE_ON_RESUME = (
    "steps",
    "logging",
    "evaluation",
    "decoding",
    "checkpoint",
    # Where and in which order the same sums are computed.
    *("mesh", "training.micro_batches"),
    # When to give up.
    *("training.on_nonfinite", "training.max_bad_steps"),
    *("training.step_timeout", "training.pause_timeout"),
    # Where the text lies; that it is the same text is seen by its fingerprint.
    *("data.cache_dir", "data.train", "data.dev", "data.held_out", "data.workers"),
)


def differences(old: Config, new: Config) -> list[tuple[str, Any, Any]]:
    """Lists the keys whose values differ, as (key, old value, new value).

    Example:
      >>> differences(Config(seed=1), Config(seed=2))
      [('seed', 1, 2)]
    """
    before, after = dict(flatten(to_dict(old))), dict(flatten(to_dict(new)))
    return [
        (key, before[key], after[key]) for key in before if before[key] != after[key]
    ]


def refused_on_resume(old: Config, new: Config) -> list[str]:
    """Says which differences between a run and its new configuration are refused."""
    return [
        f"{key} was {before!r} when this run began and is {after!r} now: it cannot "
        f"change under a run. Leave config.{key} as it was, or use a new --workdir."
        for key, before, after in differences(old, new)
        if key not in CHANGEABLE_ON_RESUME
        and key.split(".")[0] not in CHANGEABLE_ON_RESUME
    ]


def require_same(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Checks that a run goes on with the text that it began with.

    Args:
      before: the fingerprints when it began; what is not there is not compared.
      now: those of the text that is there.

    Raises:
      DataError: they differ.

    Example:
      >>> require_same({"train": "ab"}, {"train": "ab", "dev": "cd"})
    """
    changed = [
        f"{name} ({was}, now {now.get(name)})" if name.startswith("weights") else name
        for name, was in before.items()
        if was != now.get(name)
    ]
    if changed:
        raise DataError(
            f"This run began with other content of: {', '.join(changed)}.\n"
            "Restore it, or begin again in a new --workdir."
        )
