"""The interface of a format of exports."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.tokenizers import split_tag
from t2t_jax.data.vocabulary.vocabulary import Vocabulary, table_of
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import UserError
from t2t_jax.exchange.exporting.verification import (
    FLOAT32,
    Backend,
    JaxBackend,
    Tolerance,
    check_equal,
)
from t2t_jax.exchange.importing.imported import ImportedModel
from t2t_jax.model.architectures import make_module
from t2t_jax.run.inference.model import TranslationModel

Supported: TypeAlias = Mapping[str, tuple[Any, ...]]
"""Supported values by key of `config.model`."""


class ExportSpec(NamedTuple):
    """What an export is asked to be.

    Attributes:
      format: one of `formats.EXPORT_FORMATS`.
      quantization: of `formats.QUANTIZED_FORMATS`; other formats keep float32.
      max_bleu_loss: accepted loss of BLEU by these; None for the default of the
        quantization.
      languages: codes of source and target; None to infer them.
      license: of the model, for its card; "" if not given.
      shortlist: file of `--mode=shortlist`, for formats that have one; "" for none.
    """

    format: str
    quantization: str = "float32"
    max_bleu_loss: float | None = None
    languages: tuple[str, str] | None = None
    license: str = ""
    shortlist: str = ""


class Original(NamedTuple):
    """The model that is exported.

    Attributes:
      model: in float32 on one device.
      config: of its run.
      origin: from `provenance.provenance_of`, with at least one of `examples`.
      languages: codes of source and target; None if they are not known, or several.
      license: "" if not given.
      directions: the languages, or those of each direction.
    """

    model: TranslationModel
    config: Config
    origin: Mapping[str, Any]
    languages: tuple[str, str] | None = None
    license: str = ""
    directions: Sequence[tuple[str, str]] = ()


class ExportFormat(Protocol):
    """How models are written in one format, verified and described.

    A new format is a module with a subclass, its name in `formats.EXPORT_FORMATS`, and
    an object in `exporter.FORMATS`.

    Attributes:
      library: the software that reads it: `library_name` of Hugging Face.
      verified_with: what translated the lines of the verification: "CTranslate2".
      tags: further ones for Hugging Face.
      tolerance: accepted differences between export and model, in float32.
    """

    library: str
    verified_with: str
    tags: tuple[str, ...] = ()
    tolerance: Tolerance = FLOAT32

    def check_supported(self, config: Config) -> None:
        """Checks that a model can be written, before anything is.

        Raises:
          UserError: a package is not installed, or the format cannot represent the
            model; the message names the key and its supported values.
        """

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes all files but README.md and SHA256SUMS into an empty directory."""

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads what `write` wrote, as its users do, for the verification.

        Raises:
          DataError: arrays were not written bit by bit, where they must be.
        """

    def usage(self, original: Original, *, name: str) -> str:
        """Describes in Markdown how the export is used, and what is not exact.

        Args:
          name: of the directory. A Python program in the text must run beside it.
        """


def imported_backend(original: Original, imported: ImportedModel) -> Backend:
    """Returns what was written in another toolkit's format and imported again.

    Raises:
      DataError: its arrays were not written bit by bit.
    """
    check_equal(original.model.params, imported.params)
    network = dataclasses.replace(
        original.config.model, **imported.model, compute_dtype="float32"
    )
    model = dataclasses.replace(
        original.model,
        module=make_module(network),
        params=imported.params,
        vocabularies=imported.vocabularies,
    )
    return JaxBackend(model, original.config.decoding)


def divisor(config: DecodingConfig) -> str:
    """Returns what is raised to alpha, of an output of n tokens.

    Example:
      >>> divisor(DecodingConfig())
      '(5 + n) / 6'
      >>> divisor(DecodingConfig(length_normalization="power"))
      'n'
    """
    return "n" if config.length_normalization == "power" else "(5 + n) / 6"


def require_transformer(
    config: Config, form: str, supported: Supported, *, advice: str = ""
) -> None:
    """Checks that a format can represent a model.

    Args:
      form: `--format`, for messages.
      supported: values by key of `config.model`.
      advice: what to do about other values, a sentence.

    Raises:
      UserError: it cannot; the message names the keys.
    """
    if config.architecture != "transformer":
        raise UserError(
            f"--format={form} requires a Transformer, but --workdir holds "
            f"architecture={config.architecture!r}, which it does not support. Use "
            "--format=model_dir or --format=safetensors."
        )
    problems = [
        f"--format={form} requires model.{key}={' or '.join(map(str, values))}, and "
        f"the model has {getattr(config.model, key)}. {advice}"
        for key, values in supported.items()
        if getattr(config.model, key) not in values
    ]
    if problems:
        raise UserError(problems)


def even_heads(config: Config) -> dict[str, tuple[Fraction]]:
    """Returns the supported depths of formats whose heads share d_model."""
    depth = Fraction(config.model.d_model, config.model.num_heads)
    return {"d_k": (depth,), "d_v": (depth,)}


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes an object as JSON."""
    text = json.dumps(values, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")


def untagged(original: Original) -> tuple[Original, list[str]]:
    """Returns a model whose example is without the tags of its languages.

    Returns:
      The model; and the languages whose tags source and target begin with, or the
      source alone, by the example, `languages` or else the first that it has.
    """
    vocabulary = original.model.vocabularies.source
    if not vocabulary.tags:
        return original, []
    source, target, text = split_tag(original.origin["examples"][0], vocabulary.tags)
    known = original.languages or [*vocabulary.tags, *vocabulary.tags]
    origin = {**original.origin, "examples": [text.strip()]}
    languages = [source or known[0], target or known[1]]
    if not vocabulary.reads_source:
        languages = [one for one in languages[1:] if one in vocabulary.tags]
    return original._replace(origin=origin), languages


def distinct_pieces(pieces: Iterable[str]) -> list[str]:
    """Returns pieces by id, of which the first of equal ones has its name.

    Example:
      >>> distinct_pieces(["a", "b", "a"])
      ['a', 'b', 'a<2>']
    """
    found: dict[str, None] = {}
    for id_, name in enumerate(pieces):
        while name in found:
            name += f"<{id_}>"
        found[name] = None
    return list(found)


def require_sentencepiece(vocabulary: Vocabulary, form: str) -> bytes:
    """Returns the SentencePiece model that a vocabulary is.

    Raises:
      UserError: it is a table of another toolkit.
    """
    if table_of(vocabulary):
        raise UserError(
            f"--format={form} requires a vocabulary of SentencePiece, and the model "
            "has a table of pieces of another toolkit. Use --format=ctranslate2."
        )
    return vocabulary.model
