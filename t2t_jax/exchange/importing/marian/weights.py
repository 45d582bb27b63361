"""The weights of Marian's Transformers: `model.npz`, with the options of training.

Of `special:model.yml`, which is padded with NULs, everything that changes the outputs
is read or refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_jax.errors import DataError, short_repr
from t2t_jax.exchange.importing.layout import (
    Affine,
    Array,
    ParameterTree,
    interleaved_from_halves,
    read_stacks,
)
from t2t_jax.exchange.importing.source import Source
from t2t_jax.exchange.readers.npz import read_npz
from t2t_jax.exchange.readers.yaml_file import parse_yaml
from t2t_jax.model.config import is_size
from t2t_jax.types import Params

_OPTIONS = "special:model.yml"
_LAYER_NORM_EPSILON = 1e-6

# Options whose other values would be another model.
_REQUIRED: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-no-affine": (False,),
    "transformer-no-bias": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-pool": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-disable-position-embeddings": (False,),
    "transformer-tied-layers": ([], None),
    "transformer-postprocess-emb": ("d", ""),
    "input-types": ([], None),
    "layer-normalization": (False,),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "right-left": (False,),
    "skip": (False,),
    "ulr": (False,),
}
_SIZES = {
    "d_model": "dim-emb",
    "num_heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "num_layers": "enc-depth",
    "num_decoder_layers": "dec-depth",
}
"""Keys of `config.model`, and Marian's options."""

_NORM_POSITIONS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
_OUTPUT_TABLES = {
    "all": "embedding",
    "decoder": "target_embedding",
    "none": "pre_softmax",
}
# Its gelu is the exact one: measured with 1.12.42 on a CPU.
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "gelu": "gelu"}


class MarianWeights:
    """The tensors and options of a model of Marian.

    Attributes:
      config: values of `config.model` by key, and `vocab_size`, `source_vocab_size`.

    Raises:
      DataError: the file is not a Transformer of Marian, or of an unsupported kind.
      UserError: a package is not installed.
    """

    def __init__(self, path: Path):
        tensors = read_npz(path)
        self._name = str(path)
        options = _read_options(tensors, name=self._name)
        self.config = _config_of(options, tensors, name=self._name)
        self._source = Source(tensors, name=self._name)

    def params(
        self, *, source_ids: Sequence[int | None], target_ids: Sequence[int | None]
    ) -> Params:
        """Returns the parameters of `Transformer`, nested dict of float32.

        Args:
          source_ids: the foreign id of each of our ids of the source; None for those
            that Marian does not have.
          target_ids: as `source_ids`; the same if the matrices are.

        Raises:
          DataError: tensors are missing, left over, or of other shapes.
        """
        ids = {"source": source_ids, "target": target_ids}
        return _params_of(self._source, self.config, ids=ids)


