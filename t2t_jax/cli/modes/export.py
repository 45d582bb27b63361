"""`--mode=export`: exports a trained model for other software, and verifies it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.evaluation.corpus import open_pair, open_text
from t2t_jax.cli.flags.options import ExportOptions
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.run.dev_outputs import FOLDER, REFERENCE, SOURCE
from t2t_jax.run.first_start import imported_origin

if TYPE_CHECKING:
    from t2t_jax.exchange.exporting.verification import Comparison, Tolerance


def run(options: ExportOptions) -> None:
    """Exports a checkpoint of the workdir to `options.to`, and verifies it.

    Prints the result of the verification as one JSON object on stdout.

    Raises:
      UserError: options, workdir or text are invalid, a package is missing, or the
        exported model differs from the original.
    """
    workdir, config, to = options.workdir, options.config, Path(options.to)
    from t2t_jax.exchange.exporting import exporter
    from t2t_jax.exchange.exporting.base import ExportSpec
    from t2t_jax.exchange.exporting.verification import choose_lines, of_language
    from t2t_jax.run.inference.model_dir import check_new_dir

    own = ("model_dir", "safetensors")
    check_new_dir(workdir, to, has_arrays=options.format in own)
    spec = ExportSpec(
        options.format,
        options.quantization or "float32",
        max_bleu_loss=options.max_bleu_loss,
        languages=options.languages,
        license=options.license,
        shortlist=config.decoding.shortlist,
    )
    exporter.FORMATS[spec.format].check_supported(config)
    _warn_of_license(options)
    name, pairs = _pairs(options)
    model = exporter.load_for_export(
        workdir, checkpoint=options.checkpoint, config=config
    )
    vocabulary = model.vocabularies.source
    text = choose_lines(
        name,
        of_language(pairs, vocabulary, (options.languages or ("", ""))[1]),
        vocabulary=vocabulary,
        longest=config.decoding.max_source_length,
        most=options.check_lines,
    )
    lines = f"{len(text.sources):,} line{'s' * (len(text.sources) != 1)}"
    log(f"Exporting step {model.step:,}, to be verified on {lines} …")
    original = exporter.original_of(
        model, spec=spec, workdir=workdir, config=config, text=text
    )
    comparison = exporter.export(original, to, spec=spec, text=text)
    _report(comparison, exporter.tolerance_of(spec))
    log(f"Wrote {to}.{' See its README.md for usage.' * to.is_dir()}")


def _warn_of_license(options: ExportOptions) -> None:
    """Warns of a licence that weights for no commercial use do not have."""
    recorded = imported_origin(options.workdir).get("license", "")
    if "-nc" in recorded and options.license not in ("", recorded):
        log(
            f"warning: the model comes from weights with the licence {recorded}, not "
            f"for commercial use, and README.md will name {options.license}. Leave "
            "--license out, unless their owners gave you that licence."
        )


def _pairs(options: ExportOptions) -> tuple[str, Sequence[tuple[str, str]]]:
    """Reads the text of the verification: the given files, or the development set.

    Where the text of the configuration is not found, for one because its path is
    relative to another directory, that of the run's own outputs is read.
    """
    try:
        corpus = open_text(options)
        return corpus.spec, list(corpus)
    except UserError as error:
        if options.source:
            raise
        own = [options.workdir.path / FOLDER / name for name in (SOURCE, REFERENCE)]
        if isinstance(error, InputMissingError) and all(map(Path.is_file, own)):
            log(f"{error.problems[0]}\nVerifying on {own[0]} instead.")
            corpus = open_pair(*map(str, own), joiner="")
            return corpus.spec, list(corpus)
        data = options.config.data
        reasons = error.problems if data.dev or data.dev_pairs else ()
        hint = (
            "An export is verified on text, and the development set of this model "
            "cannot be read. Pass files with --source and --reference."
        )
        raise type(error)([*reasons, hint]) from error


def _report(comparison: Comparison, tolerance: Tolerance) -> None:
    """Prints the result of the verification on stdout, and logs it."""
    result = {**dataclasses.asdict(comparison), "max_bleu_loss": tolerance.bleu}
    print(json.dumps(result), flush=True)
    log(
        f"{comparison.equal:,} of {comparison.lines:,} greedy outputs are the same "
        f"({comparison.ties} of the others are ties), {comparison.beam_equal:,} of a "
        f"beam of {comparison.beam_size}. Largest difference of a token's "
        f"log-probability: {comparison.largest_difference:.2g}. BLEU: "
        f"{comparison.bleu:.2f} and {comparison.exported_bleu:.2f}, with the beam "
        f"{comparison.beam_bleu:.2f} and {comparison.exported_beam_bleu:.2f}."
    )
    if tolerance.unequal == 1 and comparison.bleu < 10 * tolerance.bleu:
        log(
            f"WARNING: a BLEU of {comparison.bleu:.1f} is too low for its check, which "
            f"allows a loss of {tolerance.bleu:g}. Train it longer, or pass more text."
        )
