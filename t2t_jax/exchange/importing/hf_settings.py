"""Reads the settings of a model of Hugging Face, none of which is trusted.

Of `config.json` and `generation_config.json`, everything that changes the outputs is
read or refused by name.

HF converted OPUS-MT's weights from Marian but computes other wavelengths of positions
and another epsilon than they were trained with. What is known of a directory decides:
what an export of this package noted, stored positions, files of HF's training, or the
bias of the logits, which Marian trains and HF does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from t2t_jax.data.files.lines import require_files
from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.imported import Settings, allowed
from t2t_jax.exchange.importing.layout import Array, Source, interleaved_from_halves
from t2t_jax.files import read_json_object
from t2t_jax.functional.positions import sinusoidal_positions

CONFIG, GENERATION = "config.json", "generation_config.json"
MARKER = "t2t_jax"
"""The key of `config.json` under which an export of ours keeps what is not HF's."""

M2M_100_IDS = {"bos": 0, "pad": 1, "eos": 2, "unk": 3}
"""The special ids of M2M100ForConditionalGeneration, which are fairseq's."""

# Keys whose other values would be another model; some are of earlier versions.
_REQUIRED = allowed(
    ("is_encoder_decoder", (True,)),
    ("is_decoder", (False,)),
    ("quantization_config", (None,)),
)
_REQUIRED_OF: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "marian": allowed(
        ("model_type", ("marian",)),
        ("normalize_before normalize_embedding add_final_layer_norm", (False,)),
        ("add_bias_logits", (False,)),
        ("static_position_embeddings", (True,)),
    ),
    "m2m_100": {
        "model_type": ("m2m_100",),
        "tie_word_embeddings": (True,),
        **{f"{name}_token_id": (id_,) for name, id_ in M2M_100_IDS.items()},
        "decoder_start_token_id": (M2M_100_IDS["eos"],),
    },
}
_ACTIVATIONS = {
    **{name: name for name in ("relu", "swish", "gelu", "quick_gelu")},
    **{"silu": "swish", "gelu_python": "gelu"},
}

# Settings of generation that change outputs, and their values without effect.
_NEUTRAL = allowed(
    ("do_sample remove_invalid_values token_healing", (False, None)),
    ("repetition_penalty encoder_repetition_penalty", (1.0, None)),
    ("no_repeat_ngram_size encoder_no_repeat_ngram_size", (0, None)),
    ("num_beam_groups num_return_sequences", (1, None)),
    ("force_words_ids constraints suppress_tokens begin_suppress_tokens", (None, [])),
    ("stop_strings forced_decoder_ids", (None, [])),
    ("forced_bos_token_id exponential_decay_length_penalty", (None,)),
    ("watermarking_config max_time dola_layers", (None,)),
    ("diversity_penalty", (0.0, None)),
    ("penalty_alpha", (None, 0.0)),
    ("sequence_bias", (None, {})),
    ("guidance_scale", (None, 1.0)),
    ("renormalize_logits", (False, None, True)),  # noted in README.md
    ("cache_implementation", (None, "dynamic", "static", "offloaded")),
)
_MOST_EXTRA_TOKENS = 200
_SIZES = (
    "d_model encoder_attention_heads encoder_ffn_dim encoder_layers decoder_layers"
).split()

HF_EPSILON = 1e-5
"""Of torch's layer normalization, which no configuration of HF changes."""

POSITION_TABLES = tuple(
    f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder")
)
"""Tensors with which HF replaces the positions that it computes."""

COMPUTED = {
    "position_rates": "paper",
    "first_position": 0,
    "layer_norm_epsilon": HF_EPSILON,
    "attention_biases": True,
    "output_bias": True,
}
"""Values of `config.model` by key, of what HF computes without stored positions."""

_MARIAN = {**COMPUTED, "position_rates": "tensor2tensor", "layer_norm_epsilon": 1e-6}
_RATES = ("paper", "tensor2tensor")
_BIASES = ("attention_biases", "output_bias")
_TRAINING_FILES = ("trainer_state.json", "training_args.bin", "optimizer.pt")
MOST_FIRST_POSITION = 2
"""Of fairseq; of sinusoids that are stored."""

_TABLE_TOLERANCE = 1e-3  # float32 angles of 1,000 positions


