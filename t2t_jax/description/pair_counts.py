"""Sizes of a run's corpora, from its data.json or counted (does not import JAX)."""

from __future__ import annotations

from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import count_pairs, train_and_dev
from t2t_jax.errors import DataError
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir

_PARTS = ("train", "dev")


def count_pairs_of(config: Config, *, workdir: Workdir) -> dict[str, Any]:
    """Returns the sizes of the training and development corpora.

    Args:
      workdir: of the run; it need not exist. Its data.json is used without checks.

    Returns:
      For train, and for dev if evaluation is on: spec, `pairs` (None if unknown),
      `note` (the reason), and, from data.json, the mean length of either side in
      subwords.

    Raises:
      ConfigError: a spec is invalid.
      DataError: data.json is damaged.
    """
    path = workdir.path / "data.json"
    if path.is_file():
        read = read_json_object(path, advice="Remove it.")
        try:
            # Without evaluation data.json lacks dev.
            return {
                part: _recorded_size(read[part])
                for part in _PARTS
                if part == "train" or part in read
            }
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged: it does not describe the corpora\nRemove it."
            ) from error
    specs = dict(zip(_PARTS, train_and_dev(config.data), strict=True))
    if not config.evaluation.every_steps:
        del specs["dev"]
    return {
        part: count_pairs(spec, key=f"data.{part}")._asdict()
        for part, spec in specs.items()
    }


def _recorded_size(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "spec": record["spec"],
        "pairs": record["counts"]["kept"],
        "note": "",
        "mean_length": record["mean_length"],
    }
