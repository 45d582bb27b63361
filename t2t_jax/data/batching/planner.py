"""Plans epochs: which pairs are in which row of which batch.

Paper: §5.1, batches of about 25,000 source and 25,000 target tokens.
Departs: rows are packed with several pairs, unless `data.layout` is "length_buckets";
  see `packing` and `length_buckets`.

The plan is a pure function of the lengths, the seed and the epoch. To resume in
mid-epoch, earlier batches are planned but not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2t_jax.data.arrays import Integers, Lengths, Rng
from t2t_jax.data.batching.length_buckets import bucket_batches, choose_bucket_lengths
from t2t_jax.data.batching.packing import Shape, Shapes, packed_batches
from t2t_jax.data.config import DataConfig


def epoch_order(
    part_pairs: Sequence[int], weights: Sequence[float], *, rng: np.random.Generator
) -> Integers:
    """Samples and shuffles the pairs of one epoch.

    A part of weight w is in the epoch floor(w) times, and a random share w - floor(w)
    of its pairs, sampled anew in each epoch, once more.

    Args:
      part_pairs: number of pairs in each part of the corpus, in order.
      weights: of the parts, at least 0.

    Returns:
      Indices of pairs in the corpus, int32.

    Raises:
      ValueError: the numbers of weights and parts differ.

    Example:
      >>> order = epoch_order((3, 1), (1, 2.0), rng=np.random.default_rng(0))
      >>> sorted(order.tolist())
      [0, 1, 2, 3, 3]
    """
    sampled = [np.zeros(0, np.int32)]
    first = 0
    for count, weight in zip(part_pairs, weights, strict=True):
        pairs = np.arange(first, first + count, dtype=np.int32)
        times = int(weight)
        sampled += [pairs] * times
        if weight > times:
            # Stochastic rounding: rounding to nearest would never sample a part whose
            # share is less than half a pair.
            number = int((weight - times) * count + rng.random())
            sampled.append(rng.permutation(pairs)[:number])
        first += count
    order = np.concatenate(sampled)
    rng.shuffle(order)  # in place: copying 36 million indices is slow
    return order


PLAN_VERSION = "2"
"""Version of the planning algorithm; versions batch the same pairs differently."""


class PlannedBatch(NamedTuple):
    """One batch, as indices of pairs.

    Attributes:
      pairs: [P] indices of pairs in the corpus, row by row.
      rows: [P] the row of each, ascending from 0 without gaps.
      shape: rows, of which the last may be empty, and slots of a row on each side.
    """

    pairs: Integers
    rows: Integers
    shape: tuple[int, int]

    @property
    def num_rows(self) -> int:
        """Rows that are not empty."""
        return int(self.rows[-1]) + 1


def plan_epoch(
    lengths: Lengths,
    *,
    config: DataConfig,
    seed: int,
    epoch: int,
    part_pairs: Sequence[int] = (),
    weights: Sequence[float] = (),
    shapes: Shapes = (),
) -> Iterator[PlannedBatch]:
    """Plans one epoch in an order of its own.

    Args:
      lengths: [N] source and [N] target tokens of each pair, eos included.
      part_pairs: pairs of each part of the corpus, N in all; empty for one part.
      weights: as for `epoch_order`; empty means once.
      shapes: of the batches; empty for those of `batch_shapes`.

    Yields:
      The epoch's batches, not sorted by length. The last batch of each shape may have
      empty rows.

    Raises:
      ValueError: a pair is longer than a row.

    Example:
      >>> lengths = np.array([3, 5, 4, 2, 1, 1])
      >>> config = DataConfig(tokens_per_batch=8, row_length=8, max_length=8)
      >>> plan = plan_epoch((lengths, lengths), config=config, seed=7, epoch=0)
      >>> [sorted(batch.pairs.tolist()) for batch in plan]
      [[0, 1], [2, 3, 4, 5]]
    """
    part_pairs = tuple(part_pairs) or (len(lengths[0]),)
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch])))
    weights = tuple(weights) or (1.0,) * len(part_pairs)
    order = epoch_order(part_pairs, weights, rng=rng)
    return _plan(lengths, order, shapes, config, rng)


def plan_eval(lengths: Lengths, *, config: DataConfig) -> Iterator[PlannedBatch]:
    """Plans one deterministic pass over all pairs; arguments as for `plan_epoch`."""
    return _plan(lengths, np.arange(len(lengths[0]), dtype=np.int32), (), config, None)


def batch_shapes(config: DataConfig, lengths: Lengths | None = None) -> list[Shape]:
    """Lists the shapes of a plan's batches: rows, and slots of a row on each side.

    Args:
      lengths: [N] source and [N] target lengths of the corpus. Packed batches do not
        depend on them; without them, length buckets have the one shape of the longest
        allowed pairs.

    Example:
      >>> config = DataConfig(tokens_per_batch=24, row_length=8, max_length=8)
      >>> batch_shapes(config)
      [(3, 8)]
    """
    slots, longest = config.tokens_per_batch, [config.max_length]
    if config.layout == "packed":
        longest = [*config.row_lengths]
    elif lengths is not None:
        longest = choose_bucket_lengths(np.maximum(*lengths), slots=slots)
    return [(slots // length, length) for length in longest]


def train_shapes(config: DataConfig, lengths: Lengths) -> list[Shape]:
    """Lists the shapes of all training batches; arguments as for `batch_shapes`.

    With BPE-dropout or modifiers lengths differ between epochs, and shapes do not:
    there is one more length bucket, of the longest allowed pairs.
    """
    shapes, longest = batch_shapes(config, lengths), config.max_length
    differ = config.samples_epochs and config.layout == "length_buckets"
    if differ and (not shapes or shapes[-1][1] < longest):
        shapes.append((config.tokens_per_batch // longest, longest))
    return shapes


def _plan(
    lengths: Lengths, order: Integers, shapes: Shapes, config: DataConfig, rng: Rng
) -> Iterator[PlannedBatch]:
    shapes = shapes or batch_shapes(config, lengths)
    if config.layout == "packed":
        for rows, shape in packed_batches(lengths, order, shapes=shapes, rng=rng):
            yield PlannedBatch(*rows, shape)
        return
    longer = np.maximum(*lengths)
    for pairs, shape in bucket_batches(longer, order, shapes=shapes, rng=rng):
        yield PlannedBatch(pairs, np.arange(len(pairs), dtype=np.int32), shape)
