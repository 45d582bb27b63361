"""How long the source lines of a training text are: what its model has learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.files import read_json_object

KEY = "source_lines"
"""The entry of data.json, and of a model's model.json."""

_VERSION = 1
_SAMPLED_LINES = 20_000  # a quarter of a second
_LONGEST_LINES = 1_000  # where most sentences are
_ADVICE = "Restore it from a copy, or remove it."


class Spread(NamedTuple):
    """The 99.9th percentile of some counts, and their maximum."""

    most: int
    maximum: int


class SourceLines(NamedTuple):
    """Lengths of the source lines of the pairs that a model was trained on.

    Attributes:
      subwords: of a line, without eos.
      sentences: of a line.
    """

    subwords: Spread
    sentences: Spread

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values, which `from_json` reads."""
        return {"version": _VERSION, **{k: list(v) for k, v in self._asdict().items()}}

    @classmethod
    def from_json(cls, content: Any) -> SourceLines | None:
        """Reads an entry; None if there is none, or another version's.

        Raises:
          ValueError: it is not an entry.
        """
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            return None
        return cls(*(_spread_of(content.get(name)) for name in cls._fields))

    @classmethod
    def load(cls, directory: Path) -> SourceLines | None:
        """Loads the entry of a run or a model; None if it has none, as older ones.

        Raises:
          DataError: data.json or model.json is damaged.
        """
        for path in (directory / "model.json", directory / "data.json"):
            try:
                return cls.from_json(read_json_object(path, advice=_ADVICE).get(KEY))
            except FileNotFoundError:
                continue
            except ValueError as error:
                raise DataError(f"{path}: {error}. {_ADVICE}") from error
        return None


def measure_source_lines(
    cache: TokenCache, vocabulary: Vocabulary, *, count_sentences: Callable[[str], int]
) -> SourceLines:
    """Measures the source lines of the pairs that are kept.

    Subwords are counted in all of them; sentences in a sample at equal distances, and,
    for their maximum, in the longest lines too.

    Args:
      vocabulary: of the source, which decodes the lines.
    """
    lengths = cache.lengths[0] - 1

    def sentences(pairs: npt.NDArray[np.intp]) -> list[int]:
        return list(map(count_sentences, vocabulary.decode(cache.source.ids(pairs))))

    some = min(len(lengths), _SAMPLED_LINES)
    spread = _spread(sentences(np.arange(some) * len(lengths) // max(some, 1)))
    longest = sentences(np.argsort(lengths, kind="stable")[-_LONGEST_LINES:])
    most = max(spread.maximum, *longest, 0)
    return SourceLines(_spread(lengths), spread._replace(maximum=most))


def _spread_of(value: Any) -> Spread:
    is_pair = isinstance(value, list) and list(map(type, value)) == [int, int]
    if is_pair and 0 <= value[0] <= value[1]:
        return Spread(*value)
    raise ValueError(f"{KEY} holds {value!r}, which is not two counts")


def _spread(counts: npt.NDArray[np.integer] | Sequence[int]) -> Spread:
    values = np.asarray(counts) if len(counts) else np.zeros(1)
    return Spread(int(np.percentile(values, 99.9, method="higher")), int(values.max()))
