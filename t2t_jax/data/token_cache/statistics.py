"""Names of sides, and the examples of dropped pairs that reports show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from t2t_jax.data.token_cache.encoder import Encoded
from t2t_jax.data.token_cache.filters import REASONS
from t2t_jax.data.token_cache.worker_pool import Chunk

SIDES = ("source", "target")

MAX_EXAMPLES = 3

Examples: TypeAlias = dict[str, list[dict[str, Any]]]
"""By reason the first three dropped pairs, truncated, and their lines."""

_EXAMPLE_LENGTH = 80
_NAME_LENGTH = 300


def examples_of(chunk: Chunk, encoded: Encoded) -> Examples:
    """Returns the examples of an encoded chunk."""
    return {
        reason: [
            {
                "line": chunk.first + int(pair),
                "source": truncate(chunk.sources[pair]),
                "target": truncate(chunk.targets[pair]),
            }
            for pair in np.flatnonzero(encoded.reasons == number)[:MAX_EXAMPLES]
        ]
        for number, reason in enumerate(REASONS)
    }


def first_examples(parts: Iterable[Examples]) -> Examples:
    """Returns the first examples of consecutive pieces of a text."""
    found: Examples = {reason: [] for reason in REASONS}
    for part in parts:
        for reason, pairs in found.items():
            pairs += part[reason][: MAX_EXAMPLES - len(pairs)]
    return found


def truncate(text: str, most: int = _EXAMPLE_LENGTH) -> str:
    """Truncates an example or a name."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_name(spec: str) -> str:
    """Truncates the name of a corpus for a message: a spec may list many files."""
    return truncate(spec, _NAME_LENGTH)
