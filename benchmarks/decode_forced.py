"""Searches through as many steps as asked for: what is timed alike of every contestant.

Nothing that imports JAX or PyTorch is imported here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
from decode_work import DecodeWork, Way

Tokens = npt.NDArray[np.int32]

_FIRST_WORD = 4  # after pad, bos, eos and unk


class ForcedOutputs(ABC):
    """Translates made-up sources into outputs whose length is forced.

    Args:
      work: what is decoded; `rows` sources are drawn, each without padding.
    """

    def __init__(self, work: DecodeWork):
        self.work = work
        chance = np.random.default_rng(0)
        self._sources = chance.integers(
            _FIRST_WORD,
            work.config.vocab_size,
            (work.rows, work.length),
            dtype=np.int32,
        )
        self._chosen: dict[int, Way] = {}

    def prepare(self, rows: int) -> dict[str, Any]:
        """Warms up, and finds the fastest way for so many sentences.

        Args:
          rows: sentences that will wait at once.

        Returns:
          The way, what each one tried came to in sentences a second, the seconds of
          the first calls (where programs are compiled), and those of one whole call.
        """
        first_seconds, tried = 0.0, {}
        for way in self.ways(rows):
            sample = min(rows, way.at_once * way.workers)
            first_seconds += self._timed(sample, way)
            tried[way] = sample / self._timed(sample, way)
        way = self._chosen[rows] = max(tried, key=lambda way: tried[way])
        return {
            **asdict(way),
            "tried": {str(way): round(rate, 1) for way, rate in tried.items()},
            "first_seconds": first_seconds,
            "call_seconds": self._timed(rows, way),
        }

    def seconds(self, rows: int, times: int) -> list[float]:
        """Times so many calls, each with so many sentences, in the way chosen."""
        return [self._timed(rows, self._chosen[rows]) for _ in range(times)]

    def ways(self, rows: int) -> list[Way]:
        """Lists what there is to choose from for so many sentences."""
        at_once = sorted({min(rows, cut) for cut in self.work.cuts})
        return [Way(at_once=number) for number in at_once]

    @abstractmethod
    def lengths(self, sources: Tokens, way: Way) -> Sequence[int]:
        """Translates.

        Args:
          sources: [B, S] ids without padding.
          way: how.

        Returns:
          The tokens of each output, once all outputs are on the host.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round."""

    @abstractmethod
    def peak_megabytes(self) -> float:
        """Returns the most memory held by now."""

    def _timed(self, rows: int, way: Way) -> float:
        began = time.perf_counter()
        lengths = self.lengths(self._sources[:rows], way)
        seconds = time.perf_counter() - began
        if list(lengths) != [self.work.length] * rows:
            raise ValueError(
                f"{rows} outputs of {self.work.length} tokens each were asked for, and "
                f"came as {len(lengths)} of {min(lengths)} to {max(lengths)}."
            )
        return seconds
