"""`--mode=export`: exports a trained model for other software, and verifies it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.evaluation.corpus import open_pair
from t2t_jax.cli.flags.options import ExportOptions
from t2t_jax.data.corpora.open import open_corpus, train_and_dev
from t2t_jax.errors import ErrorCollector, InputMissingError, UserError
from t2t_jax.exchange.formats import QUANTIZED_FORMATS
from t2t_jax.run.dev_outputs import FOLDER, REFERENCE, SOURCE

if TYPE_CHECKING:
    from t2t_jax.exchange.exporting.verification import Comparison


def run(options: ExportOptions) -> int:
    """Exports a checkpoint of the workdir to `options.to`, and verifies it.

    Prints the result of the verification as one JSON object on stdout.

    Raises:
      UserError: options, workdir or text are invalid, a package is missing, or the
        exported model differs from the original.
    """
    options.workdir.require()
    _check_options(options)
    from t2t_jax.exchange.exporting.base import ExportSpec
    from t2t_jax.exchange.exporting.exporter import FORMATS, export, tolerance_of
    from t2t_jax.exchange.exporting.model_dir import load_for_export
    from t2t_jax.exchange.exporting.verification import choose_lines
    from t2t_jax.run.inference.model_dir import check_new_dir

    config, to = options.config, Path(options.to)
    own = ("model_dir", "safetensors")
    check_new_dir(options.workdir, to, has_arrays=options.format in own)
    spec = ExportSpec(
        options.format,
        options.quantization or "float32",
        max_bleu_loss=options.max_bleu_loss,
        languages=options.languages,
        license=options.license,
    )
    FORMATS[spec.format].check_supported(config)
    name, pairs = _pairs(options)
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
    lines = f"{len(text.sources):,} line{'s' * (len(text.sources) != 1)}"
    log(f"Exporting step {model.step:,}, to be verified on {lines} …")
    comparison = export(
        model, to, spec=spec, workdir=options.workdir, config=config, text=text
    )
    _report(comparison, max_bleu_loss=tolerance_of(spec).bleu)
    log(f"Wrote {to}.{' See its README.md for usage.' * to.is_dir()}")
    return 0


def _check_options(options: ExportOptions) -> None:
    """Raises all errors of the options at once."""
    problems = ErrorCollector()
    quantized = f"--format={' or '.join(QUANTIZED_FORMATS)}"
    for flag, value, why in (
        ("quantization", options.quantization or None, "keep float32"),
        ("max_bleu_loss", options.max_bleu_loss, "must be exact"),
    ):
        problems.check(
            value is None or options.format in QUANTIZED_FORMATS,
            f"--{flag}={value} requires {quantized}: other formats {why}. Remove it, "
            "or change --format.",
        )
    problems.raise_if_any(UserError)


def _pairs(options: ExportOptions) -> tuple[str, Sequence[tuple[str, str]]]:
    """Reads the text of the verification: the given files, or the development set.

    Where the text of the configuration is not found, for one because its path is
    relative to another directory, that of the run's own outputs is read.
    """
    joiner = options.config.data.subword_joiner
    if options.source:
        corpus = open_pair(options.source, options.reference, joiner=joiner)
        return corpus.spec, list(corpus)
    _, spec = train_and_dev(options.config.data)
    try:
        return spec, list(open_corpus(spec, key="data.dev", joiner=joiner))
    except UserError as error:
        own = [options.workdir.path / FOLDER / name for name in (SOURCE, REFERENCE)]
        if isinstance(error, InputMissingError) and all(map(Path.is_file, own)):
            log(f"{error.problems[0]}\nVerifying on {own[0]} instead.")
            corpus = open_pair(*map(str, own), joiner="")
            return corpus.spec, list(corpus)
        hint = (
            "An export is verified on text. If the development set of the model is "
            "not available, pass other files with --source and --reference."
        )
        raise type(error)([*error.problems, hint]) from error


def _report(comparison: Comparison, *, max_bleu_loss: float) -> None:
    """Prints the result of the verification on stdout, and logs it."""
    result = {**dataclasses.asdict(comparison), "max_bleu_loss": max_bleu_loss}
    print(json.dumps(result), flush=True)
    log(
        f"{comparison.equal:,} of {comparison.lines:,} greedy outputs are the same "
        f"({comparison.ties} of the others are ties), {comparison.beam_equal:,} of a "
        f"beam of {comparison.beam_size}. Largest difference of a token's "
        f"log-probability: {comparison.largest_difference:.2g}. BLEU: "
        f"{comparison.bleu:.2f} and {comparison.exported_bleu:.2f}, with the beam "
        f"{comparison.beam_bleu:.2f} and {comparison.exported_beam_bleu:.2f}."
    )
