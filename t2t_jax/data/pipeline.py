"""From plan and token cache to batches: one gather and one scatter for each side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from t2t_jax.data.batching import PlannedBatch, plan_epoch, plan_pass
from t2t_jax.data.config import DataConfig
from t2t_jax.data.packing import Integers
from t2t_jax.data.prefetch import Prefetched
from t2t_jax.data.token_cache import TokenCache, TokenSide
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.data.vocabulary import BOS, PAD
from t2t_jax.errors import DataError
from t2t_jax.types import Batch, DataPosition

Placed: TypeAlias = tuple[DataPosition, Batch]

START = DataPosition(epoch=0, batch=0)


class _Side(NamedTuple):
    inputs: Integers
    outputs: Integers
    segments: Integers
    positions: Integers


def assemble(
    cache: TokenCache, planned: PlannedBatch, *, num_rows: int, row_length: int
) -> Batch:
    """Makes a planned batch of tokens.

    Args:
      cache: the corpus.
      planned: which pairs stand in which rows.
      num_rows: rows of the result, B; those without pairs are empty.
      row_length: slots of a row on each side, S = T.

    Returns:
      A batch of fresh int32 arrays: nothing of it is ever written again, because
      `jax.device_put` may use the memory as it is.

    Raises:
      ValueError: the plan has more rows, or fuller ones.
    """
    if planned.num_rows > num_rows:
        raise ValueError(
            f"num_rows={num_rows} must be at least the plan's {planned.num_rows} rows. "
            "Change num_rows."
        )
    shape = (num_rows, row_length)
    source = _lay_out(cache.source, planned, shape)
    target = _lay_out(cache.target, planned, shape)
    return Batch(
        source=source.outputs,
        target_inputs=target.inputs,
        target_outputs=target.outputs,
        source_segments=source.segments,
        target_segments=target.segments,
        source_positions=source.positions,
        target_positions=target.positions,
        rows=np.arange(num_rows, dtype=np.int32),
    )


def _lay_out(side: TokenSide, planned: PlannedBatch, shape: tuple[int, int]) -> _Side:
    begins = side.offsets[planned.pairs]
    lengths = side.offsets[planned.pairs + 1] - begins
    ends = np.cumsum(lengths)
    starts = ends - lengths
    first_of_row = np.searchsorted(planned.rows, planned.rows)
    starts_in_row = starts - starts[first_of_row]
    if (starts_in_row + lengths).max() > shape[1]:
        raise ValueError(
            f"row_length={shape[1]} must hold the plan's rows of up to "
            f"{(starts_in_row + lengths).max()} tokens. Plan for this row_length."
        )
    segments = np.arange(len(lengths)) - first_of_row + 1
    positions = np.arange(ends[-1]) - np.repeat(starts, lengths)
    slots = positions + np.repeat(planned.rows * shape[1] + starts_in_row, lengths)
    outputs = side.tokens[positions + np.repeat(begins, lengths)]
    inputs = np.empty_like(outputs)
    inputs[1:] = outputs[:-1]
    inputs[starts] = BOS

    def scatter(values: Integers, empty: int) -> Integers:
        flat = np.full(shape[0] * shape[1], empty, np.int32)
        flat[slots] = values
        return flat.reshape(shape)

    return _Side(
        inputs=scatter(inputs, PAD),
        outputs=scatter(outputs, PAD),
        segments=scatter(np.repeat(segments, lengths), 0),
        positions=scatter(positions, 0),
    )


def one_pass(
    cache: TokenCache, config: DataConfig, *, num_rows: int
) -> Iterator[Batch]:
    """Reads every pair once, always in the same batches, for evaluation.

    Args:
      cache: the corpus.
      config: rows per batch and their length.
      num_rows: rows of every batch, at least `config.rows_per_batch`.

    Yields:
      Batches of `num_rows` rows.
    """
    plan = plan_pass(
        cache.source_lengths,
        cache.target_lengths,
        rows_per_batch=config.rows_per_batch,
        row_length=config.row_length,
    )
    for planned in plan:
        yield assemble(cache, planned, num_rows=num_rows, row_length=config.row_length)


def stream(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition = START,
    num_rows: int,
) -> Prefetched[Placed]:
    """Reads epoch after epoch, in batches that a thread makes ahead of time.

    Args:
      cache: the corpus.
      config: rows per batch and their length.
      seed: the run's; with epoch and batch it decides every batch.
      start: where to go on; what comes before it is planned again, and not read.
      num_rows: rows of every batch, at least `config.rows_per_batch`.

    Returns:
      An endless iterator of (position after the batch, batch), to be closed: use it
      in a `with` statement.
    """
    return Prefetched(
        _endless(cache, config, seed=seed, start=start, num_rows=num_rows)
    )


def _plan(
    cache: TokenCache, config: DataConfig, *, seed: int, epoch: int
) -> Iterator[PlannedBatch]:
    return plan_epoch(
        cache.source_lengths,
        cache.target_lengths,
        rows_per_batch=config.rows_per_batch,
        row_length=config.row_length,
        seed=seed,
        epoch=epoch,
    )


def _endless(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition,
    num_rows: int,
) -> Iterator[Placed]:
    epoch, skipped = start
    while True:
        done = 0
        for planned, last in _marked(_plan(cache, config, seed=seed, epoch=epoch)):
            done += 1
            if done > skipped:
                yield (
                    DataPosition(epoch + 1, 0) if last else DataPosition(epoch, done),
                    assemble(
                        cache,
                        planned,
                        num_rows=num_rows,
                        row_length=config.row_length,
                    ),
                )
        if skipped > done:
            raise DataError(
                f"The run stopped after batch {skipped} of epoch {epoch}, which has "
                f"only {done} batches: the data are not the same. Restore data.train, "
                "or start a new run."
            )
        epoch, skipped = epoch + 1, 0


def _marked(plan: Iterator[PlannedBatch]) -> Iterator[tuple[PlannedBatch, bool]]:
    """Tells of each batch whether it is the last."""
    for planned, following in pairwise(chain(plan, [None])):
        if planned is not None:
            yield planned, following is None


def describe_data(vocabularies: Vocabularies, **caches: TokenCache) -> dict[str, Any]:
    """Tells what a run reads, as its `data.json` records it.

    Args:
      vocabularies: what the caches were encoded with.
      **caches: the corpora by their part in the run, such as train and dev.

    Returns:
      Of the vocabulary, or of each: size and fingerprint. Of each corpus: spec,
      fingerprint, counts by reason, and for both sides mean length in tokens, eos
      included, and the share of them that is unknown.
    """
    sides = vocabularies._asdict()
    told = {
        f"{side}_vocabulary": {
            "size": vocabulary.size,
            "fingerprint": vocabulary.fingerprint,
        }
        for side, vocabulary in sides.items()
    }
    if vocabularies.shared:
        told = {"vocabulary": told["target_vocabulary"]}
    return {
        **told,
        **{part: _describe(cache) for part, cache in caches.items()},
    }


def _describe(cache: TokenCache) -> dict[str, Any]:
    sides = {"source": cache.source, "target": cache.target}
    return {
        "spec": cache.meta["spec"],
        "fingerprint": cache.meta["corpus"],
        "counts": cache.counts,
        "mean_length": {
            name: round(len(side.tokens) / cache.num_pairs, 2)
            for name, side in sides.items()
        },
        "unknown_rate": {
            name: cache.meta["unknown"][name] / len(side.tokens)
            for name, side in sides.items()
        },
    }
