"""Reads the settings of a Hugging Face MarianMTModel, none of which is trusted.

Of `config.json` and `generation_config.json`, everything that changes the outputs is
read or refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from t2t_jax.errors import DataError, short_repr
from t2t_jax.files import read_json_object

CONFIG, GENERATION = "config.json", "generation_config.json"
MARKER = "t2t_jax"
"""The key of `config.json` under which an export of ours keeps what is not HF's."""

_LARGEST = 1_000_000
_ADVICE = "Pass a complete model."

# Keys whose other values would be another model; some are of earlier versions.
_REQUIRED: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("marian",),
    "is_encoder_decoder": (True,),
    "is_decoder": (False,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "add_bias_logits": (False,),
    "static_position_embeddings": (True,),
    "quantization_config": (None,),
}
_ACTIVATIONS = {
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "quick_gelu": "quick_gelu",
}

# Settings of generation that change outputs, and their values without effect.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("do_sample", "remove_invalid_values", "token_healing"), (False, None)
    ),
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty"), (1.0, None)),
    **dict.fromkeys(
        ("no_repeat_ngram_size", "encoder_no_repeat_ngram_size"), (0, None)
    ),
    **dict.fromkeys(("num_beam_groups", "num_return_sequences"), (1, None)),
    **dict.fromkeys(
        (
            *("force_words_ids", "constraints", "suppress_tokens"),
            *("begin_suppress_tokens", "stop_strings", "forced_decoder_ids"),
        ),
        (None, []),
    ),
    **dict.fromkeys(
        (
            *("forced_bos_token_id", "exponential_decay_length_penalty"),
            *("watermarking_config", "max_time", "dola_layers"),
        ),
        (None,),
    ),
    "diversity_penalty": (0.0, None),
    "penalty_alpha": (None, 0.0),
    "sequence_bias": (None, {}),
    "guidance_scale": (None, 1.0),
    "renormalize_logits": (False, None, True),  # noted in README.md
    "cache_implementation": (None, "dynamic", "static", "offloaded"),
}


class Settings(NamedTuple):
    """The architecture of a MarianMTModel, in HF's names.

    Attributes:
      activation: in our names.
      shared: whether source and target have one matrix of embeddings.
      tied: whether the target's matrix is that of the logits.
      start: id with which decoding starts.
      marker: what an export of ours noted; empty for other models.
    """

    vocab_size: int
    decoder_vocab_size: int
    d_model: int
    num_heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    max_positions: int
    activation: str
    scale_embedding: bool
    shared: bool
    tied: bool
    pad: int
    start: int
    eos: int
    bos: int | None
    marker: Mapping[str, Any]


class Generation(NamedTuple):
    """How a model's outputs are searched, in HF's names.

    Attributes:
      never: ids that are never produced.
      max_length: tokens of an output with the start; 0 if it is not set.
      early_stopping: of the beam search: False, True or "never".
      renormalized: whether probabilities are, after some tokens are left out.
    """

    num_beams: int
    length_penalty: float
    max_length: int
    min_tokens: int
    never: frozenset[int]
    early_stopping: bool | str
    renormalized: bool


def read_settings(directory: Path) -> Settings:
    """Reads `config.json`.

    Raises:
      DataError: it is damaged or incomplete, or of an unsupported model.
      OSError: it cannot be read.
    """
    values = _Values(directory / CONFIG)
    values.require(_REQUIRED)
    d_ff, num_heads = (
        values.equal_sizes(f"encoder_{name}", f"decoder_{name}")
        for name in ("ffn_dim", "attention_heads")
    )
    activation = values.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        values.refuse("activation_function", ", ".join(_ACTIVATIONS))
    shared, tied, vocab_size, target_size = _vocabulary_sizes(values)
    d_model = values.size("d_model")
    if d_model % 2 or d_model % num_heads:
        values.refuse("d_model", f"even multiples of {num_heads} attention heads")
    marker = values.get(MARKER, {})
    return Settings(
        vocab_size=vocab_size,
        decoder_vocab_size=target_size,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        encoder_layers=values.size("encoder_layers"),
        decoder_layers=values.size("decoder_layers"),
        max_positions=values.size("max_position_embeddings", default=1024),
        activation=_ACTIVATIONS[activation],
        scale_embedding=values.flag("scale_embedding", default=False),
        shared=shared,
        tied=tied,
        pad=values.id("pad_token_id", target_size),
        start=values.id("decoder_start_token_id", target_size),
        eos=values.id("eos_token_id", target_size),
        bos=None
        if values.get("bos_token_id") is None
        else values.id("bos_token_id", target_size),
        marker=marker if isinstance(marker, dict) else {},
    )


