"""Exports to Marian: `model.npz`, SentencePiece models and the decoder's options.

Marian's Transformer has other wavelengths of positions than the paper's and starts from
a zero vector, so the model must have been trained with both. What it has in addition,
biases of attention and of the logits, is written as zeros; pad and bos, which it does
not have, are left out.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.sentencepiece_ids import parse_sentencepiece
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import UserError
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    Supported,
    even_heads,
    imported_backend,
    require_sentencepiece,
    require_transformer,
)
from t2t_jax.exchange.exporting.verification import Backend
from t2t_jax.exchange.importing.imported import ImportOptions
from t2t_jax.exchange.importing.layout import foreign_layers, foreign_matrices
from t2t_jax.exchange.importing.marian import marian_name, read_marian
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.types import EOS, UNK, Params

_LENGTH_FACTOR = 3.0  # Marian's own
ACTIVATIONS = ("relu", "swish", "gelu")
"""What Marian has; its gelu is the exact one (measured with 1.12.42 on a CPU)."""
_SUPPORTED: Supported = {
    "norm": ("layer",),
    # Marian (1.12.42, measured) does not normalize keys and values of the decoder's
    # self-attention after the first token.
    "norm_position": ("post",),
    "position_rates": ("tensor2tensor",),
    "start": ("zero",),
    "first_position": (0,),
    "tag_position": ("first",),
    "positions": ("sinusoidal",),
    "scale_embeddings": (True,),
    "activation": ACTIVATIONS,
    "layer_norm_epsilon": (1e-6,),
}


class MarianFormat(ExportFormat):
    """Models of Marian, which `--mode=import` reads as well."""

    library = "marian"
    verified_with = "these files, imported again"
    tags = ("marian",)

    def check_supported(self, config: Config) -> None:
        """Checks that Marian has such a model."""
        advice = (
            "This export writes no other: train a model with that value, or use "
            "--format=hf_marian, which Hugging Face reads, or ctranslate2."
        )
        supported = {**_SUPPORTED, **even_heads(config)}
        require_transformer(config, "marian", supported, advice=advice)

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes the model, its vocabularies and the options of its decoder."""
        config, model = original.config, original.model
        ids = [[EOS, UNK, *range(UNK + 1, side.size)] for side in model.vocabularies]
        is_shared = model.vocabularies.shared
        names = ["vocab.spm"] * 2 if is_shared else ["source.spm", "target.spm"]
        for name, side, of_side in zip(names, model.vocabularies, ids, strict=True):
            (to / name).write_bytes(_with_ids(side, of_side))
        write_npz(to / "model.npz", marian_tensors(model.params, config.model, ids=ids))
        decoding = config.decoding
        options = {
            "relative-paths": True,
            "models": ["model.npz"],
            "vocabs": names,
            "beam-size": decoding.beam_size,
            "normalize": decoding.length_penalty,
            "word-penalty": 0,
            "max-length-factor": decoding.max_length_ratio or _LENGTH_FACTOR,
            "allow-unk": decoding.allow_unk,
            "mini-batch": 32,
            "maxi-batch": 100,
            "maxi-batch-sort": "src",
        }
        (to / "model.npz.decoder.yml").write_bytes(_yaml(options))

    def load(self, directory: Path, original: Original) -> Backend:
        """Imports it, and compares the parameters bit by bit."""
        return imported_backend(original, read_marian(directory, ImportOptions()))

    def usage(self, original: Original, *, name: str) -> str:
        """Describes marian-decoder and pymarian."""
        factor = original.config.decoding.max_length_ratio or _LENGTH_FACTOR
        return fill_usage("marian", original, name, factor=factor)


def _with_ids(vocabulary: Vocabulary, ids: list[int]) -> bytes:
    """Reorders the pieces of a SentencePiece model.

    Args:
      ids: our id of each id of Marian.
    """
    model = require_sentencepiece(vocabulary, "marian")
    proto = parse_sentencepiece(model, name="the vocabulary")
    pieces, spec = list(proto.pieces), proto.trainer_spec
    if any(pieces[id_].type == pieces[id_].CONTROL for id_ in vocabulary.tags.values()):
        raise UserError(
            "--format=marian does not support models with tags of languages that are "
            "control pieces, which no text becomes. Use --format=ctranslate2."
        )
    del proto.pieces[:]
    proto.pieces.extend(pieces[id_] for id_ in ids)
    for number, name in enumerate(("pad_id", "bos_id", "eos_id", "unk_id")):
        setattr(spec, name, ids.index(number) if number in ids else -1)
    spec.vocab_size = len(ids)
    return proto.SerializeToString()  # type: ignore[no-any-return]


