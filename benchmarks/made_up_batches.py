"""Batches of tokens drawn by chance, one sentence a row or several."""

from __future__ import annotations

import numpy as np

from t2t_jax.types import Batch

_FIRST_WORD = 4  # after pad, bos, eos and unk


def made_up_batch(
    rows: int,
    length: int,
    vocab_size: int,
    *,
    seed: int = 0,
    full: bool = True,
    segment: int = 0,
) -> Batch:
    """Draws a batch.

    Args:
      rows: B.
      length: slots of a row, on each side.
      vocab_size: V.
      seed: another is another batch.
      full: whether every slot holds a token; else the rows are of all lengths from 1
        on, the rest of them padding.
      segment: slots of each sentence of a full row; 0 for one sentence a row.
    """
    random, shape = np.random.default_rng(seed), (rows, length)
    lengths = np.full(rows, length) if full else random.integers(1, length + 1, rows)
    place = np.arange(length, dtype=np.int32)
    segments = (place[None] < lengths[:, None]).astype(np.int32)
    tokens = random.integers(_FIRST_WORD, vocab_size, (3, *shape)).astype(np.int32)
    source, inputs, outputs = tokens * segments
    positions = place[None] * segments
    if segment:
        segments = segments * (1 + place // segment)
        positions = positions % segment
    return Batch(
        source=source,
        target_inputs=inputs,
        target_outputs=outputs,
        source_segments=segments,
        target_segments=segments,
        source_positions=positions,
        target_positions=positions,
        rows=np.arange(rows, dtype=np.int32),
    )
