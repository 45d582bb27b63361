"""`--mode=evaluate`: translates a file and scores it against raw references."""

from __future__ import annotations

import json
import time

from t2t_jax.cli.flags import Options
from t2t_jax.data.lines import read_lines
from t2t_jax.errors import Attempts, DataError


def run(options: Options) -> int:
    """Prints one JSON object with the scores on stdout."""
    options.workdir.require()
    attempts = Attempts()
    sources = attempts.attempt(_read, options.source)
    references = attempts.attempt(_read, options.reference)
    attempts.raise_if_any_failed()
    if len(sources) != len(references):
        raise DataError(
            f"Source and reference must have the same number of lines: "
            f"{options.source} has {len(sources):,}, {options.reference} has "
            f"{len(references):,}."
        )
    from t2t_jax.evaluation.bleu import corpus_scores
    from t2t_jax.loading import load

    model = load(
        options.workdir.path,
        checkpoint=options.checkpoint,
        decoding=options.config.decoding,
    )
    began = time.perf_counter()
    hypotheses = model.translate(sources)
    seconds = time.perf_counter() - began
    result = {
        **corpus_scores(hypotheses, references),
        "sentences": len(references),
        "seconds": seconds,
        "checkpoint_step": model.step,
    }
    print(json.dumps(result))
    return 0


def _read(path: str) -> list[str]:
    return list(read_lines(path))
