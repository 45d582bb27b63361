"""How large the corpora of a run are, from the run itself or from their files."""

from __future__ import annotations

from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import train_and_dev
from t2t_jax.data.corpora.pair_counts import count_pairs
from t2t_jax.errors import DataError
from t2t_jax.files import read_json_object
from t2t_jax.run.workdir import Workdir

_PARTS = ("train", "dev")


def count_pairs_of(config: Config, *, workdir: Workdir) -> dict[str, Any]:
    """Finds out how many pairs there are to train and to evaluate on.

    Args:
      workdir: of the run; it need not exist. Its data.json is believed.

    Returns:
      For train, and for dev where evaluation is on: spec, `pairs` (None where it is
      not known), `note` (why not), and, from data.json, the mean length of either
      side in subwords.

    Raises:
      ConfigError: a corpus's name cannot be understood.
      DataError: data.json is damaged.
    """
    path = workdir.path / "data.json"
    if path.is_file():
        read = read_json_object(path, mend="Remove it.")
        try:
            # Evaluation may have been off when data.json was written.
            return {
                part: _of_a_run(read[part])
                for part in _PARTS
                if part == "train" or part in read
            }
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{path} is damaged: it does not say what the text is\nRemove it."
            ) from error
    specs = dict(zip(_PARTS, train_and_dev(config.data), strict=True))
    if not config.evaluation.every_steps:
        del specs["dev"]
    return {
        part: count_pairs(spec, key=f"data.{part}")._asdict()
        for part, spec in specs.items()
    }


def _of_a_run(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "spec": told["spec"],
        "pairs": told["counts"]["kept"],
        "note": "",
        "mean_length": told["mean_length"],
    }
