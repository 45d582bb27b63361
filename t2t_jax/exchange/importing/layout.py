"""Puts a foreign Transformer's weights into this package's parameter tree.

Other toolkits write the sines of a position into the first half of a vector and the
cosines into the second; the paper's interleave. The two differ by the order of the
coordinates, so every matrix and vector that touches the residual stream is permuted,
and the outputs are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float32]

# A logit whose exponential is 0 in float32. Not -inf: label smoothing adds up logits.
_NO_PROBABILITY = -200.0


def interleaved_from_halves(d_model: int) -> npt.NDArray[np.intp]:
    """Returns which coordinate of halves each coordinate of pairs is.

    Example:
      >>> interleaved_from_halves(6).tolist()
      [0, 3, 1, 4, 2, 5]
    """
    return np.arange(d_model).reshape(2, -1).T.ravel()


def our_ids(
    size: int,
    *,
    eos: int,
    unk: int | None,
    bos: int | None = None,
    pad: int | None = None,
) -> list[int | None]:
    """Returns the foreign id of each of our ids: pad, bos, eos, unk, and the rest.

    Args:
      size: of the foreign vocabulary.
      eos, unk, bos, pad: foreign ids; None for one that it does not have.

    Example:
      >>> our_ids(5, eos=0, unk=1)
      [None, None, 0, 1, 2, 3, 4]
    """
    special = (pad, bos, eos, unk)
    return [*special, *(number for number in range(size) if number not in special)]


class Affine(NamedTuple):
    """A linear map [inputs, outputs] and its bias [outputs], or None."""

    kernel: Array
    bias: Array | None = None


class LayerReader(Protocol):
    """Reads a toolkit's tensors, by their names, into a `ParameterTree`."""

    def add_layer(
        self, stack: str, number: int, *, attentions: Mapping[str, str]
    ) -> None:
        """Adds a layer; `attentions` has our names of its attentions, and theirs."""
        ...

    def add_norm(self, ours: str, theirs: str) -> None:
        """Adds a layer normalization."""
        ...


def read_stacks(
    reader: LayerReader,
    config: Mapping[str, Any],
    *,
    attentions: tuple[str, str],
    final_norm: str,
) -> None:
    """Reads the layers of encoder and decoder, and the final norms of a pre-norm model.

    Args:
      config: values of `config.model` by key.
      attentions: the toolkit's names of self-attention and of cross-attention.
      final_norm: its name of a final norm, with `{stack}` for encoder or decoder.
    """
    to_self = {"self_attention": attentions[0]}
    both = to_self | {"cross_attention": attentions[1]}
    for number in range(config["num_layers"]):
        reader.add_layer("encoder", number, attentions=to_self)
    for number in range(config["num_decoder_layers"]):
        reader.add_layer("decoder", number, attentions=both)
    if config["norm_position"] == "pre":
        for stack in ("encoder", "decoder"):
            theirs = final_norm.replace("{stack}", stack)  # The rest may have braces.
            reader.add_norm(f"{stack}/final_norm", theirs)


class ParameterTree:
    """Parameters of a `Transformer`, by their paths.

    Args:
      num_heads: of every attention.
      order: [D] which coordinate of the foreign residual stream each of ours is; None
        for the same.

    Attributes:
      params: nested dict of float32 arrays.
    """

    def __init__(self, *, num_heads: int, order: npt.NDArray[np.intp] | None = None):
        self.params: dict[str, Any] = {}
        self._num_heads = num_heads
        self._order: Any = slice(None) if order is None else order

    def add_attention(
        self, path: str, *, query: Affine, key: Affine, value: Affine, output: Affine
    ) -> None:
        """Adds an attention, whose heads are contiguous in the foreign projections."""
        for name, (kernel, bias) in {
            "query": query,
            "key": key,
            "value": value,
        }.items():
            heads = (self._num_heads, kernel.shape[1] // self._num_heads)
            self._add(
                f"{path}/{name}",
                kernel=kernel[self._order].reshape(len(kernel), *heads),
                bias=None if bias is None else bias.reshape(heads),
            )
        kernel, bias = output
        heads = (self._num_heads, len(kernel) // self._num_heads)
        self._add(
            f"{path}/output",
            kernel=kernel[:, self._order].reshape(*heads, -1),
            bias=None if bias is None else bias[self._order],
        )

    def add_feed_forward(
        self, path: str, *, w1: Array, b1: Array, w2: Array, b2: Array
    ) -> None:
        """Adds a feed-forward network of equation 2's names."""
        self._add(f"{path}/inner", kernel=w1[self._order], bias=b1)
        self._add(f"{path}/outer", kernel=w2[:, self._order], bias=b2[self._order])

    def add_norm(self, path: str, *, scale: Array, bias: Array) -> None:
        """Adds a layer normalization."""
        self._add(path, scale=scale[self._order], bias=bias[self._order])

    def add_table(
        self, path: str, rows: Array, *, ids: Sequence[int | None] | None = None
    ) -> None:
        """Adds a matrix of embeddings or positions [rows, D].

        Args:
          ids: the foreign id of each row of ours, None for zeros; None for the same.
        """
        self._add(path, table=select_rows(rows, ids)[:, self._order])

    def add_output_bias(
        self, path: str, bias: Array, *, ids: Sequence[int | None] | None = None
    ) -> None:
        """Adds the bias [V] of the logits to a matrix; `ids` as in `add_table`.

        Ids that the foreign model does not have get no probability.
        """
        self._add(path, bias=select_rows(bias, ids, fill=_NO_PROBABILITY))

    def _add(self, path: str, **arrays: Array | None) -> None:
        node = self.params
        for name in path.split("/"):
            node = node.setdefault(name, {})
        for name, array in arrays.items():
            if array is not None:
                node[name] = np.ascontiguousarray(array)


def select_rows(
    rows: Array, ids: Sequence[int | None] | None, *, fill: float = 0
) -> Array:
    """Selects rows, filled where the id is None."""
    if ids is None:
        return rows
    found = np.full((len(ids), *rows.shape[1:]), fill, rows.dtype)
    for number, one in enumerate(ids):
        if one is not None:
            found[number] = rows[one]
    return found
