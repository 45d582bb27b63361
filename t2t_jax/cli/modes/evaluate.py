"""`--mode=evaluate`: translates a file and scores it against references."""

from __future__ import annotations

import json
import sys
from itertools import chain
from typing import Any

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.tables import show
from t2t_jax.cli.evaluation.corpus import (
    Corpus,
    load_job,
    read_corpus,
    translate_corpus,
)
from t2t_jax.cli.flags.options import PARSING, EvaluateOptions
from t2t_jax.cli.processes import start_processes
from t2t_jax.cli.translation.job import serve
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.errors import UserError, rewording
from t2t_jax.evaluation.robustness import (
    CHANGES,
    HEADER,
    changed_pairs,
    robustness_rows,
    robustness_scores,
)
from t2t_jax.report.page import Table
from t2t_jax.run.workdir import ROBUSTNESS


def run(options: EvaluateOptions) -> None:
    """Prints the scores as one JSON object on stdout, and BLEU and chrF on stderr.

    With a protocol or --robustness, also prints a table on stderr. Of several
    processes, process 0 reads, scores and writes, and the others translate shares.

    Raises:
      UserError: files or workdir are invalid (before JAX is imported), or an optional
        package is missing.
    """
    start_processes(options)
    if not options.processes.is_first:
        serve(load_job(options), options.processes)
        return
    from t2t_jax.cli.evaluation import protocols

    if options.last:
        flag = f"--last={options.last}, which can be left out"
        with rewording(lambda problem: f"{flag}: {problem}"):
            options.workdir.require_run()
    if options.robustness and reads_trees(options.config.data.train):
        raise UserError("--robustness is not for models of trees. Leave it out.")
    if not options.protocol:
        result = _evaluate_as_configured(options)
    elif options.protocol == PARSING:
        result = protocols.evaluate_trees(options)
    else:
        result = protocols.evaluate_tokens(options)
    if options.robustness:
        _show_and_keep(result, options)
    protocols.show_scores(result, file=sys.stderr)
    print(json.dumps(result))


def _evaluate_as_configured(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates one checkpoint with the run's configuration."""
    lines = corpus = read_corpus(options)
    pairs = [*zip(corpus.sources, corpus.references, strict=True)]
    if options.robustness:
        every = (changed_pairs(pairs, change) for change in CHANGES)
        sources, references = zip(*chain.from_iterable(every), strict=True)
        lines = Corpus([*sources], [*references], None)
    sets = len(CHANGES) if options.robustness else 1
    translated = translate_corpus(options, lines, sets=sets)
    hypotheses = translated.hypotheses[: len(corpus.references)]

    from t2t_jax.evaluation.bleu import BleuSettings, scores_by_direction
    from t2t_jax.evaluation.significance import bootstrap_intervals, paired_test

    bleu = BleuSettings(options.config.evaluation.tokenize)
    lines_of = hypotheses, corpus.references, corpus.directions
    result = {
        **scores_by_direction(*lines_of, bleu=bleu),
        "sentences": len(corpus.references),
        "statuses": translated.statuses,
        "seconds": translated.seconds,
        "checkpoint_step": translated.model.step,
    }
    if len({*corpus.directions}) < 2:
        both = hypotheses, corpus.references
        result["intervals"] = bootstrap_intervals(*both, bleu=bleu)
    if corpus.baseline is not None:
        result["paired_test"] = paired_test(
            hypotheses, corpus.references, baseline=corpus.baseline, bleu=bleu
        )
    if options.robustness:
        every_line = translated.hypotheses
        result["robustness"] = robustness_scores(pairs, every_line, bleu=bleu)
    return result


def _show_and_keep(result: dict[str, Any], options: EvaluateOptions) -> None:
    """Prints the scores of the changed sets, and writes them for the model's page."""
    rows = robustness_rows(result["robustness"])
    show([Table("Robustness", HEADER, rows, numbers=(1, 2, 3))], file=sys.stderr)
    try:
        record = {**result, "source": options.source, "reference": options.reference}
        options.workdir.write_json(ROBUSTNESS, record)
    except OSError as error:
        log(f"warning: {ROBUSTNESS} is not written: {error}.")
