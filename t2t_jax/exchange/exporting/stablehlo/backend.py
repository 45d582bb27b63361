"""Exported StableHLO programs as the second model of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt
from jax import export

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.exchange.exporting.backends import Logs, Output, Pair
from t2t_jax.types import EOS, PAD

MODEL, GREEDY, SCORE = "model.stablehlo", "greedy.stablehlo", "score.stablehlo"
PARAMETERS = "parameters.npz"

_ROWS = 16  # of a batch: all have one shape, as each shape is compiled
_Integers: TypeAlias = npt.NDArray[np.int32]


class StableHLOBackend:
    """The programs of a directory, run as its README.md does, with JAX alone."""

    def __init__(self, directory: Path, *, vocabularies: VocabularyPair):
        self._directory, self._vocabularies = directory, vocabularies
        with np.load(directory / PARAMETERS) as parameters:
            self._parameters = jax.device_put(dict(parameters), jax.local_devices()[0])

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates with the search of the configuration, or greedily."""
        program = self._program(GREEDY if greedy else MODEL)
        sources = self._vocabularies.source.encode(lines)
        found: list[tuple[int, ...]] = []
        for source_BxS in _batches(sources):
            tokens, _, lengths = map(np.asarray, program(self._parameters, source_BxS))
            found += [
                tuple(row[:length].tolist())
                for row, length in zip(tokens, lengths, strict=True)
            ]
        del found[len(lines) :]
        texts = self._vocabularies.target.decode(found)
        return [Output(*pair) for pair in zip(texts, found, strict=True)]

    def score(self, pairs: Sequence[Pair]) -> list[Logs]:
        """Scores given tokens."""
        program, found = self._program(SCORE), []
        sides = (_batches([pair[side] for pair in pairs]) for side in (0, 1))
        for source_BxS, target_BxT in zip(*sides, strict=True):
            found += list(np.asarray(program(self._parameters, source_BxS, target_BxT)))
        return [
            logs[: len(target) + 1]
            for logs, (_, target) in zip(found, pairs, strict=False)
        ]

    def _program(self, name: str) -> Callable[..., Any]:
        written = bytearray((self._directory / name).read_bytes())
        program: Callable[..., Any] = jax.jit(export.deserialize(written).call)
        return program


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[_Integers]:
    """Yields the rows with their eos, then pad; the last batch has empty rows."""
    longest = 1 + max(map(len, rows), default=0)
    for start in range(0, len(rows), _ROWS):
        batch = np.full((_ROWS, longest), PAD, np.int32)
        for filled, ids in zip(batch, rows[start : start + _ROWS], strict=False):
            filled[: len(ids) + 1] = (*ids, EOS)
        yield batch
