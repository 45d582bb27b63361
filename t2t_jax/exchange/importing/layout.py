"""Puts a foreign Transformer's weights into this package's parameter tree.

Other toolkits write the sines of a position into the first half of a vector and the
cosines into the second; the paper's interleave. The two differ by the order of the
coordinates, so every matrix and vector that touches the residual stream is permuted,
and the outputs are the same.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flax.traverse_util import unflatten_dict

from t2t_jax.errors import DataError
from t2t_jax.exchange.importing.vocabularies import Ids
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import BOS, EOS, PAD, Params

Array: TypeAlias = npt.NDArray[np.float32]

_MAX_LISTED = 5


class Source(dict[str, npt.NDArray[Any]]):
    """Tensors by name.

    Args:
      tensors: of any type of numbers; checked, as a file may hold anything.

    Attributes:
      name: of the file, for messages.

    Raises:
      DataError: they are something else.
    """

    def __init__(self, tensors: Any, *, name: str):
        if not isinstance(tensors, dict) or not all(
            isinstance(key, str) and isinstance(one, np.ndarray)
            for key, one in tensors.items()
        ):
            raise DataError(f"{name} has no tensors by name. Pass a complete model.")
        super().__init__(tensors)
        self.name = name
        self._taken: set[str] = set()

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Returns the shape of a tensor.

        Raises:
          DataError: the model does not have it.
        """
        if tensor not in self:
            raise DataError(
                f"{self.name} has no tensor {tensor}. Pass a complete model."
            )
        return self[tensor].shape

    def take(self, tensor: str, *shape: int) -> Array:
        """Returns a tensor as float32.

        Args:
          shape: the expected shape.

        Raises:
          DataError: the model does not have it, it has another shape, or its numbers
            are not finite.
        """
        if (found := self.shape(tensor)) != shape:
            raise DataError(
                f"{self.name}: {tensor} must have shape {shape} by its configuration, "
                f"and has {found}. Pass the files of one model."
            )
        self._taken.add(tensor)
        array = np.asarray(self[tensor], np.float32)
        if not np.isfinite(array).all():
            raise DataError(
                f"{self.name}: {tensor} has infinities or NaN. Pass another checkpoint."
            )
        return array

    def take_equal(self, names: Sequence[str], *shape: int) -> Array:
        """Returns a tensor that may be there under several names.

        Raises:
          DataError: as in `take`; or those that are there differ.
        """
        known = [name for name in names if name in self] or names[:1]
        first, *others = (self.take(name, *shape) for name in known)
        if not all(np.array_equal(first, other) for other in others):
            raise DataError(
                f"{self.name}: {', '.join(known)} must be equal by its configuration, "
                "and differ. Pass the files of one model."
            )
        return first

    def check_all_taken(self, *, ignored: Iterable[str] = ()) -> None:
        """Checks that no tensor is left over, which would make another model.

        Args:
          ignored: tensors without an effect on the outputs.

        Raises:
          DataError: tensors are left over.
        """
        left = sorted(set(self) - self._taken - set(ignored))
        if left:
            more = f" and {len(left) - _MAX_LISTED:,} more" * (len(left) > _MAX_LISTED)
            raise DataError(
                f"{self.name} has tensors that a Transformer of its configuration "
                f"does not: {', '.join(left[:_MAX_LISTED])}{more}. Pass another model."
            )


# A logit whose exponential is 0 in float32. Not -inf: label smoothing adds up logits,
# and quantization cannot scale it.
NO_PROBABILITY = -200.0


def interleaved_from_halves(d_model: int) -> npt.NDArray[np.intp]:
    """Returns which coordinate of halves each coordinate of pairs is.

    Example:
      >>> interleaved_from_halves(6).tolist()
      [0, 3, 1, 4, 2, 5]
    """
    return np.arange(d_model).reshape(2, -1).T.ravel()


_Shapes: TypeAlias = dict[str, tuple[int, ...]]


PARTS = (
    "self_attention/query self_attention/key self_attention/value "
    "self_attention/output self_attention_norm cross_attention/query "
    "cross_attention/key cross_attention/value cross_attention/output "
    "cross_attention_norm feed_forward/inner feed_forward/outer feed_forward_norm"
).split()
"""The parts of a layer of the decoder; the encoder's has no cross-attention."""


def part_names(names: str) -> dict[str, str]:
    """Returns a toolkit's names of `PARTS`, which are given in this order."""
    return dict(zip(PARTS, names.split(), strict=True))


