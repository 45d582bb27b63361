"""One language of an encoded corpus, as it lies on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.packing import Integers


class TokenSide(NamedTuple):
    """One language of an encoded corpus.

    Attributes:
      tokens: all sentences on end, each followed by eos.
      offsets: [N + 1] where each sentence begins in `tokens`, and the end; int64.
    """

    tokens: Integers
    offsets: Integers

    @property
    def lengths(self) -> Integers:
        """[N] tokens of each sentence, eos included; int32, computed anew each time."""
        lengths = np.empty(len(self.offsets) - 1, np.int32)
        # Without a temporary of 8 bytes each, which would take most of the time.
        np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="unsafe")
        return lengths


def mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Maps a file of numbers into memory."""
    # A plain view: numpy indexes its memmap subclass several times more slowly.
    return np.asarray(np.memmap(path, dtype, "r"))
