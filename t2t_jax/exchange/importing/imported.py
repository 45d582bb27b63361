"""What an importer is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.types import Params


class ImportOptions(NamedTuple):
    """What the user chose.

    Attributes:
      vocabularies: files of the source and of the target, or one for both; empty for
        those that lie beside the model; not with models of Hugging Face.
      positions: "huggingface" for position rates as Hugging Face computes them,
        "marian" for Marian's; "" for those that the model was trained with; only models
        of Marian and Hugging Face.
      normalize: whether to normalize the punctuation of sources as Moses does; only
        models of Hugging Face.
    """

    vocabularies: tuple[Path, ...] = ()
    positions: str = ""
    normalize: bool = False


DEFAULTS = ImportOptions()


class ImportedModel(NamedTuple):
    """Another toolkit's model, as one of ours.

    Attributes:
      config: value by key, such as "model.d_model", where it is not the default.
      params: of the `Transformer` of this configuration, nested dict of float32.
      files: that were read.
      notes: sentences for the model's README.md: what was left out, or is not exact.
      languages: of source and target, as codes, if they are known.
    """

    config: Mapping[str, Any]
    params: Params
    vocabularies: VocabularyPair
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    languages: tuple[str, str] | None = None
