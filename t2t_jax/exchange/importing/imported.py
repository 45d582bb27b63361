"""What an importer is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.config import DataConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError, short_repr
from t2t_jax.model.config import is_size
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


def require_values(
    found: Mapping[str, Any], supported: Mapping[str, tuple[Any, ...]], *, name: str
) -> None:
    """Checks settings of another toolkit whose other values would be another model.

    Args:
      supported: values by setting; the first is that of a setting that is not there.

    Raises:
      DataError: one has another value.
    """
    for key, values in supported.items():
        if (value := found.get(key, values[0])) not in values:
            raise DataError(
                f"{name}: models with {key}={short_repr(value)} are not supported, "
                f"only {values[0]!r}."
            )


def sizes_of(
    found: Mapping[str, Any], names: Mapping[str, str], *, name: str
) -> dict[str, int]:
    """Returns the sizes of `config.model`, of heads that share d_model.

    Args:
      names: the toolkit's setting of each.

    Raises:
      DataError: one is not a size, or heads do not share d_model.
    """
    sizes: dict[str, Any] = {key: found.get(names[key]) for key in names}
    for key, size in sizes.items():
        if not is_size(size):
            raise DataError(
                f"{name}: {names[key]}={short_repr(size)} is not a size of a model. "
                "Pass a complete model."
            )
    d_model, heads = sizes["d_model"], sizes["num_heads"]
    if d_model % 2 or d_model % heads:
        raise DataError(
            f"{name}: {names['d_model']}={d_model} must be even, and divisible by "
            f"{names['num_heads']}={heads}. Pass a complete model."
        )
    return {**sizes, "d_k": d_model // heads, "d_v": d_model // heads}


def dropouts_of(found: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    """Returns the dropouts of the training, which no output depends on.

    Args:
      names: our key of each of the toolkit's settings.
    """
    rates = {key: found.get(theirs) for theirs, key in names.items()}
    return {
        key: float(rate)
        for key, rate in rates.items()
        if isinstance(rate, int | float) and 0 <= rate < 1
    }


def length_limits(model: Mapping[str, Any], *, extra: int = 200) -> dict[str, int]:
    """Returns how long sources and outputs may be, together, by key.

    Args:
      model: values of `config.model` by key; learned positions are a limit.
      extra: tokens that an output may have more than its source.
    """
    if not (rows := model.get("max_positions")):
        return {"decoding.max_extra_tokens": extra}
    extra = min(extra, rows // 2)
    return {
        "decoding.max_extra_tokens": extra,
        "decoding.max_source_length": max(rows - extra, 2),
        "data.max_length": min(DataConfig.max_length, rows),
    }