class Architecture(NamedTuple):
    """What `config.json` says of a model.

    Attributes:
      model: values of `config.model` by key.
      sizes: of the vocabularies of source and target.
      max_positions: most tokens of a source, and of an output.
      ids: of special tokens by HF's names: pad, decoder_start, eos, and bos if it has
        one.
      marker: what an export of ours noted; empty for other models.
    """

    model: dict[str, Any]
    sizes: tuple[int, int]
    max_positions: int
    ids: Mapping[str, int]
    marker: Mapping[str, Any]


class Generation(NamedTuple):
    """How a model's outputs are searched.

    Attributes:
      search: values of `config.decoding` by key.
      never: ids that are never produced.
      early_stopping: of the beam search: False, True or "never".
      renormalized: whether probabilities are, after some tokens are left out.
    """

    search: dict[str, Any]
    never: frozenset[int]
    early_stopping: bool | str
    renormalized: bool


def read_architecture(directory: Path, model_type: str = "marian") -> Architecture:
    """Reads `config.json`.

    Args:
      model_type: "marian" or "m2m_100".

    Raises:
      DataError: it is damaged or incomplete, or of an unsupported model.
      OSError: it cannot be read.
    """
    values = _values_of(directory / CONFIG)
    values.require({**_REQUIRED, **_REQUIRED_OF[model_type]})
    is_m2m_100 = model_type == "m2m_100"
    values.require_equal("ffn_dim", "attention_heads")
    model: dict[str, Any] = values.sizes(*_SIZES)
    if model["num_decoder_layers"] == model["num_layers"]:
        model["num_decoder_layers"] = 0
    shared = values.flag("share_encoder_decoder_embeddings", default=True)
    tied = values.flag("tie_word_embeddings", default=True)
    if shared and not tied:
        values.refuse("tie_word_embeddings", "true where the embeddings are shared")
    size = values.size("vocab_size")
    target_size = values.size("decoder_vocab_size", default=size)
    if shared and target_size != size:
        values.refuse("decoder_vocab_size", "vocab_size, as embeddings are shared")
    usual = "relu" if is_m2m_100 else "gelu"
    word = values.choice("activation_function", _ACTIVATIONS, default=usual)
    model["activation"] = _ACTIVATIONS[word]
    model["scale_embeddings"] = values.flag("scale_embedding", default=is_m2m_100)
    model["tying"] = "all" if shared else "decoder" if tied else "none"
    names, most = ["pad", "decoder_start", "eos"], target_size - 1
    names += ["bos"] * (values.get("bos_token_id") is not None)
    marker = values.get(MARKER, {})
    return Architecture(
        model=model,
        sizes=(size, target_size),
        max_positions=values.size("max_position_embeddings", default=1024),
        ids={one: values.size(f"{one}_token_id", least=0, most=most) for one in names},
        marker=marker if isinstance(marker, dict) else {},
    )


def _values_of(path: Path) -> Settings:
    require_files(path, change="--from")
    values = read_json_object(path, advice="Pass a complete model.")
    return Settings(values, name=path)


def read_generation(
    directory: Path, *, architecture: Architecture, has_languages: bool = False
) -> Generation:
    """Reads `generation_config.json`, or what `config.json` has of it.

    Args:
      has_languages: whether outputs begin with the token of a language, so that the one
        of `forced_bos_token_id` is a default that is not needed.

    Raises:
      DataError: it is damaged, or asks for a search that is not supported.
      OSError: it cannot be read.
    """
    path = directory / GENERATION
    values = _values_of(path if path.exists() else directory / CONFIG)
    forced = {"forced_bos_token_id": (values.get("forced_bos_token_id"),)}
    values.require({**_NEUTRAL, **(forced if has_languages else {})})
    ids = {**architecture.ids, "forced_eos": architecture.ids["eos"]}
    for name in ("decoder_start", "eos", "pad", "forced_eos"):
        key, known = f"{name}_token_id", ids[name]
        if values.get(key) not in (None, known, [known]):
            values.refuse(key, f"{known}, as in {CONFIG}")
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
    least = values.size("min_length", default=0, least=0) - 1
    least = max(least, values.size("min_new_tokens", default=0, least=0))
    extra = min(_MOST_EXTRA_TOKENS, max_length or _MOST_EXTRA_TOKENS)
    beams = values.size("num_beams", default=1, most=1_000)
    penalty = values.number("length_penalty", default=1.0)
    return Generation(
        search={
            "beam_size": beams,
            "length_penalty": penalty if beams > 1 else 0.0,  # HF's is greedy
            "length_normalization": "power",
            "max_extra_tokens": extra,
            "max_source_length": max(architecture.max_positions, 2),
            "min_tokens": max(least, 1),  # no empty output, as in other searches here
        },
        never=frozenset(one[0] for one in never),
        early_stopping=early_stopping,
        renormalized=bool(values.get("renormalize_logits")),
    )


