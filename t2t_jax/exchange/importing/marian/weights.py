"""The weights of Marian's Transformers: `model.npz`, with the options of training.

Of `special:model.yml`, which is padded with NULs, everything that changes the outputs
is read or refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_jax.errors import DataError, short_repr
from t2t_jax.exchange.importing.imported import require_values, sizes_of
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    Source,
)
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
    "transformer-attention-mask": ("default",),
    "transformer-postprocess-emb": ("d", ""),
    **dict.fromkeys(("transformer-tied-layers", "input-types"), ([], None)),
    **dict.fromkeys(("lemma-dim-emb", "factors-dim-emb"), (0,)),
    **dict.fromkeys(
        (
            *("transformer-no-projection", "transformer-no-affine"),
            *("transformer-no-bias", "transformer-rnn-projection", "transformer-pool"),
            *("transformer-disable-position-embeddings", "layer-normalization"),
            *("right-left", "skip", "ulr"),
        ),
        (False,),
    ),
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
    require_values(options, _REQUIRED, name=name)
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
    learned, shared = "Wpos" in tensors, "Wemb" in tensors
    # A vocabulary can have fewer pieces than `dim-vocabs` allows.
    source, target = (
        _rows(tensors, "Wemb" if shared else f"{stack}_Wemb", name=name)
        for stack in ("encoder", "decoder")
    )
    return {
        **sizes_of(options, _SIZES, name=name),
        "vocab_size": target,
        "source_vocab_size": 0 if shared else source,
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
    suffix = "_pre" if config["norm_position"] == "pre" else ""

    def take(path: str, kind: str, *shape: int) -> Array:
        name = marian_name(path, kind)
        if kind == "kernel":
            return source.take(name, *shape)
        if path.count("/") == 2 and path.endswith("_norm"):
            name += suffix
        row: Array = source.take(name, 1, *shape)[0]
        return row

    tree = ParameterTree(config)
    tree.add_stacks(take)
    _add_matrices(source, tree, config, ids=ids)
    source.check_all_taken(ignored=(_OPTIONS,))
    return tree.params


_PARTS = {
    **{
        f"{ours}/{name}": f"{theirs}_{{}}{name[0]}"
        for ours, theirs in (("self_attention", "self"), ("cross_attention", "context"))
        for name in ("query", "key", "value", "output")
    },
    "self_attention_norm": "self_Wo_ln_{}",
    "cross_attention_norm": "context_Wo_ln_{}",
    "feed_forward/inner": "ffn_{}1",
    "feed_forward/outer": "ffn_{}2",
    "feed_forward_norm": "ffn_ffn_ln_{}",
}
"""Parts of a layer of ours, and their names."""


def marian_name(path: str, kind: str) -> str:
    """Returns the name of the tensor of a part; see `layout.Take`.

    Example:
      >>> marian_name("decoder/layer_1/cross_attention/key", "kernel")
      'decoder_l2_context_Wk'
    """
    stack, layer, *part = path.split("/")
    if not part:
        return f"{stack}_top_ln_{kind}"
    is_norm = path.endswith("_norm")
    word = kind if is_norm else {"kernel": "W", "bias": "b"}[kind]
    number = int(layer.removeprefix("layer_")) + 1
    return f"{stack}_l{number}_{_PARTS['/'.join(part)].format(word)}"


def _add_matrices(
    source: Source,
    tree: ParameterTree,
    config: Mapping[str, Any],
    *,
    ids: Mapping[str, Sequence[int | None]],
) -> None:
    """Adds the vocabulary matrices and learned positions."""
    d_model, size, tying = config["d_model"], config["vocab_size"], config["tying"]
    own_size = config["source_vocab_size"]
    if tying == "all":
        rows = source.take("Wemb", size, d_model)
        tree.add_table("embedding", rows, ids=ids["target"])
    else:
        for side, stack, rows_of in (
            ("source", "encoder", own_size or size),
            ("target", "decoder", size),
        ):
            name = f"{stack}_Wemb" if own_size else "Wemb"
            rows = source.take(name, rows_of, d_model)
            tree.add_table(f"{side}_embedding", rows, ids=ids[side])
    if tying == "none":
        if "decoder_ff_logit_out_W" in source:
            rows = source.take("decoder_ff_logit_out_W", d_model, size).T
        else:
            rows = source.take("decoder_ff_logit_out_Wt", size, d_model)
        tree.add_table("pre_softmax", rows, ids=ids["target"])
    if config["output_bias"]:
        bias = source.take("decoder_ff_logit_out_b", 1, size)[0]
        tree.add_output_bias(_OUTPUT_TABLES[tying], bias, ids=ids["target"])
    if config["positions"] == "learned":
        table = source.take("Wpos", config["max_positions"], d_model)
        for stack in ("encoder", "decoder"):
            tree.add_table(f"{stack}/positions/learned", table)
