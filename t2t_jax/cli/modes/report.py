"""`--mode=report`: writes a page about a run, with attention and intervals.

The page that training writes at each evaluation lacks these two, which take seconds and
the parameters of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import check_page, write_file
from t2t_jax.cli.evaluation.corpus import load_model
from t2t_jax.cli.flags.options import ReportOptions
from t2t_jax.errors import UserError
from t2t_jax.run.dev_outputs import DevOutput, DevOutputs, steps_in
from t2t_jax.run.text import example_sentences
from t2t_jax.run.workdir import Workdir

_SEARCHED = 50  # development sentences, of which a few short ones are shown


def run(options: ReportOptions) -> None:
    """Writes the page to `options.to` and prints its path.

    What cannot be computed is logged, and left out of the page.

    Raises:
      UserError: not a run, or the page cannot be written.
    """
    from t2t_jax.report.comparison import scores_of
    from t2t_jax.report.run_page import REPORT, run_page

    workdir = options.workdir
    own = workdir.path / REPORT
    to = check_page(options.to or own, own=own)
    output, scores = _best_output(workdir), None
    if output is not None and output.references:
        log("Computing the intervals of the scores …")
        scores = scores_of(output, workdir.read_config())
    attention = _attention(options, output)
    write_file(to, run_page(workdir, scores=scores, attention=attention))


def _best_output(workdir: Workdir) -> DevOutput | None:
    """Reads the translations of the best evaluation; of the newest without scores."""
    from t2t_jax.report.comparison import open_runs

    (run,) = open_runs([str(workdir.path)])
    outputs = DevOutputs(workdir.path)
    newest = steps_in(outputs.folder)[-1:]
    return run.output or (outputs.read(newest[0]) if newest else None)


def _attention(options: ReportOptions, best: DevOutput | None) -> list[dict[str, Any]]:
    """Computes attention maps with a checkpoint; empty if that is not possible."""
    if options.config.architecture != "transformer":
        return []
    from t2t_jax.evaluation.attention_maps import attention_of

    log(f"Computing attention with the {options.checkpoint} checkpoint …")
    try:
        model = load_model(options)
        # Development sentences with translations of the checkpoint.
        sources: Sequence[str]
        if best is not None and best.step == model.step:
            sources, translations = best.sources, best.hypotheses
        else:
            sources = best.sources if best else example_sentences(options.workdir)
            translations = model.translate(sources[:_SEARCHED])
        pairs = list(islice(zip(sources, translations, strict=False), _SEARCHED))
        found = attention_of(model.module, model.params, model.vocabularies, pairs)
        return [{"step": model.step, **one} for one in found]
    except UserError as error:
        if options.checkpoint != "best":  # Named by the user.
            raise
        log(f"WARNING: The page has no attention: {error}")
        return []
