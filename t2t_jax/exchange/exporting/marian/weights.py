"""The parameters of a Transformer as the tensors of Marian, by its names."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.exchange.importing.layout import interleaved_from_halves
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.types import BOS, EOS, PAD, UNK, Params

Tensors: TypeAlias = dict[str, npt.NDArray[Any]]

ACTIVATIONS = ("relu", "swish", "gelu")
"""What Marian has; its gelu is the exact one (measured with 1.12.42 on a CPU)."""

_OUTPUTS = {"all": "embedding", "decoder": "target_embedding", "none": "pre_softmax"}
_NO_PROBABILITY = -100.0  # its exponential is 0 in float32
_ALIGNMENT = 16  # bytes; Marian pads the options with NULs

# The options of a model that are the same for all.
_OPTIONS: Mapping[str, Any] = {
    "type": "transformer",
    "bert-train-type-embeddings": True,
    "bert-type-vocab-size": 2,
    "dec-cell": "gru",
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dependency": "",
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "separator-symbol": "[eos]",
    "skip": False,
    "tied-embeddings-src": False,
    "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": False,
    "transformer-alibi-shift": False,
    "transformer-alibi-trainable": False,
    "transformer-attention-mask": "default",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0,
    "transformer-dim-aan": 2048,
    "transformer-disable-position-embeddings": False,
    "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last",
    "transformer-no-affine": False,
    "transformer-no-bias": False,
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-postprocess-emb": "d",
    "transformer-rnn-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "ulr": False,
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
    "version": "v1.12.42",
}


def marian_ids(size: int, params: Params) -> list[int]:
    """Returns our id of each id of Marian: eos, unk, the rest, and pad and bos.

    The last two are left out if they are only there because a model without them was
    imported: rows of zeros without probability.

    Args:
      size: of the vocabulary of one side.
    """
    tables = [params[name] for name in params if name not in ("encoder", "decoder")]
    biases = [np.asarray(part["bias"]) for part in tables if "bias" in part]
    kept = [
        id_
        for id_ in (PAD, BOS)
        if not any(bias[id_] < _NO_PROBABILITY for bias in biases)
        or any(np.asarray(part["table"])[id_].any() for part in tables)
    ]
    return [EOS, UNK, *range(UNK + 1, size), *kept]


def marian_tensors(
    params: Params, config: TransformerConfig, *, ids: Sequence[Sequence[int]]
) -> Tensors:
    """Returns the tensors of a model, with its options as `special:model.yml`.

    Args:
      ids: our id of each id of Marian, for the source and for the target.
    """
    params = jax.tree.map(np.asarray, params)
    writer = _Writer(config)
    for stack, depth in (
        ("encoder", config.num_layers),
        ("decoder", decoder_layers(config)),
    ):
        for number in range(depth):
            writer.add_layer(f"{stack}_l{number + 1}", params[stack][f"layer_{number}"])
    writer.add_matrices(params, source_ids=ids[0], target_ids=ids[1])
    options = _options_of(config, sizes=[len(side) for side in ids])
    return {**writer.tensors, "special:model.yml": options}


class _Writer:
    """Collects tensors; what touches the residual stream is put into halves."""

    def __init__(self, config: TransformerConfig):
        self.tensors: Tensors = {}
        self._config = config
        self._order = np.argsort(interleaved_from_halves(config.d_model))

    def add_layer(self, prefix: str, layer: Params) -> None:
        names = {"self_attention": "self", "cross_attention": "context"}
        for ours, theirs in names.items():
            if ours in layer:
                self._add_attention(f"{prefix}_{theirs}", layer[ours])
                norm = f"{prefix}_{theirs}_Wo_ln"
                self.add_norm(norm, layer[f"{ours}_norm"])
        inner, outer = (layer["feed_forward"][name] for name in ("inner", "outer"))
        self._add(f"{prefix}_ffn_W1", inner["kernel"][self._order])
        self._add(f"{prefix}_ffn_b1", inner["bias"][None])
        self._add(f"{prefix}_ffn_W2", outer["kernel"][:, self._order])
        self._add(f"{prefix}_ffn_b2", outer["bias"][None, self._order])
        self.add_norm(f"{prefix}_ffn_ffn_ln", layer["feed_forward_norm"])

    def add_norm(self, name: str, norm: Params) -> None:
        for part in ("scale", "bias"):
            self._add(f"{name}_{part}", norm[part][None, self._order])

    def add_matrices(
        self, params: Params, *, source_ids: Sequence[int], target_ids: Sequence[int]
    ) -> None:
        tying = self._config.tying
        if tying == "all":
            self._add_table("Wemb", params["embedding"], target_ids)
        else:
            self._add_table("encoder_Wemb", params["source_embedding"], source_ids)
            self._add_table("decoder_Wemb", params["target_embedding"], target_ids)
        output = params[_OUTPUTS[tying]]
        if tying == "none":
            self._add_table("decoder_ff_logit_out_Wt", output, target_ids)
        bias = output.get("bias", np.zeros(len(output["table"]), np.float32))
        self._add("decoder_ff_logit_out_b", bias[None, list(target_ids)])

    def _add_attention(self, prefix: str, attention: Params) -> None:
        d_model = self._config.d_model
        for name in ("query", "key", "value", "output"):
            kernel = attention[name]["kernel"].reshape(d_model, d_model)
            bias = attention[name].get("bias", np.zeros(d_model, np.float32)).ravel()
            if name == "output":
                kernel, bias = kernel[:, self._order], bias[self._order]
            else:
                kernel = kernel[self._order]
            self._add(f"{prefix}_W{name[0]}", kernel)
            self._add(f"{prefix}_b{name[0]}", bias[None])

    def _add_table(self, name: str, part: Params, ids: Sequence[int]) -> None:
        self._add(name, part["table"][list(ids)][:, self._order])

    def _add(self, name: str, array: npt.NDArray[Any]) -> None:
        self.tensors[name] = np.ascontiguousarray(array, np.float32)


def _options_of(config: TransformerConfig, *, sizes: Sequence[int]) -> npt.NDArray[Any]:
    options = {
        **_OPTIONS,
        "dec-depth": decoder_layers(config),
        "dim-emb": config.d_model,
        "dim-vocabs": list(sizes),
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
    # A JSON value is one of YAML.
    lines = (f"{key}: {json.dumps(options[key])}\n" for key in sorted(options))
    text = "".join(lines).rstrip("\n").encode() + b"\0"
    padding = -len(text) % _ALIGNMENT
    return np.frombuffer(text + padding * b"\0", np.int8)


def write_npz(path: Path, tensors: Tensors) -> None:
    """Writes tensors, without compression, and the same bytes every time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in tensors.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=array.nbytes >= 1 << 31) as file:
                np.lib.format.write_array(file, array, version=(1, 0))
