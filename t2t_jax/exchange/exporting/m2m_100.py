"""Exports to Hugging Face Transformers, as an M2M100ForConditionalGeneration.

What was imported as one goes back bit by bit, trained further or not: Transformers
computes nothing that the model does not.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_jax.checkpointing.safetensors_io import require_safetensors, write_safetensors
from t2t_jax.config import Config
from t2t_jax.data.vocabulary.vocabulary import table_of
from t2t_jax.errors import UserError
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    Supported,
    even_heads,
    imported_backend,
    require_transformer,
    untagged,
    write_json,
)
from t2t_jax.exchange.exporting.huggingface import (
    configuration,
    exported_positions,
    generation,
    layer_tensors,
)
from t2t_jax.exchange.exporting.verification import SAME_SEARCH, Backend
from t2t_jax.exchange.importing.hf_marian import TOKENIZER, VOCABULARY, WEIGHTS
from t2t_jax.exchange.importing.hf_settings import CONFIG, GENERATION, M2M_100_IDS
from t2t_jax.exchange.importing.imported import DEFAULTS
from t2t_jax.exchange.importing.layout import foreign_matrices
from t2t_jax.exchange.importing.m2m_100 import COMPUTED, LANGUAGES, SPM, read_m2m_100
from t2t_jax.functional.feed_forward import ACTIVATIONS
from t2t_jax.types import BOS, PAD

_MASK = "<mask>"
_SUPPORTED: Supported = {
    "norm": ("layer",),
    "activation": tuple(ACTIVATIONS),
    "positions": ("sinusoidal",),
    "tying": ("all",),
    "output_bias": (False,),
    **{key: (value,) for key, value in COMPUTED.items() if key != "attention_biases"},
}


class M2M100Format(ExportFormat):
    """M2M100ForConditionalGeneration of Hugging Face Transformers."""

    library = "transformers"
    verified_with = "this directory, computed as Hugging Face Transformers does"
    tags = ("m2m_100", "pytorch")
    tolerance = SAME_SEARCH

    def check_supported(self, config: Config) -> None:
        """Checks that an M2M100ForConditionalGeneration can represent the model."""
        require_safetensors()
        supported = {**_SUPPORTED, **even_heads(config)}
        advice = "Use --format=ctranslate2 or --format=safetensors."
        require_transformer(config, "m2m_100", supported, advice=advice)

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes weights, configuration and tokenizer."""
        config = original.config
        tags = _write_tokenizer(to, original)
        ids = {f"{name}_token_id": M2M_100_IDS[name] for name in ("bos", "pad", "eos")}
        ids["decoder_start_token_id"] = M2M_100_IDS["eos"]
        found = configuration(config, "M2M100ForConditionalGeneration", ids)
        write_json(to / CONFIG, {**found, "model_type": "m2m_100"})
        found = generation(config, ids, unk=M2M_100_IDS["unk"], tags=tags)
        write_json(to / GENERATION, {**found, "early_stopping": "never"})
        params, model = original.model.params, config.model
        tables, _ = foreign_matrices(params, model)
        rows = tables["embedding"][_order(model.vocab_size)]
        tensors = {**layer_tensors(params, model), "model.shared.weight": rows}
        write_safetensors(to / WEIGHTS[0], tensors, metadata={"format": "pt"})

    def load(self, directory: Path, original: Original) -> Backend:
        """Reads it again, and compares the parameters bit by bit."""
        return imported_backend(original, read_m2m_100(directory, DEFAULTS))

    def usage(self, original: Original, *, name: str) -> str:
        """Describes the model, and the tokenizer of its languages."""
        original, languages = untagged(original)
        pieces = table_of(original.model.vocabularies.target).get("language_tokens", {})
        source = languages[0] if languages else ""
        is_named = not source or _is_named(source, pieces[source])
        return fill_usage(
            "m2m_100",
            original,
            name,
            positions=exported_positions(original.config),
            source=source if is_named else "en",
            first="" if is_named else pieces[source],
            piece=pieces[languages[1]] if languages else "",
        )


def _is_named(language: str, piece: str) -> bool:
    """Returns whether HF's tokenizer takes a language: M2M-100's has a list in code."""
    listed = " ".join(LANGUAGES.values()).split()
    return not piece.startswith("__") or language in listed


def _order(size: int) -> list[int]:
    """Returns our id of each of HF's, which has bos before pad."""
    return [BOS, PAD, *range(2, size)]


def _write_tokenizer(to: Path, original: Original) -> list[int]:
    """Writes the files of a tokenizer, and returns the ids of the languages."""
    vocabulary = original.model.vocabularies.target
    table = table_of(vocabulary)
    if table.get("source_tag") != "source":
        raise UserError(
            "--format=m2m_100 requires the vocabulary of an imported model of M2M-100 "
            "or NLLB-200. Use --format=ctranslate2 or --format=safetensors."
        )
    (to / SPM).write_bytes(base64.b64decode(table["sentencepiece"]))
    names = vocabulary.pieces(_order(vocabulary.size))
    ids = [*vocabulary.tags.values()]
    first = min(ids)
    settings: dict[str, Any] = {
        "tokenizer_class": "NllbTokenizer",
        # A source has its language after its eos.
        "legacy_behaviour": original.config.model.tag_position == "last",
    }
    if all(piece.startswith("__") for piece in table["language_tokens"].values()):
        pieces = {name: id_ for id_, name in enumerate(names[:first])}
        write_json(to / VOCABULARY, pieces)
        codes = _language_codes(vocabulary.tags, first)
        settings = {"tokenizer_class": "M2M100Tokenizer", "language_codes": codes}
    source, target = original.languages or (None, None)
    if source and not _is_named(source, table["language_tokens"][source]):
        source = None
    special = {id_: names[id_] for id_ in (*range(4), *ids)}
    if _MASK in names[first:]:
        special[names.index(_MASK, first)] = _MASK
    settings |= {
        "added_tokens_decoder": {str(id_): _added(special[id_]) for id_ in special},
        "additional_special_tokens": [names[id_] for id_ in ids],
        "src_lang": source,
        "tgt_lang": target,
    }
    write_json(to / TOKENIZER, settings)
    return ids


def _added(name: str) -> dict[str, Any]:
    """Returns a special piece as HF's tokenizers list it."""
    return {
        "content": name,
        **dict.fromkeys(("lstrip", "normalized"), name == _MASK),
        **{"rstrip": False, "single_word": False, "special": True},
    }


def _language_codes(tags: Mapping[str, int], first: int) -> str:
    """Returns the name of the list that HF's tokenizer has the languages from."""
    for name, codes in LANGUAGES.items():
        if all(tags.get(code) == id_ for id_, code in enumerate(codes.split(), first)):
            return name
    raise UserError(
        "--format=m2m_100 requires the languages of a tokenizer of M2M-100 with their "
        "ids, and the vocabulary has others. Use --format=safetensors."
    )
