"""Assembles planned batches of tokens: one gather and one scatter per side."""

from __future__ import annotations

from functools import partial

import numpy as np

from t2t_jax.data.arrays import Integers
from t2t_jax.data.batching.planner import PlannedBatch
from t2t_jax.data.token_cache.token_cache import TokenCache, TokenSide
from t2t_jax.types import BOS, PAD, Batch, BatchShard

UNSHARDED = BatchShard()


def collate(
    cache: TokenCache,
    planned: PlannedBatch,
    *,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
) -> Batch:
    """Assembles a planned batch, or a shard of it, as new int32 arrays.

    They must not be written to: `jax.device_put` may alias them.

    Args:
      row_multiple: the number of rows of the full batch is padded to a multiple of it.

    Raises:
      ValueError: the plan has more rows or longer rows than its shape, or the rows
        cannot be sharded equally.
    """
    if planned.num_rows > planned.shape[0]:
        rule = f"have at least the plan's {planned.num_rows} rows"
        raise ValueError(f"shape={planned.shape} must {rule}. Plan for this shape.")
    rows = share.rows_of(-(-planned.shape[0] // row_multiple) * row_multiple)
    begin, end = np.searchsorted(planned.rows, (rows.start, rows.stop))
    pairs, rows_P = planned.pairs[begin:end], planned.rows[begin:end] - rows.start
    shape = (rows.stop - rows.start, planned.shape[1])
    scatter = partial(_scatter_side, pairs=pairs, rows=rows_P, shape=shape)
    _, source, source_segments, source_positions = scatter(cache.source)
    inputs, outputs, target_segments, target_positions = scatter(cache.target)
    return Batch(
        source=source,
        target_inputs=inputs,
        target_outputs=outputs,
        source_segments=source_segments,
        target_segments=target_segments,
        source_positions=source_positions,
        target_positions=target_positions,
        rows=np.arange(rows.start, rows.stop, dtype=np.int32),
    )


def _scatter_side(
    side: TokenSide, pairs: Integers, rows: Integers, *, shape: tuple[int, int]
) -> tuple[Integers, Integers, Integers, Integers]:
    """Returns [B, L] inputs, outputs, segments and positions of one side."""
    begins = side.offsets[pairs]
    lengths = side.offsets[pairs + 1] - begins
    starts = np.cumsum(lengths) - lengths
    first_of_row = np.searchsorted(rows, rows)
    starts_in_row = starts - starts[first_of_row]
    if (fullest := (starts_in_row + lengths).max(initial=0)) > shape[1]:
        rule = f"hold the plan's rows of up to {fullest} tokens"
        raise ValueError(f"shape={shape} must {rule}. Plan for rows of this length.")
    segments = np.arange(len(lengths)) - first_of_row + 1
    positions = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    slots = positions + np.repeat(rows * shape[1] + starts_in_row, lengths)
    outputs = side.tokens[positions + np.repeat(begins, lengths)]
    inputs = np.empty_like(outputs)
    inputs[1:] = outputs[:-1]
    inputs[starts] = BOS

    def scatter(values: Integers) -> Integers:
        flat = np.full(shape[0] * shape[1], PAD, np.int32)  # 0: no segment, either
        flat[slots] = values
        return flat.reshape(shape)

    numbers = np.repeat(segments, lengths)
    return scatter(inputs), scatter(outputs), scatter(numbers), scatter(positions)
