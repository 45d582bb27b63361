"""Statistics of the pairs of a corpus, collected while encoding."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from t2t_jax.data.token_cache.encoder import Encoded
from t2t_jax.data.token_cache.filters import KEPT, REASONS
from t2t_jax.data.token_cache.worker_pool import Chunk
from t2t_jax.types import UNK

SIDES = ("source", "target")

MAX_EXAMPLES = 3

_EXAMPLE_LENGTH = 80
_NAME_LENGTH = 300


@dataclass
class CorpusStats:
    """Statistics of some pairs; additive.

    Attributes:
      counts: pairs read, kept, and dropped by reason.
      lengths: of each side, the number of sentences with 0, 1, 2 … tokens, eos
        included.
      examples: of each reason the first three pairs, truncated, and their lines.
    """

    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("read", "kept", *REASONS), 0)
    )
    unknown: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    lengths: dict[str, list[int]] = field(
        default_factory=lambda: {side: [] for side in SIDES}
    )
    examples: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {reason: [] for reason in REASONS}
    )

    @classmethod
    def of_chunk(cls, chunk: Chunk, encoded: Encoded) -> CorpusStats:
        """Computes the statistics of an encoded chunk."""
        stats = cls()
        found = np.bincount(encoded.reasons, minlength=KEPT + 1).tolist()
        stats.counts = {
            "read": len(encoded.reasons),
            "kept": found[KEPT],
            **dict(zip(REASONS, found, strict=False)),
        }
        for name in SIDES:
            side = getattr(encoded, name)
            stats.unknown[name] = int(np.count_nonzero(side.tokens == UNK))
            stats.lengths[name] = np.bincount(side.lengths).tolist()
        for number, reason in enumerate(REASONS):
            if found[number]:
                pairs = np.flatnonzero(encoded.reasons == number)[:MAX_EXAMPLES]
                stats.examples[reason] = [_example(chunk, pair) for pair in pairs]
        return stats

    @classmethod
    def total(cls, parts: Iterable[CorpusStats]) -> CorpusStats:
        """Adds statistics in order."""
        total = cls()
        for stats in parts:
            total.counts = _sum(total.counts, stats.counts)
            total.unknown = _sum(total.unknown, stats.unknown)
            for side in SIDES:
                both = (total.lengths[side], stats.lengths[side])
                total.lengths[side] = [
                    one + other for one, other in zip_longest(*both, fillvalue=0)
                ]
            for reason, pairs in stats.examples.items():
                known = total.examples[reason]
                total.examples[reason] = [*known, *pairs][:MAX_EXAMPLES]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; `CorpusStats(**values)` restores them."""
        return dataclasses.asdict(self)


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one[name] + other[name] for name in one}


def _example(chunk: Chunk, pair: int) -> dict[str, Any]:
    return {
        "line": chunk.first + int(pair),
        "source": truncate(chunk.sources[pair]),
        "target": truncate(chunk.targets[pair]),
    }


def truncate(text: str, most: int = _EXAMPLE_LENGTH) -> str:
    """Truncates an example or a name."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_name(spec: str) -> str:
    """Truncates the name of a corpus for a message: a spec may list many files."""
    return truncate(spec, _NAME_LENGTH)