def _vocabulary_sizes(values: _Values) -> tuple[bool, bool, int, int]:
    """Returns `shared`, `tied` and the sizes of both sides."""
    shared = values.flag("share_encoder_decoder_embeddings", default=True)
    tied = values.flag("tie_word_embeddings", default=True)
    if shared and not tied:
        values.refuse("tie_word_embeddings", "true where the embeddings are shared")
    vocab_size = values.size("vocab_size")
    target_size = vocab_size
    if values.get("decoder_vocab_size") is not None:
        target_size = values.size("decoder_vocab_size")
    if shared and target_size != vocab_size:
        values.refuse("decoder_vocab_size", "vocab_size, as embeddings are shared")
    return shared, tied, vocab_size, target_size


def read_generation(directory: Path, *, settings: Settings) -> Generation:
    """Reads `generation_config.json`, or what `config.json` has of it.

    Raises:
      DataError: it is damaged, or asks for a search that is not supported.
      OSError: it cannot be read.
    """
    path = directory / GENERATION
    values = _Values(path if path.exists() else directory / CONFIG)
    values.require(_NEUTRAL)
    _require_ids(values, settings)
    if values.get("forced_eos_token_id", settings.eos) not in (None, settings.eos):
        values.refuse("forced_eos_token_id", f"{settings.eos}, eos_token_id")
    never = values.get("bad_words_ids") or []
    if not isinstance(never, list) or not all(_is_single(one) for one in never):
        values.refuse("bad_words_ids", "lists of one id")
    early_stopping = values.get("early_stopping") or False
    if early_stopping not in (False, True, "never"):
        values.refuse("early_stopping", "true, false and 'never'")
    max_length = values.size("max_length", default=0, least=0)
    if new_tokens := values.size("max_new_tokens", default=0):
        max_length = new_tokens + 1  # of the two, HF takes this one
    # HF counts the start token.
    least = max(
        values.size("min_length", default=0, least=0) - 1,
        values.size("min_new_tokens", default=0, least=0),
    )
    return Generation(
        num_beams=values.size("num_beams", default=1, most=1_000),
        length_penalty=values.number("length_penalty", default=1.0),
        max_length=max_length,
        min_tokens=max(least, 1),  # no empty output, as in the other searches here
        never=frozenset(one[0] for one in never),
        early_stopping=early_stopping,
        renormalized=bool(values.get("renormalize_logits")),
    )


def _require_ids(values: _Values, settings: Settings) -> None:
    """Checks that a search starts, ends and pads with the ids of the model."""
    for key, known in (
        ("decoder_start_token_id", settings.start),
        ("eos_token_id", settings.eos),
        ("pad_token_id", settings.pad),
    ):
        found = values.get(key)
        if found is not None and found not in (known, [known]):
            values.refuse(key, f"{known}, as in {CONFIG}")


def _is_single(ids: object) -> bool:
    return isinstance(ids, list) and len(ids) == 1 and type(ids[0]) is int


class _Values:
    """Values of a JSON file, each checked when it is read."""

    def __init__(self, path: Path):
        self._path = path
        self._values = read_json_object(path, advice=_ADVICE)

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def refuse(self, key: str, supported: str) -> NoReturn:
        raise DataError(
            f"{self._path}: {key}={short_repr(self._values.get(key))} is not "
            f"supported, only {supported}. Pass another model."
        )

    def require(self, supported: Mapping[str, tuple[Any, ...]]) -> None:
        for key, allowed in supported.items():
            if self._values.get(key, allowed[0]) not in allowed:
                self.refuse(key, repr(allowed[0]))

    def size(
        self,
        key: str,
        *,
        default: int | None = None,
        least: int = 1,
        most: int = _LARGEST,
    ) -> int:
        found = self._values.get(key)
        if found is None and default is not None:
            return default
        if type(found) is not int or not least <= found <= most:
            self.refuse(key, f"whole numbers from {least} to {most:,}")
        return found

    def equal_sizes(self, *keys: str) -> int:
        first, *others = (self.size(key) for key in keys)
        if others != [first]:
            self.refuse(keys[1], f"{first}, as {keys[0]}")
        return first

    def id(self, key: str, size: int) -> int:
        return self.size(key, least=0, most=size - 1)

    def flag(self, key: str, *, default: bool) -> bool:
        found = self._values.get(key, default)
        if not isinstance(found, bool):
            self.refuse(key, "true and false")
        return bool(found)

    def number(self, key: str, *, default: float) -> float:
        found = self._values.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float):
            self.refuse(key, "numbers")
        if not 0 <= found < 1_000:
            self.refuse(key, "numbers of at least 0")
        return float(found)
