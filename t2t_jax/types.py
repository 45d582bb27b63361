"""The legend of axis letters, and the few types that every floor shares.

Axis letters, used in names (`scores_BxHxQxK`), docstrings, errors and tests:

=====  ==========================================================================
`B`    rows of a batch (sentences, or packed rows of several sentences)
`S`    source length, in subwords
`T`    target length, in subwords
`L`    either length
`Q`    query length inside attention
`K`    key and value length inside attention
`D`    d_model, the width of the model
`F`    d_ff, the inner width of the feed-forward network
`H`    heads
`Dk`   depth of a head's queries and keys
`Dv`   depth of a head's values
`Dh`   d_hidden, the width of a recurrent decoder's state
`V`    vocabulary size
`W`    beams
`N`    layers
`...`  any leading axes
=====  ==========================================================================

JAX is imported only for type checking, so this file costs nothing to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import jax
    import numpy as np

    Array: TypeAlias = jax.Array | np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any

Params: TypeAlias = Any
"""Nested dicts of float32 arrays: what `Transformer.init` returns as "params"."""

PyTree: TypeAlias = Any
"""Any nest of containers with arrays at the leaves."""


class Batch(NamedTuple):
    """One batch of sentence pairs, packed or padded, as every floor understands it.

    A row holds one or more pairs. The parts of a pair share a segment number on both
    sides, counted from 1 in each row; 0 marks padding. All arrays are int32.

    Attributes:
      source: [B, S] subwords of each sentence, then eos.
      target_inputs: [B, T] bos, then the subwords: what the decoder reads.
      target_outputs: [B, T] the subwords, then eos: what the decoder must say.
      source_segments: [B, S] segment numbers.
      target_segments: [B, T] segment numbers.
      source_positions: [B, S] position inside the segment, from 0.
      target_positions: [B, T] position inside the segment, from 0.
      rows: [B] the row's number in the global batch; dropout depends on it, so that
        a row is dropped alike wherever it is computed.
    """

    source: Array
    target_inputs: Array
    target_outputs: Array
    source_segments: Array
    target_segments: Array
    source_positions: Array
    target_positions: Array
    rows: Array


class DataPosition(NamedTuple):
    """Where a run stands in its data: all that there is to save of the input.

    Attributes:
      epoch: passes over the corpus already completed.
      batch: batches of this epoch already consumed.
    """

    epoch: int
    batch: int


@dataclass(frozen=True, kw_only=True)
class BatchShard:
    """One of several equal parts of every batch, whose rows stand side by side.

    Attributes:
      index: which, from 0.
      count: into how many parts a batch is split.
    """

    index: int = 0
    count: int = 1

    def rows_of(self, rows: int) -> slice:
        """Returns its part of so many rows.

        Raises:
          ValueError: the parts would not be equal.

        Example:
          >>> BatchShard(index=1, count=2).rows_of(8)
          slice(4, 8, None)
        """
        if rows % self.count:
            raise ValueError(
                f"rows={rows} must be divisible by the {self.count} parts of a batch. "
                "Add empty rows."
            )
        part = rows // self.count
        return slice(self.index * part, (self.index + 1) * part)


class StepModel(Protocol):
    """What decoding needs of a model, whatever its architecture.

    Implementations are pytrees (their arrays are leaves), so that a search can be
    jitted with the model as an argument. Nothing here is tiled by beam but the cache.

    A model may have a `source_size` besides, the number of tokens of its source: then
    the search functions refuse others.
    """

    def encode(self, source_BxS: Array) -> PyTree:
        """Reads source tokens (pad = 0) once; every leaf starts with axis B."""
        ...

    def init_cache(self, memory: PyTree, num_beams: int, length: int) -> PyTree:
        """Makes the state of W = `num_beams` beams for `length` target positions."""
        ...

    def step(
        self, tokens_BxW: Array, memory: PyTree, cache: PyTree, position: Array
    ) -> tuple[Array, PyTree]:
        """Reads one token per beam at `position`: (logits_BxWxV, new cache)."""
        ...

    def reorder(self, cache: PyTree, parents_BxW: Array) -> PyTree:
        """Gives beam w of sentence b the state of beam `parents_BxW[b, w]`.

        It may put the work off to the next `step`, if the cache tells that it is due.
        """
        ...

    def grow(self, cache: PyTree, length: int) -> PyTree:
        """Makes room for `length` positions in all (the identity for an RNN)."""
        ...
