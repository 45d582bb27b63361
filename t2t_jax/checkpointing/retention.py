"""Which checkpoints of a run are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_BLEU = -1.0


def steps_kept(metas: Mapping[int, Mapping[str, Any] | None], *, keep: int) -> set[int]:
    """Chooses the newest checkpoint, the newest `keep` periodic ones, and the best.

    A best or stopped checkpoint is not counted among the periodic ones, or it would
    cost one that an average needs.

    Args:
      metas: by step, the JSON of each checkpoint; None where it cannot be read, and so
        nobody knows what it may be good for.
      keep: how many periodic ones.

    Example:
      >>> metas = {n: {"kinds": ["periodic"]} for n in (5, 10, 15)}
      >>> sorted(steps_kept({**metas, 7: {"kinds": ["best"], "bleu": 30.0}}, keep=2))
      [7, 10, 15]
    """
    known = {step: meta for step, meta in sorted(metas.items()) if meta is not None}
    periodic = [step for step, meta in known.items() if "periodic" in meta["kinds"]]
    scored = [
        (score, step) for step, meta in known.items() if (score := bleu(meta)) > NO_BLEU
    ]
    return {
        *periodic[-keep:],
        *sorted(metas)[-1:],
        *(step for _, step in sorted(scored)[-1:]),
        *(metas.keys() - known.keys()),
    }


def bleu(meta: Mapping[str, Any]) -> float:
    """Reads a checkpoint's BLEU on the development set; -1 if it was not scored.

    Example:
      >>> bleu({"bleu": 27.5}), bleu({})
      (27.5, -1.0)
    """
    return float(meta.get("bleu", NO_BLEU))
