"""Retention: which checkpoints of a run are kept, and which of them is the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_SCORE = -1.0
"""Of a checkpoint that was not evaluated."""


def dev_score(meta: Mapping[str, Any]) -> float:
    """Returns a checkpoint's score on the development set: of trees F1, else BLEU.

    Returns:
      -1 if it was not scored.
    """
    return float(meta.get("f1", meta.get("bleu", NO_SCORE)))


def steps_to_keep(
    metas: Mapping[int, Mapping[str, Any] | None], *, keep: int
) -> set[int]:
    """Returns the newest step, the newest `keep` periodic steps, and the best step.

    A checkpoint that is only `best` or `stopped` does not count as periodic: it must
    not displace one that an average needs.

    Args:
      metas: by step, the JSON object of its checkpoint; None if that cannot be read.
        Such a checkpoint is kept.

    Example:
      >>> metas = {n: {"kinds": ["periodic"]} for n in (5, 10, 15)}
      >>> sorted(steps_to_keep({**metas, 7: {"kinds": ["best"], "bleu": 30.0}}, keep=2))
      [7, 10, 15]
    """
    known = {step: meta for step, meta in sorted(metas.items()) if meta is not None}
    periodic = [step for step, meta in known.items() if "periodic" in meta["kinds"]]
    scored = [
        (score, step)
        for step, meta in known.items()
        if (score := dev_score(meta)) > NO_SCORE
    ]
    return {
        *periodic[-keep:],
        *sorted(metas)[-1:],
        *(step for _, step in sorted(scored)[-1:]),
        *(metas.keys() - known.keys()),
    }
