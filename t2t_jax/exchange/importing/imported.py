"""What every importer shares: its options, settings that are checked, its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from t2t_jax.data.config import DataConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError, short_repr
from t2t_jax.model.config import is_number
from t2t_jax.types import Params

_MOST = 1_000_000
_EXTRA = 200  # tokens that an output may have more than its source
_ADVICE = "Pass another model."


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


def allowed(*rows: tuple[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Maps each of the names of a row to its values, the first of them the default.

    Example:
      >>> allowed(("width height", (0, None)), ("kind", ("plain",)))
      {'width': (0, None), 'height': (0, None), 'kind': ('plain',)}
    """
    return {name: values for names, values in rows for name in names.split()}


class ImportedModel(NamedTuple):
    """Another toolkit's model, as one of ours.

    Attributes:
      model: values of `config.model` by key, where they are not the default.
      search: value by key of other sections, such as "decoding.beam_size".
      params: of the `Transformer` of this configuration, nested dict of float32.
      files: that were read.
      notes: sentences for the model's README.md: what was left out, or is not exact.
      languages: of source and target, as codes, if they are known.
      shared_ids: whether two vocabularies have the same pieces with the same ids.
      license: of the published weights, as Hugging Face names it; "" if not known.
    """

    model: Mapping[str, Any]
    search: Mapping[str, Any]
    params: Params
    vocabularies: VocabularyPair
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    languages: tuple[str, str] | None = None
    shared_ids: bool = False
    license: str = ""

    @property
    def config(self) -> dict[str, Any]:
        """Value by key, such as "model.d_model", where it is not the default."""
        source, target = self.vocabularies
        config = {"vocabulary.size": target.size}
        if not self.vocabularies.shared:
            config["vocabulary.source_size"] = source.size
            config["vocabulary.shared_ids"] = self.shared_ids
        model = {f"model.{key}": value for key, value in self.model.items()}
        return {**config, **model, **self.search}


class Settings:
    """Settings of another toolkit, none of which is trusted.

    What would make another model is refused by its name.

    Args:
      values: by key.
      name: of their file, for messages.
      advice: what to do about one that is refused, a sentence.
    """

    def __init__(
        self, values: Mapping[str, Any], *, name: object, advice: str = _ADVICE
    ):
        self._values, self._name, self._advice = values, name, advice

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a value, whatever it is."""
        return self._values.get(key, default)

    def refuse(self, key: str, supported: str) -> NoReturn:
        """Raises a DataError for a value."""
        raise DataError(
            f"{self._name}: {key}={short_repr(self.get(key))} is not supported, only "
            f"{supported}. {self._advice}"
        )

    def require(self, supported: Mapping[str, tuple[Any, ...]]) -> None:
        """Checks settings whose other values would be another model.

        Args:
          supported: values by key; the first is that of a key that is not there.
        """
        for key, allowed in supported.items():
            if self.get(key, allowed[0]) not in allowed:
                self.refuse(key, repr(allowed[0]))

    def require_equal(self, *names: str) -> None:
        """Checks that settings of encoder and decoder have one value, or none."""
        for first, key in ((f"encoder_{one}", f"decoder_{one}") for one in names):
            if (self.get(key) or None) != (self.get(first) or None):
                self.refuse(key, f"{short_repr(self.get(first))}, as {first}")

    def size(
        self, key: str, *, default: int | None = None, least: int = 1, most: int = _MOST
    ) -> int:
        """Returns a whole number within bounds."""
        if (found := self.get(key)) is None and default is not None:
            return default
        if type(found) is not int or not least <= found <= most:
            self.refuse(key, f"whole numbers from {least} to {most:,}")
        return found

    def sizes(self, *names: str) -> dict[str, int]:
        """Returns the sizes of `config.model`, of heads that share d_model.

        Args:
          names: the toolkit's settings of d_model, num_heads, d_ff, num_layers and
            num_decoder_layers.
        """
        d_model, heads, d_ff, *depths = map(self.size, names)
        if d_model % 2 or d_model % heads:
            of_heads = f"{names[1]}={heads}"
            self.refuse(names[0], f"even numbers that are divisible by {of_heads}")
        sizes = {"d_model": d_model, "num_heads": heads, "d_ff": d_ff}
        sizes |= zip(("num_layers", "num_decoder_layers"), depths, strict=True)
        return sizes | dict.fromkeys(("d_k", "d_v"), d_model // heads)

    def number(
        self, key: str, *, default: float | None = None, most: float = 1_000
    ) -> float:
        """Returns a number from 0."""
        if (found := self.get(key)) is None and default is not None:
            return default
        # Comparisons with NaN are False.
        if not is_number(found) or not 0 <= found <= most:
            self.refuse(key, f"numbers from 0 to {most:,g}")
        return float(found)

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        """Returns true or false."""
        found = self.get(key, default)
        if not isinstance(found, bool):
            self.refuse(key, "true and false")
        return found

    def choice(self, key: str, known: Collection[str], *, default: str = "") -> str:
        """Returns one of some words."""
        found = self.get(key, default)
        if not isinstance(found, str) or found not in known:
            self.refuse(key, ", ".join(known))
        return found

    def dropouts(self, *names: str) -> dict[str, float]:
        """Returns the dropouts of the training, which no output depends on.

        Args:
          names: the toolkit's settings of dropout, attention_dropout and relu_dropout.
        """
        keys = ("dropout", "attention_dropout", "relu_dropout")
        return {
            key: float(rate)
            for key, theirs in zip(keys, names, strict=True)
            if is_number(rate := self.get(theirs)) and 0 <= rate < 1
        }


def length_limits(model: Mapping[str, Any]) -> dict[str, int]:
    """Returns how long sources and outputs may be, together, by key.

    Args:
      model: values of `config.model` by key; learned positions are a limit.
    """
    if not (rows := model.get("max_positions")):
        return {"decoding.max_extra_tokens": _EXTRA}
    extra = min(_EXTRA, rows // 2)
    return {
        "decoding.max_extra_tokens": extra,
        "decoding.max_source_length": max(rows - extra, 2),
        "data.max_length": min(DataConfig.max_length, rows),
    }