def _is_single(ids: object) -> bool:
    return isinstance(ids, list) and len(ids) == 1 and type(ids[0]) is int


class Trained(NamedTuple):
    """What the model keys are by the training of the weights.

    Attributes:
      by: "marian", "huggingface" or "t2t_jax".
      why: the evidence for it, a clause.
      model: values of `config.model` by key.
    """

    by: str
    why: str
    model: Mapping[str, Any]


def find_trained(
    directory: Path,
    source: Source,
    *,
    bias: Array,
    architecture: Architecture,
    wanted: str,
) -> Trained:
    """Finds how weights were trained.

    Args:
      source: stored tables of positions are taken from it.
      bias: [V] of the logits.
      wanted: "huggingface" for what HF computes, "marian" for Marian's own, or "".

    Raises:
      DataError: stored positions are not sinusoids, or what an export noted is invalid.
    """
    stored = _stored_positions(source, architecture)
    noted = _noted(architecture.marker, directory) if architecture.marker else {}
    if wanted == "huggingface":
        biases = {key: noted[key] for key in _BIASES if key in noted}
        return Trained(wanted, "it was chosen", {**COMPUTED, **biases, **stored})
    if wanted == "marian":
        return Trained(wanted, "it was chosen", _MARIAN)
    if noted:
        return Trained("t2t_jax", "t2t_jax exported the model", noted)
    if stored.get("position_rates", "paper") != "paper":
        why = "its positions are stored with it"
    elif any((directory / name).exists() for name in _TRAINING_FILES):
        why = "it has files of a training with it"
    elif not bias.any():
        why = "its final_logits_bias is zero, and Marian trains one"
    else:
        why = "it has a trained final_logits_bias, which only Marian trains"
        return Trained("marian", why, _MARIAN)
    return Trained("huggingface", why, {**COMPUTED, **stored})


def _stored_positions(source: Source, architecture: Architecture) -> dict[str, Any]:
    """Returns rates and first position of stored tables; {} if there are none."""
    shape = (architecture.max_positions, architecture.model["d_model"])
    tables = [source.take(name, *shape) for name in POSITION_TABLES if name in source]
    if not tables:
        return {}
    for first, rates in product(range(MOST_FIRST_POSITION + 1), _RATES):
        sinusoids = position_table(*shape, rates=rates, first=first)
        if np.abs(np.stack(tables) - sinusoids).max() < _TABLE_TOLERANCE:
            return {"position_rates": rates, "first_position": first}
    raise DataError(
        f"{POSITION_TABLES[0]} must be sinusoids with the rates of the paper or of "
        "Marian, and is not. Remove it, if HF's are to be used."
    )


def position_table(count: int, d_model: int, *, rates: str, first: int) -> Array:
    """Computes sinusoids [count, D] in HF's layout: sines, then cosines.

    Example:
      >>> position_table(2, 4, rates="paper", first=0).round(2).tolist()
      [[0.0, 0.0, 1.0, 1.0], [0.8..., 0.0..., 0.54..., 1.0]]
    """
    pairs = np.asarray(
        sinusoidal_positions(np.arange(first, first + count), d_model, rates=rates)
    )
    table = np.empty_like(pairs)
    table[:, interleaved_from_halves(d_model)] = pairs
    return table


def _noted(marker: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Reads what an export of this package noted."""
    name, advice = f"{directory}: {MARKER} in {CONFIG}", "Export the model again."
    values = Settings(marker, name=name, advice=advice)
    first = values.size("first_position", least=0, most=MOST_FIRST_POSITION)
    return {
        "position_rates": values.choice("position_rates", _RATES),
        "first_position": first,
        "layer_norm_epsilon": values.number("layer_norm_epsilon", most=1),
        **{key: values.flag(key) for key in _BIASES},
    }
