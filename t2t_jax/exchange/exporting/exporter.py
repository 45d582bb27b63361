"""Exports a trained model and verifies the export before keeping it.

An export is written to a temporary directory, which is removed if the export does not
translate like the model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np

from t2t_jax.checkpointing.safetensors_io import require_safetensors
from t2t_jax.config import Config
from t2t_jax.devices.processor import lacks_vnni
from t2t_jax.errors import UserError, rewording
from t2t_jax.exchange.cards import fill_usage, model_card
from t2t_jax.exchange.exporting import verification
from t2t_jax.exchange.exporting.argos import ArgosFormat
from t2t_jax.exchange.exporting.base import ExportFormat, ExportSpec, Original, divisor
from t2t_jax.exchange.exporting.ctranslate2 import CTranslate2Format
from t2t_jax.exchange.exporting.huggingface import HFMarianFormat
from t2t_jax.exchange.exporting.m2m_100 import M2M100Format
from t2t_jax.exchange.exporting.marian import MarianFormat
from t2t_jax.exchange.exporting.stablehlo import StableHLOFormat
from t2t_jax.exchange.exporting.verification import (
    FLOAT16,
    INT8,
    INT8_WITHOUT_VNNI,
    Backend,
    Comparison,
    JaxBackend,
    Tolerance,
    VerificationText,
)
from t2t_jax.exchange.formats import FILE_SUFFIXES, FORBIDDING_FORMATS
from t2t_jax.exchange.importing.layout import NO_PROBABILITY
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference import provenance
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.run.inference.model_dir import atomic_directory, save_model_dir
from t2t_jax.run.text import languages_of, spec_of_names, without_folders
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import BOS, PAD, UNK


class ModelDirFormat(ExportFormat):
    """Model directories of this package.

    Args:
      safetensors: whether the parameters are one file, `model.safetensors`.
    """

    library = "t2t_jax"
    verified_with = "this directory"
    tags = ("jax",)
    tolerance = verification.EXACT

    def __init__(self, *, safetensors: bool = False):
        self._safetensors = safetensors

    def check_supported(self, config: Config) -> None:
        """Checks that the package safetensors is installed, if it is needed."""
        if self._safetensors:
            require_safetensors()

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes parameters, configuration and vocabularies."""
        save_model_dir(
            to,
            original.model,
            config=original.config,
            origin=original.origin,
            as_safetensors=self._safetensors,
        )

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads it, and compares the parameters bit by bit."""
        config = original.config
        written = load_for_export(Workdir(directory), checkpoint="last", config=config)
        verification.check_equal(original.model.params, written.params)
        return JaxBackend(written, config.decoding)

    def usage(self, original: Original, *, name: str) -> str:
        """Describes `t2t_jax.load` and `--mode=translate`."""
        return fill_usage("t2t_jax", original, name)


def load_for_export(
    workdir: Workdir, *, checkpoint: str, config: Config
) -> TranslationModel:
    """Loads the model to export, in float32 on one device.

    Raises:
      UserError: as for `load.load`.
    """
    decoding, devices = config.decoding, jax.local_devices()[:1]
    model = load(
        workdir.path, checkpoint=checkpoint, decoding=decoding, devices=devices
    )
    network = dataclasses.replace(config.network, compute_dtype="float32")
    return dataclasses.replace(model, module=make_module(network))


FORMATS: Mapping[str, ExportFormat] = {
    "model_dir": ModelDirFormat(),
    "safetensors": ModelDirFormat(safetensors=True),
    "ctranslate2": CTranslate2Format(),
    "argos": ArgosFormat(),
    "hf_marian": HFMarianFormat(),
    "m2m_100": M2M100Format(),
    "marian": MarianFormat(),
    "stablehlo": StableHLOFormat(),
}
"""The formats by their names in `formats.EXPORT_FORMATS`."""


def tolerance_of(spec: ExportSpec) -> Tolerance:
    """Returns the accepted differences between an export and its model."""
    inexact = {"float32": FORMATS[spec.format].tolerance, "float16": FLOAT16}
    usual = inexact.get(spec.quantization, INT8_WITHOUT_VNNI if lacks_vnni() else INT8)
    loss = spec.max_bleu_loss
    return usual if loss is None else usual._replace(bleu=loss)


def export(
    original: Original, to: Path, *, spec: ExportSpec, text: VerificationText
) -> Comparison:
    """Writes a model and verifies that it translates like the original.

    Args:
      original: from `original_of`; its format supports it.
      to: missing or empty; or a missing file, for formats of `formats.FILE_SUFFIXES`.

    Raises:
      DataError: the export differs from the model; nothing is kept.
      OutputError: the directory cannot be created.
      UserError: a package is missing, or the model's search has a constraint.
    """
    form, config = FORMATS[spec.format], original.config
    if config.decoding.constraint != "none":
        raise UserError(
            "Exports search without constraints, but config.decoding.constraint is "
            f"{config.decoding.constraint}. Use --config.decoding.constraint=none."
        )
    written = original._replace(config=without_folders(config))
    starts_with_zeros = spec.format == "hf_marian" and config.model.start == "zero"
    if spec.format in FORBIDDING_FORMATS or starts_with_zeros:
        # The others have an option for unk.
        written = without_forbidden_tokens(written, unk=spec.format == "argos")
    only = f"*{to.suffix}" if to.suffix == FILE_SUFFIXES.get(spec.format) else ""
    precision = jax.default_matmul_precision("highest")
    with atomic_directory(to, only=only) as partial, precision:
        form.write(partial, written, spec)
        found = _verify(written, partial, form, text)
        tolerance = tolerance_of(spec)
        found.require(tolerance, advice=_advice(spec))
        checked = dataclasses.replace(found, text=spec_of_names(found.text))
        accepted = spec._replace(max_bleu_loss=tolerance.bleu)
        name = to.resolve().name
        card = model_card(name, form, original, checked, spec=accepted)
        # File names may hold any bytes.
        (partial / "README.md").write_bytes(card.encode(errors="backslashreplace"))
        provenance.write_sha256sums(partial)
    return found


def _verify(
    written: Original, directory: Path, form: ExportFormat, text: VerificationText
) -> Comparison:
    """Compares what was written with the model."""
    decoding = written.config.decoding
    return verification.compare(
        JaxBackend(written.model, decoding),
        form.load(directory, written),
        text,
        same_penalty=not decoding.length_penalty
        or divisor(decoding) == "n"
        or "CTranslate2" not in form.verified_with,
    )


def original_of(
    model: TranslationModel,
    *,
    spec: ExportSpec,
    workdir: Workdir,
    config: Config,
    text: VerificationText,
) -> Original:
    """Collects what is known of a model; of its text the names of the files alone.

    Args:
      model: from `load_for_export`.

    Raises:
      UserError: the languages of the specification are not those of the model's tags.
    """
    origin = provenance.provenance_of(workdir, model.step)
    origin.setdefault("examples", list(text.sources[:1]))
    for corpus in origin.get("data", {}).values():
        corpus["spec"] = spec_of_names(corpus.get("spec") or "")
    pairs = [spec.languages] if spec.languages else languages_of(workdir, config)
    languages = pairs[0] if len(pairs) == 1 else None
    vocabulary = model.vocabularies.source
    if spec.languages and vocabulary.reads_source:
        source, target = spec.languages
        given = f"--languages={source},{target}: "
        with rewording(lambda problem: f"{given}{problem}"):
            vocabulary.split_tags([], source_language=source, target_language=target)
    elif languages and vocabulary.reads_source:
        # Files may have other names of languages than the tags.
        languages = languages if vocabulary.tags.keys() >= {*languages} else None
    return Original(model, config, origin, languages, spec.license, pairs)


def _advice(spec: ExportSpec) -> str:
    if spec.quantization != "float32":
        inexact = spec.quantization.startswith("int8") and lacks_vnni()
        why = "CTranslate2's int8 is less exact on this processor, without VNNI. "
        return (
            f"{why * inexact}Use --quantization=float32, or train the model longer; if "
            "only BLEU is too low, compare more lines (--check_lines), or accept the "
            "loss with --max_bleu_loss."
        )
    return "This is a bug of t2t_jax or of a package: please report it."


def without_forbidden_tokens(original: Original, *, unk: bool = True) -> Original:
    """Returns a model that gives no probability to what the search never generates.

    Its output bias excludes pad, bos and tags of languages, and unk with
    `decoding.allow_unk=false`. The probabilities of the other tokens keep their ratios,
    so that greedy outputs are the same. Where the decoder starts with zeros, no input
    has the vectors of pad and bos, which training moves all the same: they are zeros.

    Args:
      unk: whether to exclude unk; False if its readers have an option for it.
    """
    model, config = original.model, original.config
    forbidden = [PAD, BOS, *model.vocabularies.target.tags.values()]
    forbidden += [UNK] * (unk and not config.decoding.allow_unk)
    params = jax.tree.map(np.array, model.params)
    names = ("pre_softmax", "target_embedding", "embedding")
    output = params[next(name for name in names if name in params)]
    output.setdefault("bias", np.zeros(len(output["table"]), np.float32))
    output["bias"][forbidden] = NO_PROBABILITY
    if config.model.start == "zero":
        for name in params.keys() & {"source_embedding", *names}:
            params[name]["table"][[PAD, BOS]] = 0
    network = dataclasses.replace(config.model, output_bias=True)
    exact = dataclasses.replace(network, compute_dtype="float32")
    return original._replace(
        model=dataclasses.replace(model, params=params, module=make_module(exact)),
        config=dataclasses.replace(config, model=network),
    )
