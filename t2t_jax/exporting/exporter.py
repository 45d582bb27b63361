"""Exports a trained model and verifies the export before keeping it.

An export is written to a temporary directory, which is removed if the export does not
translate like the model.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from t2t_jax.checkpointing.safetensors_io import require_safetensors
from t2t_jax.config import Config
from t2t_jax.data.vocabulary.vocabulary import BOS, PAD
from t2t_jax.errors import DataError
from t2t_jax.evaluation.protocol import fingerprint_params
from t2t_jax.exporting import model_card, verification
from t2t_jax.exporting.backends import Backend, CTranslate2Backend, JaxBackend
from t2t_jax.exporting.ctranslate2 import (
    require_ctranslate2,
    require_transformer,
    write_ctranslate2,
)
from t2t_jax.exporting.verification import Comparison, Tolerance, VerificationText
from t2t_jax.inference import provenance
from t2t_jax.inference.load import load
from t2t_jax.inference.model import TranslationModel
from t2t_jax.inference.model_dir import atomic_directory, save_model_dir
from t2t_jax.model.architectures import make_module
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import Params

_TOLERANCES = {
    "float32": verification.FLOAT32,
    "float16": verification.FLOAT16,
    "int8": verification.INT8,
    "int8_float32": verification.INT8,
    "int8_float16": verification.INT8,
}


class ExportSpec(NamedTuple):
    """Format and quantization of an export.

    Attributes:
      format: one of `formats.EXPORT_FORMATS`.
      quantization: of a CTranslate2 model; other formats keep float32.
      max_bleu_loss: accepted loss of BLEU of a CTranslate2 model; None for the default
        of the quantization.
    """

    format: str
    quantization: str = "float32"
    max_bleu_loss: float | None = None

    @property
    def tolerance(self) -> Tolerance:
        """Accepted differences between export and model."""
        if self.format != "ctranslate2":
            return verification.EXACT
        usual = _TOLERANCES[self.quantization]
        if self.max_bleu_loss is None:
            return usual
        return usual._replace(bleu=self.max_bleu_loss)

    def check_supported(self, config: Config) -> None:
        """Checks that the format can be written, before anything is.

        Raises:
          UserError: a package is not installed, or cannot represent the model.
        """
        if self.format == "safetensors":
            require_safetensors()
        if self.format == "ctranslate2":
            require_transformer(config)
            require_ctranslate2()


def load_for_export(
    workdir: Workdir, *, checkpoint: str, config: Config
) -> TranslationModel:
    """Loads the model to export, in float32 on one device.

    Raises:
      UserError: as for `load.load`.
    """
    model = load(
        workdir.path,
        checkpoint=checkpoint,
        decoding=config.decoding,
        devices=jax.local_devices()[:1],
    )
    network = dataclasses.replace(config.network, compute_dtype="float32")
    return dataclasses.replace(model, module=make_module(network))


def export(
    model: TranslationModel,
    to: Path,
    *,
    spec: ExportSpec,
    workdir: Workdir,
    config: Config,
    text: VerificationText,
) -> Comparison:
    """Writes a model and verifies that it translates like the original.

    Args:
      model: from `load_for_export`.
      to: missing or empty.

    Raises:
      DataError: the export differs from the model; nothing is kept.
      OutputError: the directory cannot be created.
      UserError: a package is missing, or cannot represent the model.
    """
    spec.check_supported(config)
    origin = provenance.provenance_of(workdir, model.step)
    origin.setdefault("examples", list(text.sources[:1]))
    with (
        atomic_directory(to) as partial,
        jax.default_matmul_precision("highest"),
    ):
        _write(partial, model, spec=spec, config=config, origin=origin)
        found = verification.compare(
            JaxBackend(model, config.decoding),
            _load_backend(partial, model, spec=spec, config=config),
            text,
            vocabulary=model.vocabularies.source,
        )
        found.require(spec.tolerance, advice=_advice(spec))
        card = model_card.model_card(
            model_card.ModelCardFacts(
                name=to.resolve().name,
                format=spec.format,
                config=config,
                origin=origin,
                comparison=found,
                quantization=spec.quantization,
                max_bleu_loss=spec.tolerance.bleu,
                suppressed=model.vocabularies.target.pieces((PAD, BOS)),
                params_sha256=fingerprint_params(model.params),
                vocabulary_sha256=model.vocabularies.fingerprint,
                versions=provenance.versions(),
            )
        )
        (partial / "README.md").write_bytes(card.encode(errors="backslashreplace"))
        provenance.write_sha256sums(partial)
    return found


def _write(
    to: Path,
    model: TranslationModel,
    *,
    spec: ExportSpec,
    config: Config,
    origin: dict[str, object],
) -> None:
    if spec.format == "ctranslate2":
        write_ctranslate2(
            to,
            model.params,
            config=config,
            vocabularies=model.vocabularies,
            quantization=spec.quantization,
        )
        return
    save_model_dir(
        to,
        model.params,
        vocabularies=model.vocabularies,
        config=config,
        origin=origin,
        known_words=model.known_words,
        as_safetensors=spec.format == "safetensors",
    )


def _load_backend(
    directory: Path, model: TranslationModel, *, spec: ExportSpec, config: Config
) -> Backend:
    if spec.format == "ctranslate2":
        return CTranslate2Backend(
            directory,
            vocabularies=model.vocabularies.load(directory, config=config.vocabulary),
            config=config,
        )
    written = load_for_export(Workdir(directory), checkpoint="last", config=config)
    _check_equal(model.params, written.params)
    return JaxBackend(written, config.decoding)


def _check_equal(params: Params, written: Params) -> None:
    """Checks that the parameters were written bit by bit."""
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(written), strict=True)
    same = [np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs]
    if not all(same):
        raise DataError(
            f"{same.count(False)} of {len(same)} arrays differ after writing and "
            "reading them: the disk or the memory is failing. Nothing was kept."
        )


def _advice(spec: ExportSpec) -> str:
    if spec.quantization != "float32":
        return (
            "Use --quantization=float32, or train the model longer; if only BLEU is "
            "too low, set the accepted loss with --max_bleu_loss."
        )
    return "This is a bug of t2t_jax or of a package: please report it."
