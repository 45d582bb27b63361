"""Streams of batches from plan and token cache, assembled ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count, islice, pairwise
from typing import Generic, Protocol, TypeAlias, TypeVar

from t2t_jax.data.batching.collate import UNSHARDED, collate
from t2t_jax.data.batching.planner import (
    PlannedBatch,
    plan_epoch,
    plan_eval,
    train_shapes,
)
from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.errors import DataError
from t2t_jax.types import Batch, BatchShard, DataPosition

Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """An iterator that prefetches in a thread, whose exceptions `next` raises.

    Closing stops the thread; a closed iterator is exhausted.

    Args:
      on_close: called before the thread is joined, to end what it waits for.
    """

    def __init__(
        self,
        items: Iterator[Item],
        *,
        depth: int = 4,
        on_close: Callable[[], object] = lambda: None,
    ):
        self._items, self._on_close = items, on_close
        self._ready: queue.Queue[tuple[Item] | BaseException] = queue.Queue(depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self._items:
                if self._closed.is_set():
                    return
                self._ready.put((item,))
        except BaseException as error:
            self._ready.put(error)
        else:
            self._ready.put(StopIteration())

    def __iter__(self) -> Prefetcher[Item]:
        return self

    def __next__(self) -> Item:
        if self._closed.is_set():
            raise StopIteration
        result = self._ready.get()
        if isinstance(result, BaseException):
            self.close()
            raise result
        return result[0]

    def __enter__(self) -> Prefetcher[Item]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the thread and drops prefetched items."""
        self._closed.set()
        self._on_close()
        while self._thread.is_alive():
            # The thread may be blocked on a full queue.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(timeout=0.01)


class EpochTokens(Protocol):
    """The tokens of each epoch, for text that is segmented anew in each."""

    def open(self, epoch: int) -> TokenCache:
        """Returns the tokens of an epoch, of the same pairs in the same order."""

    def close(self) -> None:
        """Ends `open` in another thread with an exception."""


PositionedBatch: TypeAlias = tuple[DataPosition, Batch]

START = DataPosition(epoch=0, batch=0)


def eval_batches(
    cache: TokenCache,
    config: DataConfig,
    *,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
) -> Iterator[Batch]:
    """Reads every pair once, always in the same batches, for evaluation.

    Args:
      row_multiple: the number of rows of every batch is a multiple of it.
    """
    plan = plan_eval(cache.source_lengths, cache.target_lengths, config=config)
    for planned in plan:
        yield collate(cache, planned, row_multiple=row_multiple, share=share)


def train_stream(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition = START,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
    tokens: EpochTokens | None = None,
) -> Prefetcher[PositionedBatch]:
    """Streams the batches of one epoch after another, prefetched by a thread.

    Args:
      seed: the run's; with epoch and batch it determines every batch.
      start: where to resume; earlier batches are planned but not read.
      row_multiple: the number of rows of every batch is a multiple of it.
      tokens: of each epoch, closed with the stream; None for those of `cache`.

    Returns:
      An endless iterator of (position after the batch, batch), to be closed.
    """
    assemble = partial(collate, row_multiple=row_multiple, share=share)
    plans = _plan_epochs(cache, config, tokens, seed=seed, start=start)
    batches = ((after, assemble(sampled, planned)) for after, planned, sampled in plans)
    return Prefetcher(batches, on_close=tokens.close if tokens else lambda: None)


def find_batch(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition,
    ahead: int,
    tokens: EpochTokens | None = None,
) -> tuple[DataPosition, PlannedBatch, TokenCache]:
    """Finds a batch of `train_stream` without collating those before.

    Args:
      ahead: number of batches after `start`; 0 is the first one.
      tokens: as for `train_stream`.

    Returns:
      The position of the batch, its plan, and the tokens of its epoch.
    """
    position = start
    batches = _plan_epochs(cache, config, tokens, seed=seed, start=start)
    for after, *_ in islice(batches, ahead):
        position = after
    _, planned, sampled = next(batches)
    return position, planned, sampled


def _plan_epochs(
    cache: TokenCache,
    config: DataConfig,
    tokens: EpochTokens | None,
    *,
    seed: int,
    start: DataPosition,
) -> Iterator[tuple[DataPosition, PlannedBatch, TokenCache]]:
    """Plans all epochs; yields the position after each batch, its plan and tokens."""
    skipped = start.batch
    shapes = train_shapes(config, (cache.source_lengths, cache.target_lengths))
    for epoch in count(start.epoch):
        sampled = tokens.open(epoch) if tokens else cache
        plan = plan_epoch(
            sampled.source_lengths,
            sampled.target_lengths,
            config=config,
            seed=seed,
            epoch=epoch,
            part_pairs=cache.part_pairs,
            weights=cache.weights,
            shapes=shapes,
        )
        done = 0
        for done, (planned, following) in enumerate(pairwise(chain(plan, [None])), 1):
            if planned is not None and done > skipped:
                is_last = following is None
                after = DataPosition(epoch + is_last, 0 if is_last else done)
                yield after, planned, sampled
        if skipped > done:
            raise DataError(
                f"The run stopped after batch {skipped} of epoch {epoch}, which has "
                f"only {done} batches: the data are not the same. Restore data.train, "
                "or start a new run."
            )
        skipped = 0