_MATRICES = {
    "embedding": "Wemb",
    "source_embedding": "encoder_Wemb",
    "target_embedding": "decoder_Wemb",
    "pre_softmax": "decoder_ff_logit_out_Wt",
}
Tensors: TypeAlias = dict[str, npt.NDArray[Any]]


_ALIGNMENT = 16  # bytes; Marian pads the options with NULs

# The options of a model that are the same for all.
_OPTIONS: Mapping[str, Any] = {
    "type": "transformer",
    "version": "v1.12.42",
    **{"bert-train-type-embeddings": True, "bert-type-vocab-size": 2},
    **{"dec-cell": "gru", "dec-cell-base-depth": 2, "dec-cell-high-depth": 1},
    **{"enc-cell": "gru", "enc-cell-depth": 1, "enc-type": "bidirectional"},
    **{"dim-rnn": 1024, "factors-combine": "sum", "factors-dim-emb": 0},
    **{"input-types": [], "lemma-dependency": "", "lemma-dim-emb": 0},
    **{"separator-symbol": "[eos]", "ulr-dim-emb": 0},
    **{"transformer-aan-activation": "swish", "transformer-aan-depth": 2},
    **{"transformer-attention-mask": "default", "transformer-dim-aan": 2048},
    **{"transformer-decoder-autoreg": "self-attention"},
    **{"transformer-decoder-dim-ffn": 0, "transformer-decoder-ffn-depth": 0},
    **{"transformer-ffn-depth": 2, "transformer-guided-alignment-layer": "last"},
    **{"transformer-postprocess-emb": "d", "transformer-tied-layers": []},
    **dict.fromkeys(
        "layer-normalization output-omit-bias right-left skip tied-embeddings-src ulr "
        "transformer-aan-nogate transformer-alibi-shift transformer-alibi-trainable "
        "transformer-disable-position-embeddings transformer-no-affine "
        "transformer-no-bias transformer-no-projection transformer-pool "
        "transformer-rnn-projection transformer-train-position-embeddings "
        "ulr-trainable-transformation".split(),
        False,
    ),
}


def marian_tensors(
    params: Params, config: TransformerConfig, *, ids: Sequence[Sequence[int]]
) -> Tensors:
    """Returns the tensors of a model, with its options as `special:model.yml`.

    Args:
      ids: our id of each id of Marian, for the source and for the target.
    """
    tensors: Tensors = {
        marian_name(path, kind): array if kind == "kernel" else array[None]
        for path, kind, array in foreign_layers(params, config)
    }
    tables, bias = foreign_matrices(params, config)
    for path, table in tables.items():
        tensors[_MATRICES[path]] = table[list(ids[path != "source_embedding"])]
    tensors["decoder_ff_logit_out_b"] = bias[None, list(ids[1])]
    for name, array in tensors.items():
        tensors[name] = np.ascontiguousarray(array, np.float32)
    options = {
        **_OPTIONS,
        "dec-depth": decoder_layers(config),
        "dim-emb": config.d_model,
        "dim-vocabs": [len(side) for side in ids],
        "enc-depth": config.num_layers,
        "tied-embeddings": config.tying == "decoder",
        "tied-embeddings-all": config.tying == "all",
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-activation": config.activation,
        "transformer-heads": config.num_heads,
        "transformer-postprocess": "dan",
        "transformer-postprocess-top": "",
        "transformer-preprocess": "",
    }
    text = _yaml(dict(sorted(options.items()))).removesuffix(b"\n") + b"\0"
    padding = -len(text) % _ALIGNMENT
    content = np.frombuffer(text + padding * b"\0", np.int8)
    return {**tensors, "special:model.yml": content}


def _yaml(options: Mapping[str, Any]) -> bytes:
    # A JSON value is one of YAML.
    lines = (f"{key}: {json.dumps(value)}\n" for key, value in options.items())
    return "".join(lines).encode()


def write_npz(path: Path, tensors: Tensors) -> None:
    """Writes tensors, without compression, and the same bytes every time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in tensors.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=array.nbytes >= 1 << 31) as file:
                np.lib.format.write_array(file, array, version=(1, 0))
