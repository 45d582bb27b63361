"""The axis letters, and the types shared by all packages.

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

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""The special ids of every vocabulary."""

Params: TypeAlias = Any
"""Nested dicts of float32 arrays, as `Transformer.init` returns in "params"."""

PyTree: TypeAlias = Any
"""Nested containers with arrays at the leaves."""


class Batch(NamedTuple):
    """A batch of sentence pairs, packed or padded.

    A row holds one or more pairs. Both sides of a pair have the same segment number,
    counted from 1 in each row; 0 marks padding. All arrays are int32.

    Attributes:
      source: [B, S] subwords of each sentence, then eos.
      target_inputs: [B, T] bos, then the subwords: the decoder's input.
      target_outputs: [B, T] the subwords, then eos: the decoder's targets.
      source_segments: [B, S] segment numbers.
      target_segments: [B, T] segment numbers.
      source_positions: [B, S] position inside the segment, from 0.
      target_positions: [B, T] position inside the segment, from 0.
      rows: [B] the row's number in the global batch; dropout depends on it, so that
        a row gets the same mask on any device.

    Example:
      >>> import numpy as np
      >>> tokens = np.ones((2, 5), np.int32)
      >>> Batch(*[tokens] * 7, rows=np.arange(2)).target_outputs.shape
      (2, 5)
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
    """The position of a run in its data, the complete state of the input pipeline.

    Attributes:
      epoch: passes over the corpus completed.
      batch: batches of this epoch consumed.
    """

    epoch: int
    batch: int


@dataclass(frozen=True, kw_only=True)
class BatchShard:
    """One of several equal shards of every batch, of contiguous rows.

    Attributes:
      index: of the shard, from 0.
      count: number of shards.
    """

    index: int = 0
    count: int = 1

    def rows_of(self, rows: int) -> slice:
        """Returns the rows of this shard, of so many in all.

        Raises:
          ValueError: the rows are not divisible by `count`.

        Example:
          >>> BatchShard(index=1, count=2).rows_of(8)
          slice(4, 8, None)
        """
        if rows % self.count:
            raise ValueError(
                f"rows={rows} must be divisible by {self.count} shards. Add rows."
            )
        part = rows // self.count
        return slice(self.index * part, (self.index + 1) * part)


class StepModel(Protocol):
    """The model interface of decoding, for any architecture.

    Implementations are pytrees (their arrays are leaves), so that a search can be
    jitted with the model as an argument. Every array of the memory and of the cache
    starts with axis B; only the cache has an axis for beams.

    A model may also have a `source_size`, the size of its source vocabulary: then
    the search functions reject other tokens. And `restricted(ids_C)` for
    `decoding.shortlist`, which returns a model of these target ids alone.
    """

    def encode(self, source_BxS: Array) -> PyTree:
        """Encodes source tokens (pad = 0); every leaf starts with axis B."""

    def init_cache(self, memory: PyTree, num_beams: int, length: int) -> PyTree:
        """Allocates the state of `num_beams` beams for `length` target positions."""

    def step(
        self, tokens_BxW: Array, memory: PyTree, cache: PyTree, position: Array
    ) -> tuple[Array, PyTree]:
        """Decodes one token per beam at `position`: (logits_BxWxV, new cache).

        The cache keeps its tree, shapes and dtypes, but for a note of `reorder`.
        """

    def reorder(self, cache: PyTree, parents_BxW: Array) -> PyTree:
        """Replaces the state of beam w of sentence b by that of `parents_BxW[b, w]`.

        It may defer the work to the next `step`, with a note in the cache.
        """

    def grow(self, cache: PyTree, length: int) -> PyTree:
        """Grows the cache to `length` positions (the identity for an RNN)."""
