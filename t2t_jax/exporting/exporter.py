"""A trained model for others to use: written, compared with itself, and only then kept.

An export is made beside its place. What does not do what the model does is removed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from flax import linen as nn

from t2t_jax.checkpointing.safetensors_io import require_safetensors
from t2t_jax.config import Config
from t2t_jax.data.vocabulary.vocabulary import BOS, PAD
from t2t_jax.errors import DataError
from t2t_jax.evaluation.protocol import fingerprint_params
from t2t_jax.exporting import model_card, verification
from t2t_jax.exporting.backends import Backend, CTranslate2Engine, JaxBackend
from t2t_jax.exporting.ctranslate2 import (
    require_ctranslate2,
    require_transformer,
    write_ctranslate2,
    written_positions,
)
from t2t_jax.exporting.verification import Comparison, Tolerance, VerificationText
from t2t_jax.inference import provenance
from t2t_jax.inference.load import load
from t2t_jax.inference.model import TranslationModel
from t2t_jax.inference.model_dir import made_beside, save_model_dir
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
    """What is to be made.

    Attributes:
      form: one of `forms.FORMS`.
      quantization: of numbers in CTranslate2's model; the others keep float32.
      max_bleu_loss: by how much BLEU of CTranslate2's model may be lower; None is as
        much as is usual for the quantization.
    """

    form: str
    quantization: str = "float32"
    max_bleu_loss: float | None = None

    @property
    def tolerance(self) -> Tolerance:
        """How far the export may be from the model."""
        if self.form != "ctranslate2":
            return verification.EXACT
        usual = _TOLERANCES[self.quantization]
        if self.max_bleu_loss is None:
            return usual
        return usual._replace(bleu=self.max_bleu_loss)

    def check_supported(self, config: Config) -> None:
        """Checks that there is what writes it, before there is anything to write.

        Raises:
          UserError: a package is not installed, or cannot express the model.
        """
        if self.form == "safetensors":
            require_safetensors()
        if self.form == "ctranslate2":
            require_transformer(config)
            require_ctranslate2()


def load_for_export(
    workdir: Workdir, *, checkpoint: str, config: Config
) -> TranslationModel:
    """Loads the model that is exported, to compute in float32 on one device.

    Args:
      workdir: a run or a model.
      checkpoint: `best`, `last` or a step.

    Raises:
      UserError: as for `loading.load`.
    """
    model = load(
        workdir.path,
        checkpoint=checkpoint,
        decoding=config.decoding,
        devices=jax.local_devices()[:1],
    )
    return dataclasses.replace(model, module=_in_float32(config))


def export(
    model: TranslationModel,
    to: Path,
    *,
    wish: ExportSpec,
    workdir: Workdir,
    config: Config,
    text: VerificationText,
) -> Comparison:
    """Writes a model and checks that it is the same.

    Args:
      model: from `load_for_export`.
      to: the directory, which must not exist or be empty.
      wish: what is to be made of it.
      config: what it is and how it translates.
      text: lines to compare it on.

    Returns:
      What the comparison has shown.

    Raises:
      DataError: the export does not do what the model does; there is none then.
      OutputError: the directory cannot be made.
      UserError: a package is missing, or cannot express the model.
    """
    wish.check_supported(config)
    origin = provenance.provenance_of(workdir, model.step)
    origin.setdefault("examples", list(text.sources[:1]))
    with (
        made_beside(to, flag="output") as beside,
        jax.default_matmul_precision("highest"),
    ):
        _write(beside, model, wish=wish, config=config, origin=origin)
        found = verification.compare(
            JaxBackend(model, config.decoding),
            _reader(beside, model, wish=wish, config=config),
            text,
            vocabulary=model.vocabularies.source,
        )
        found.require(wish.tolerance, change=_change(wish))
        card = model_card.model_card(
            model_card.Facts(
                name=to.resolve().name,
                form=wish.form,
                config=config,
                origin=origin,
                comparison=found,
                quantization=wish.quantization,
                max_bleu_loss=wish.tolerance.bleu,
                positions=_positions(wish, config),
                unsaid=model.vocabularies.target.pieces((PAD, BOS)),
                params_sha256=fingerprint_params(model.params),
                vocabulary_sha256=model.vocabularies.fingerprint,
                versions=provenance.versions(),
            )
        )
        (beside / "README.md").write_bytes(card.encode(errors="backslashreplace"))
        provenance.write_sha256sums(beside)
    return found


def _in_float32(config: Config) -> nn.Module:
    network = dataclasses.replace(config.network, compute_dtype="float32")
    return make_module(network)


def _positions(wish: ExportSpec, config: Config) -> int:
    return written_positions(config) if wish.form == "ctranslate2" else 0


def _write(
    to: Path,
    model: TranslationModel,
    *,
    wish: ExportSpec,
    config: Config,
    origin: dict[str, object],
) -> None:
    if wish.form == "ctranslate2":
        write_ctranslate2(
            to,
            model.params,
            config=config,
            vocabularies=model.vocabularies,
            quantization=wish.quantization,
        )
        return
    save_model_dir(
        to,
        model.params,
        vocabularies=model.vocabularies,
        config=config,
        origin=origin,
        known_words=model.known_words,
        as_safetensors=wish.form == "safetensors",
    )


def _reader(
    directory: Path, model: TranslationModel, *, wish: ExportSpec, config: Config
) -> Backend:
    """Loads what was written, as others will."""
    if wish.form == "ctranslate2":
        return CTranslate2Engine(
            directory,
            vocabularies=model.vocabularies.load(directory, config=config.vocabulary),
            config=config.decoding,
            positions=written_positions(config),
        )
    written = load_for_export(Workdir(directory), checkpoint="last", config=config)
    _require_same(model.params, written.params)
    return JaxBackend(written, config.decoding)


def _require_same(params: Params, written: Params) -> None:
    """Checks that no bit of any parameter has changed."""
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(written), strict=True)
    same = [np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs]
    if not all(same):
        raise DataError(
            f"{same.count(False)} of {len(same)} arrays were written, and are others "
            "when they are read again: the disk or the memory is failing. Nothing was "
            "kept."
        )


def _change(wish: ExportSpec) -> str:
    if wish.quantization != "float32":
        return (
            "Use --quantization=float32, or a model that was trained for longer; if "
            "only BLEU is too low, set what is acceptable with --max_bleu_loss."
        )
    return "This is a mistake of the program or of a package: please report it."
