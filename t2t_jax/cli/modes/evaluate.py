"""`--mode=evaluate`: translates a file and scores it against references."""

from __future__ import annotations

import json
import sys
from typing import Any

from t2t_jax.cli.evaluation.corpus import load_job, read_corpus, translate_corpus
from t2t_jax.cli.flags.options import PARSING, EvaluateOptions
from t2t_jax.cli.processes import start_processes
from t2t_jax.cli.translation.job import serve
from t2t_jax.errors import rewording


def run(options: EvaluateOptions) -> int:
    """Prints the scores as one JSON object on stdout, and BLEU and chrF on stderr.

    With a protocol, also prints a table on stderr. Of several processes, process 0
    reads, scores and writes, and the others translate shares.

    Raises:
      UserError: files or workdir are invalid (before JAX is imported), or an optional
        package is missing.
    """
    start_processes(options)
    if not options.processes.is_first:
        serve(load_job(options), options.processes)
        return 0
    from t2t_jax.cli.evaluation import protocols

    if options.last:
        flag = f"--last={options.last}, which can be left out"
        with rewording(lambda problem: f"{flag}: {problem}"):
            options.workdir.require_run()
    if not options.protocol:
        result = _evaluate_as_configured(options)
    elif options.protocol == PARSING:
        result = protocols.evaluate_trees(options)
    else:
        result = protocols.evaluate_tokens(options)
    protocols.show_scores(result, file=sys.stderr)
    print(json.dumps(result))
    return 0


def _evaluate_as_configured(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates one checkpoint with the run's configuration."""
    corpus = read_corpus(options)
    translated = translate_corpus(options, corpus)

    from t2t_jax.evaluation.bleu import BleuSettings, corpus_scores
    from t2t_jax.evaluation.significance import paired_test

    bleu = BleuSettings(options.config.evaluation.tokenize)
    result = {
        **corpus_scores(translated.hypotheses, corpus.references, bleu=bleu),
        "sentences": len(corpus.references),
        "statuses": translated.statuses,
        "seconds": translated.seconds,
        "checkpoint_step": translated.model.step,
    }
    if corpus.baseline is not None:
        result["paired_test"] = paired_test(
            translated.hypotheses,
            corpus.references,
            baseline=corpus.baseline,
            bleu=bleu,
        )
    return result
