"""Writes a corpus without its worst pairs, and describes what that changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from t2t_jax.inspection.inspector import Inspection


class Filtered(NamedTuple):
    """A corpus without the pairs of the highest loss.

    Attributes:
      found: all pairs.
      dropped: indices of the dropped ones, the highest loss first.
    """

    found: Inspection
    dropped: np.ndarray

    @classmethod
    def drop_worst(cls, found: Inspection, share: float) -> Filtered:
        """Drops a share, from 0 to 1, of the scored pairs; the number is rounded."""
        return cls(found, found.worst(share))

    def lines(self, side: int) -> Iterator[str]:
        """Yields the kept lines of a side, 0 for the source, in their order."""
        is_kept = np.ones(len(self.found.pairs), np.bool_)
        is_kept[self.dropped] = False
        for index in np.flatnonzero(is_kept):
            # A line end, which text files cannot contain, would misalign the sides.
            yield self.found.pairs[int(index)][side].replace("\n", " ")

    def summary(self) -> Iterator[str]:
        """Yields lines with the counts before and after."""
        before, gone = len(self.found.pairs), len(self.dropped)
        yield f"dropped {gone:,} of {before:,} pairs, kept {before - gone:,}"
        if gone:
            least = float(self.found.losses[self.dropped].min())
            yield f"  each has a loss of at least {least:.2f} nats a token"
        dropped = self.found.counts(self.dropped)
        for kind, count in self.found.counts().items():
            if count:
                left = count - dropped[kind]
                yield f"  {kind}: {count:,} before, {left:,} after"
