"""`--mode=evaluate`: translates a file and scores it against raw references."""

from __future__ import annotations

import json
import time

from t2t_jax.cli.flags import Options
from t2t_jax.errors import DataError


def run(options: Options) -> int:
    """Prints one JSON object with the scores on stdout."""
    options.workdir.require()
    from t2t_jax.data.corpora import read_lines

    sources = list(read_lines(options.source))
    references = list(read_lines(options.reference))
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