def parts_of(config: Mapping[str, Any]) -> Iterator[tuple[str, _Shapes]]:
    """Yields the parts of both stacks: their paths, and the shapes of their arrays.

    The shapes are those of other toolkits, which join the heads.

    Args:
      config: values of `config.model` by key.
    """
    d_model, d_ff, heads = (config[key] for key in ("d_model", "d_ff", "num_heads"))
    keys, values = (d_model, heads * config["d_k"]), (d_model, heads * config["d_v"])
    shapes = {"query": keys, "key": keys, "value": values, "output": values[::-1]}
    shapes |= {"inner": (d_model, d_ff), "outer": (d_ff, d_model)}
    norm: _Shapes = {"scale": (d_model,), "bias": (d_model,)}
    layer = dict.fromkeys(PARTS, norm)
    for part in (one for one in PARTS if "/" in one):
        shape = shapes[part.rpartition("/")[2]]
        has_bias = config.get("attention_biases") or part.startswith("feed_forward")
        layer[part] = {"kernel": shape} | ({"bias": shape[1:]} if has_bias else {})
    depths = (config["num_layers"], config["num_decoder_layers"])
    for stack, depth in zip(("encoder", "decoder"), depths, strict=True):
        for number, (part, one) in product(range(depth or depths[0]), layer.items()):
            if stack == "decoder" or not part.startswith("cross_attention"):
                yield f"{stack}/layer_{number}/{part}", one
        if config.get("norm_position") == "pre":
            yield f"{stack}/final_norm", norm


MATRICES = {
    "all": ("embedding",),
    "decoder": ("source_embedding", "target_embedding"),
    "none": ("source_embedding", "target_embedding", "pre_softmax"),
}
"""Paths of the vocabulary matrices by `model.tying`; the last is that of the logits."""


def take_matrices(
    source: Source,
    config: Mapping[str, Any],
    sizes: tuple[int, int],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    shared: Sequence[str] = (),
) -> dict[str, Array]:
    """Takes the vocabulary matrices [V, D] by our paths.

    One that serves several purposes may be there for each of them.

    Args:
      config: values of `config.model` by key.
      sizes: V of source and target.
      inputs: names of the embeddings of source and target.
      outputs: possible names of the matrix of the logits.
      shared: further names of a matrix for everything.
    """
    names: dict[str, list[Sequence[str]]] = {
        "all": [[*shared, *inputs, *outputs]],
        "decoder": [inputs[:1], [inputs[1], *outputs]],
        "none": [inputs[:1], inputs[1:], outputs],
    }
    paths = MATRICES[config["tying"]]
    width = config["d_model"]
    return {
        path: source.take_equal(equal, sizes[path != "source_embedding"], width)
        for path, equal in zip(paths, names[config["tying"]], strict=True)
    }


def reorder(path: str, kind: str, array: Array, order: npt.NDArray[np.intp]) -> Array:
    """Reorders the axis of an array of a part that touches the residual stream."""
    reads = path.rpartition("/")[2] in ("query", "key", "value", "inner")
    if kind == "kernel":
        return array[order] if reads else array[:, order]
    return array if reads else array[order]


def foreign_layers(
    params: Params, config: TransformerConfig
) -> Iterator[tuple[str, str, Array]]:
    """Yields the arrays of both stacks as other toolkits have them.

    Biases that an attention does not have are zeros.

    Yields:
      Path of a part, "kernel", "scale" or "bias", and the array.
    """
    order = np.argsort(interleaved_from_halves(config.d_model))
    parts = parts_of({**dataclasses.asdict(config), "attention_biases": True})
    for path, shapes in parts:
        part = functools.reduce(dict.__getitem__, path.split("/"), params)
        for kind, shape in shapes.items():
            array = np.asarray(part.get(kind, np.zeros(shape, np.float32)))
            yield path, kind, reorder(path, kind, array.reshape(shape), order)


def foreign_matrices(
    params: Params, config: TransformerConfig
) -> tuple[dict[str, Array], Array]:
    """Returns the vocabulary matrices of another toolkit, and its logits' bias.

    Returns:
      [V, D] by our path, and [V], zeros if the model has none.
    """
    order = np.argsort(interleaved_from_halves(config.d_model))
    paths = MATRICES[config.tying]
    tables = {path: np.asarray(params[path]["table"])[:, order] for path in paths}
    zeros = np.zeros(len(tables[paths[-1]]), np.float32)
    return tables, np.asarray(params[paths[-1]].get("bias", zeros))


Take: TypeAlias = Callable[..., Array]
"""(path of a part, "kernel", "scale" or "bias", *expected shape) -> a toolkit's array.

Kernels are [inputs, outputs], whose heads are contiguous.
"""


