"""`--mode=export`: a trained model in a form that others can use."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.options import Options
from t2t_jax.data.corpora.open import Corpus, open_corpus, train_and_dev
from t2t_jax.data.corpora.text_files import TextCorpus
from t2t_jax.data.files.lines import require_files
from t2t_jax.errors import ErrorCollector, UserError
from t2t_jax.exporting.formats import FORMS, QUANTIZATIONS

if TYPE_CHECKING:
    from t2t_jax.exporting.verification import Comparison


def run(options: Options) -> int:
    """Exports a checkpoint of the workdir to `options.output`, and checks the export.

    What the check has found is one JSON object on stdout.

    Raises:
      UserError: options, workdir or text are not what they must be, a package is
        missing, or the export does not do what the model does.
    """
    options.workdir.require()
    _check(options)
    name, pairs = _pairs(options)
    from t2t_jax.exporting.exporter import ExportSpec, export, load_for_export
    from t2t_jax.exporting.verification import choose_lines
    from t2t_jax.inference.model_dir import check_new_dir

    config, to = options.config, Path(options.output)
    check_new_dir(options.workdir, to, flag="output")
    quantization = options.quantization or "float32"
    wish = ExportSpec(options.to, quantization, options.max_bleu_loss)
    wish.check_supported(config)
    model = load_for_export(
        options.workdir, checkpoint=options.checkpoint, config=config
    )
    text = choose_lines(
        name,
        pairs,
        vocabulary=model.vocabularies.source,
        longest=config.decoding.max_source_length,
        most=options.check_lines,
    )
    count = len(text.sources)
    lines = f"{count:,} line{'s' * (count != 1)}"
    log(f"Exporting step {model.step:,}; {lines} will check it …")
    found = export(
        model, to, wish=wish, workdir=options.workdir, config=config, text=text
    )
    result = {**dataclasses.asdict(found), "max_bleu_loss": wish.tolerance.bleu}
    print(json.dumps(result), flush=True)
    log(_summary(found))
    log(f"Wrote {to}; its README.md says how to use it.")
    return 0


def _check(options: Options) -> None:
    """Refuses what no export can be made of, all of it at once."""
    problems = ErrorCollector()
    problems.check(
        options.to in FORMS,
        f"--to={options.to} must be one of {', '.join(FORMS)} with --mode=export; "
        "--output names the directory.",
    )
    problems.check(
        options.output != "-",
        "--mode=export requires --output. Pass the directory to create.",
    )
    given = options.quantization
    problems.check(
        given in ("", *QUANTIZATIONS),
        f"--quantization={given} must be one of {', '.join(QUANTIZATIONS)}.",
    )
    problems.check(
        not given or options.to == "ctranslate2",
        f"--quantization={given} is for --to=ctranslate2: all else keeps float32. "
        "Remove it, or change --to.",
    )
    problems.check(
        options.max_bleu_loss is None or options.to == "ctranslate2",
        f"--max_bleu_loss={options.max_bleu_loss} is for --to=ctranslate2: all else "
        "must translate exactly as the model does. Remove it, or change --to.",
    )
    problems.raise_if_any(UserError)


def _pairs(options: Options) -> tuple[str, Sequence[tuple[str, str]]]:
    """Reads the text of the check: what is given, or the run's development text."""
    corpus: Corpus
    if options.source:
        paths = [Path(options.source), Path(options.reference)]
        require_files(*paths, change="--source or --reference")
        spec = f"text:{options.source},{options.reference}"
        corpus = TextCorpus(spec, *paths)
        return spec, list(corpus)
    _, spec = train_and_dev(options.config.data)
    try:
        return spec, list(open_corpus(spec, key="data.dev"))
    except UserError as error:
        hint = (
            "An export is checked on text: name other files with --source and "
            "--reference, where the development text of the model is not here."
        )
        raise type(error)([*error.problems, hint]) from error


def _summary(found: Comparison) -> str:
    """Says for people what the check has found."""
    return (
        f"{found.equal:,} of {found.lines:,} greedy outputs are the same ({found.ties} "
        f"of the others are ties), {found.beam_equal:,} of a beam of "
        f"{found.beam_size}. Largest difference of a token's log-probability: "
        f"{found.largest_difference:.2g}. BLEU: {found.bleu:.2f} and "
        f"{found.exported_bleu:.2f}, with the beam {found.beam_bleu:.2f} and "
        f"{found.exported_beam_bleu:.2f}."
    )
