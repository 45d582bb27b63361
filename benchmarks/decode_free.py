"""Lines into lines: what is timed alike of every contestant that translates text.

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

_SAMPLE = 256  # lines, on which ways are compared


class FreeOutputs(ABC):
    """Translates lines of text, each output as long as it happens to be.

    Args:
      work: names the run and has the lines.
    """

    def __init__(self, work: DecodeWork):
        self.work = work
        self.way = self.ways()[0]
        self._texts: list[str] = []

    def prepare(self) -> dict[str, Any]:
        """Translates once to warm up, in the way that is the fastest on a sample.

        Returns:
          The way, what each one tried came to in lines a second, and the seconds of
          the first pass over all lines (in which programs are compiled).
        """
        sample = self.work.lines[:: -(-len(self.work.lines) // _SAMPLE)]
        tried = {}
        for way in self.ways() if len(self.ways()) > 1 else ():
            self.way = way
            tried[way] = len(sample) / self._timed(sample)
        if tried:
            self.way = max(tried, key=lambda way: tried[way])
        return {
            **asdict(self.way),
            "tried": {str(way): round(rate, 1) for way, rate in tried.items()},
            "first_seconds": self._timed(self.work.lines),
        }

    def translate(self) -> tuple[float, int]:
        """Translates all lines.

        Returns:
          The seconds that it took, and the tokens of the outputs, each with its eos.
        """
        began = time.perf_counter()
        self._texts, tokens = self.translations(self.work.lines)
        return time.perf_counter() - began, tokens

    def texts(self) -> list[str]:
        """Returns what the lines were last translated into."""
        return self._texts

    def first_line(self, lines: Sequence[str]) -> list[float]:
        """Times lines that come one by one, each of which waits for the one before."""
        return [self._timed([line]) for line in lines]

    def ways(self) -> list[Way]:
        """Lists what there is to choose from; nothing, unless a contestant says so."""
        return [Way(at_once=0)]

    @abstractmethod
    def translations(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Translates lines in the way `way`, and counts the tokens of the outputs."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Tells what stays the same from round to round."""

    @abstractmethod
    def peak_megabytes(self) -> float:
        """Returns the most memory held since the process began."""

    def _timed(self, lines: Sequence[str]) -> float:
        began = time.perf_counter()
        self.translations(lines)
        return time.perf_counter() - began


def longest_first(
    lengths: Sequence[int], *, at_once: int
) -> list[npt.NDArray[np.intp]]:
    """Cuts sentences into batches of like length, the usual way.

    Args:
      lengths: tokens of each sentence.
      at_once: sentences of a batch; the last one may have fewer.

    Returns:
      The numbers of the sentences, batch by batch.

    Example:
      >>> [batch.tolist() for batch in longest_first([1, 9, 5], at_once=2)]
      [[1, 2], [0]]
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    return [order[start : start + at_once] for start in range(0, len(order), at_once)]