def read_params(
    source: Source,
    config: Mapping[str, Any],
    take: Take,
    tables: Mapping[str, Array],
    ids: tuple[Ids, Ids],
    *,
    bias: Array | None = None,
    positions: Mapping[str, Array] | None = None,
    ignored: Iterable[str] = (),
) -> Params:
    """Reads the parameters of a `Transformer`, and checks that no tensor is left over.

    Args:
      config: values of `config.model` by key.
      take: takes the arrays of both stacks from the source.
      tables: vocabulary matrices [V, D] by the paths of `MATRICES`.
      ids: the foreign ids of source and target.
      bias: [V] of the logits, if there is one. Ids that the foreign model does not
        have get no probability.
      positions: learned ones [P, D] by stack, if it has any.
      ignored: tensors without an effect on the outputs.

    Raises:
      DataError: a tensor is missing, has another shape, or is left over.
    """
    order, heads = interleaved_from_halves(config["d_model"]), config["num_heads"]
    params: dict[str, Array] = {}  # each contiguous, so that none keeps the source's
    for path, shapes in parts_of(config):
        name = path.rpartition("/")[2]
        for kind, shape in shapes.items():
            array = reorder(path, kind, take(path, kind, *shape), order)
            if name in ("query", "key", "value"):
                array = array.reshape(*shape[:-1], heads, -1)
            elif name == "output" and kind == "kernel":
                array = array.reshape(heads, -1, shape[-1])
            params[f"{path}/{kind}"] = np.ascontiguousarray(array)
    for path, rows in tables.items():
        own = _select_rows(rows, ids[path != "source_embedding"])
        params[f"{path}/table"] = np.ascontiguousarray(own[:, order])
    for stack, rows in (positions or {}).items():
        learned = np.ascontiguousarray(rows[:, order])
        params[f"{stack}/positions/learned/table"] = learned
    if bias is not None:
        of_target = [*ids[1]]
        if of_target[BOS] in (of_target[PAD], of_target[EOS]):
            of_target[BOS] = None  # A second copy of a row would take probability.
        own = _select_rows(bias, of_target, fill=NO_PROBABILITY)
        params[f"{[*tables][-1]}/bias"] = own
    source.check_all_taken(ignored=ignored)
    return unflatten_dict(params, sep="/")  # type: ignore[no-untyped-call]


def _select_rows(rows: Array, ids: Ids, *, fill: float = 0) -> Array:
    """Selects rows, filled where the id is None."""
    found = np.full((len(ids), *rows.shape[1:]), fill, rows.dtype)
    for number, one in enumerate(ids):
        if one is not None:
            found[number] = rows[one]
    return found


_PARTS = part_names(
    "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.out_proj "
    "self_attn_layer_norm encoder_attn.q_proj encoder_attn.k_proj encoder_attn.v_proj "
    "encoder_attn.out_proj encoder_attn_layer_norm fc1 fc2 final_layer_norm"
)
_STACKED = re.compile(r"(.*)\.([qkv])_proj\.(weight|bias)")
_NORM = re.compile(r"((?:en|de)coder\.layers\.\d+)\.(\w+)_layer_norm\.(weight|bias)")


def torch_name(path: str, kind: str) -> str:
    """Returns the name of the tensor of a part; see `layout.Take`.

    Example:
      >>> torch_name("decoder/layer_1/cross_attention/key", "kernel")
      'decoder.layers.1.encoder_attn.k_proj.weight'
    """
    word = "bias" if kind == "bias" else "weight"
    stack, layer, *part = path.split("/")
    if not part:
        return f"{stack}.layer_norm.{word}"
    number = layer.removeprefix("layer_")
    return f"{stack}.layers.{number}.{_PARTS['/'.join(part)]}.{word}"


def torch_layers(source: Source, *, prefix: str = "") -> Take:
    """Returns what takes the arrays of layers; linear maps are [outputs, inputs].

    Args:
      prefix: of the names of all tensors.
    """

    def take(path: str, kind: str, *shape: int) -> Array:
        name = prefix + torch_name(path, kind)
        stacked, norm = _STACKED.fullmatch(name), _NORM.fullmatch(name)
        if stacked and f"{stacked[1]}.in_proj_weight" in source:
            # In old checkpoints, as are norms without names.
            all_three = f"{stacked[1]}.in_proj_{stacked[3]}"
            rows = source.take(all_three, 3 * shape[-1], *shape[:-1])
            return np.split(rows, 3)["qkv".index(stacked[2])].T
        if norm and f"{norm[1]}.layer_norms.0.weight" in source:
            uses = ["self_attn", "encoder_attn", "final"]
            if norm[1].startswith("encoder"):
                del uses[1]
            name = f"{norm[1]}.layer_norms.{uses.index(norm[2])}.{norm[3]}"
        return source.take(name, *shape[::-1]).T

    return take


def torch_ignored(prefix: str = "") -> list[str]:
    """Returns tensors of torch without an effect: versions, and computed sinusoids.

    Args:
      prefix: of the names of all tensors.
    """
    names = ("version", "embed_positions._float_tensor", "embed_positions.weights")
    stacks = (f"{prefix}{stack}" for stack in ("encoder", "decoder"))
    return [f"{stack}.{name}" for stack, name in product(stacks, names)]