def _read_options(tensors: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    if _OPTIONS not in tensors:
        raise DataError(f"{name} has no {_OPTIONS}. Pass a model of Marian.")
    content = tensors[_OPTIONS].tobytes().rstrip(b"\0")
    return parse_yaml(content, name=f"{name}: {_OPTIONS}")


def _config_of(
    options: Mapping[str, Any], tensors: Mapping[str, Any], *, name: str
) -> dict[str, Any]:
    for option, supported in _REQUIRED.items():
        if options.get(option, supported[0]) not in supported:
            raise DataError(
                f"{name}: models with {option}={short_repr(options[option])} are not "
                f"supported, only {supported[0]!r}."
            )
    around = tuple(
        _word(options.get(f"transformer-{place}") or "")
        for place in ("preprocess", "postprocess", "postprocess-top")
    )
    activation = _word(options.get("transformer-ffn-activation", "swish"))
    if around not in _NORM_POSITIONS or activation not in _ACTIVATIONS:
        raise DataError(
            f"{name}: models with preprocess, postprocess and postprocess-top {around} "
            f"and activation {activation!r} are not supported."
        )
    learned = "Wpos" in tensors
    return {
        **_sizes_of(options, tensors, name=name),
        "norm_position": _NORM_POSITIONS[around],
        "activation": _ACTIVATIONS[activation],
        "attention_biases": True,
        "output_bias": not options.get("output-omit-bias", False),
        "positions": "learned" if learned else "sinusoidal",
        "position_rates": "tensor2tensor",
        "scale_embeddings": not learned,
        **({"max_positions": _rows(tensors, "Wpos", name=name)} if learned else {}),
        "start": "zero",
        "tying": _tying_of(options),
        "layer_norm_epsilon": _LAYER_NORM_EPSILON,
    }


def _word(value: Any) -> str:
    # A few aliases of YAML can make billions of characters.
    return value[:100] if isinstance(value, str) else short_repr(value)


def _rows(tensors: Mapping[str, Any], tensor: str, *, name: str) -> int:
    shape: tuple[int, ...] = tensors[tensor].shape if tensor in tensors else ()
    if len(shape) != 2 or not is_size(shape[0]):
        raise DataError(
            f"{name} must have a matrix {tensor}, and has one of shape {shape}. Pass a "
            "complete model."
        )
    return int(shape[0])


def _sizes_of(
    options: Mapping[str, Any], tensors: Mapping[str, Any], *, name: str
) -> dict[str, int]:
    sizes = {key: options.get(option) for key, option in _SIZES.items()}
    for key, option in _SIZES.items():
        if not is_size(sizes[key]):
            raise DataError(
                f"{name}: its option {option} is {short_repr(sizes[key])}, which is "
                "not a size of a model. Pass a complete model."
            )
    d_model, heads = options["dim-emb"], options["transformer-heads"]
    if d_model % 2 or d_model % heads:
        raise DataError(
            f"{name}: its option dim-emb={d_model} must be even, and divisible by "
            f"transformer-heads={heads}. Pass a complete model."
        )
    # A vocabulary can have fewer pieces than `dim-vocabs` allows.
    shared = "Wemb" in tensors
    source, target = (
        _rows(tensors, "Wemb" if shared else f"{stack}_Wemb", name=name)
        for stack in ("encoder", "decoder")
    )
    return {
        **{key: options[option] for key, option in _SIZES.items()},
        "vocab_size": target,
        "source_vocab_size": 0 if shared else source,
        "d_k": d_model // heads,
        "d_v": d_model // heads,
    }


def _tying_of(options: Mapping[str, Any]) -> str:
    if options.get("tied-embeddings-all"):
        return "all"
    return "decoder" if options.get("tied-embeddings") else "none"


def _params_of(
    source: Source,
    config: Mapping[str, Any],
    *,
    ids: Mapping[str, Sequence[int | None]],
) -> Params:
    d_model, num_heads = config["d_model"], config["num_heads"]
    tree = ParameterTree(num_heads=num_heads, order=interleaved_from_halves(d_model))
    reader = _Reader(source, tree, config)
    names = ("self", "context")
    read_stacks(reader, config, attentions=names, final_norm="{stack}_top_ln")
    reader.add_matrices(ids)
    source.check_all_taken(ignored=(_OPTIONS,))
    return tree.params


class _Reader:
    """Reads Marian's tensors, by their names, into a tree."""

    def __init__(self, source: Source, tree: ParameterTree, config: Mapping[str, Any]):
        self._source, self._tree, self._config = source, tree, config
        self._d_model, self._d_ff = config["d_model"], config["d_ff"]

    def add_layer(
        self, stack: str, number: int, *, attentions: Mapping[str, str]
    ) -> None:
        """Adds a layer."""
        ours, theirs = f"{stack}/layer_{number}", f"{stack}_l{number + 1}"
        pre = "_pre" if self._config["norm_position"] == "pre" else ""
        for name, short in attentions.items():
            prefix = f"{theirs}_{short}"
            self._tree.add_attention(
                f"{ours}/{name}",
                query=self._projection(prefix, "q"),
                key=self._projection(prefix, "k"),
                value=self._projection(prefix, "v"),
                output=self._projection(prefix, "o"),
            )
            self.add_norm(f"{ours}/{name}_norm", f"{prefix}_Wo_ln", suffix=pre)
        prefix, d_model, d_ff = f"{theirs}_ffn", self._d_model, self._d_ff
        self._tree.add_feed_forward(
            f"{ours}/feed_forward",
            w1=self._source.take(f"{prefix}_W1", d_model, d_ff),
            b1=self._source.take(f"{prefix}_b1", 1, d_ff)[0],
            w2=self._source.take(f"{prefix}_W2", d_ff, d_model),
            b2=self._source.take(f"{prefix}_b2", 1, d_model)[0],
        )
        self.add_norm(f"{ours}/feed_forward_norm", f"{prefix}_ffn_ln", suffix=pre)

    def add_norm(self, ours: str, theirs: str, *, suffix: str = "") -> None:
        """Adds a layer normalization."""
        scale, bias = (
            self._source.take(f"{theirs}_{name}{suffix}", 1, self._d_model)[0]
            for name in ("scale", "bias")
        )
        self._tree.add_norm(ours, scale=scale, bias=bias)

    def add_matrices(self, ids: Mapping[str, Sequence[int | None]]) -> None:
        """Adds the vocabulary matrices and learned positions."""
        config, source, tree = self._config, self._source, self._tree
        size, tying = config["vocab_size"], config["tying"]
        if tying == "all":
            tree.add_table("embedding", self._table("Wemb", size), ids=ids["target"])
        else:
            self._add_two_tables(ids)
        if tying == "none":
            transposed = "decoder_ff_logit_out_W" in source
            name = "decoder_ff_logit_out_W" + "t" * (not transposed)
            rows = self._table(name, size, transposed)
            tree.add_table("pre_softmax", rows, ids=ids["target"])
        if config["output_bias"]:
            bias = source.take("decoder_ff_logit_out_b", 1, size)[0]
            tree.add_output_bias(_OUTPUT_TABLES[tying], bias, ids=ids["target"])
        if config["positions"] == "learned":
            table = source.take("Wpos", config["max_positions"], self._d_model)
            for stack in ("encoder", "decoder"):
                tree.add_table(f"{stack}/positions/learned", table)

    def _add_two_tables(self, ids: Mapping[str, Sequence[int | None]]) -> None:
        shared = not self._config["source_vocab_size"]
        for side, stack in (("source", "encoder"), ("target", "decoder")):
            size = self._config["source_vocab_size"] if side == "source" else 0
            name = "Wemb" if shared else f"{stack}_Wemb"
            table = self._table(name, size or self._config["vocab_size"])
            self._tree.add_table(f"{side}_embedding", table, ids=ids[side])

    def _table(self, name: str, size: int, transposed: bool = False) -> Array:
        if transposed:
            return self._source.take(name, self._d_model, size).T
        return self._source.take(name, size, self._d_model)

    def _projection(self, prefix: str, letter: str) -> Affine:
        d_model = self._d_model
        return Affine(
            self._source.take(f"{prefix}_W{letter}", d_model, d_model),
            self._source.take(f"{prefix}_b{letter}", 1, d_model)[0],
        )
