"""From plan and token cache to batches, made ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count, islice, pairwise
from types import TracebackType
from typing import Generic, TypeAlias, TypeVar

from t2t_jax.data.batching.collate import collate, padded_rows
from t2t_jax.data.batching.planner import PlannedBatch, plan_epoch, plan_eval
from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.token_cache import TokenCache
from t2t_jax.errors import DataError
from t2t_jax.types import Batch, BatchShard, DataPosition

Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """An iterator that works ahead in a thread of its own.

    What goes wrong in the thread is raised where the next item is asked for. Closing
    ends the thread; a closed iterator has no more items.

    Args:
      items: what the thread iterates over.
      depth: how many are made ahead.
    """

    def __init__(self, items: Iterator[Item], *, depth: int = 4):
        self._items = items
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
        made = self._ready.get()
        if isinstance(made, BaseException):
            self.close()
            raise made
        return made[0]

    def __enter__(self) -> Prefetcher[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread, and drops what it has made ahead."""
        self._closed.set()
        while self._thread.is_alive():
            # The thread may be waiting for room to put an item.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(timeout=0.01)


Placed: TypeAlias = tuple[DataPosition, Batch]

START = DataPosition(epoch=0, batch=0)
UNSHARDED = BatchShard()


def eval_batches(
    cache: TokenCache,
    config: DataConfig,
    *,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
) -> Iterator[Batch]:
    """Reads every pair once, always in the same batches, for evaluation.

    Args:
      config: layout and size of batches.
      row_multiple: what the number of rows of every batch must be a multiple of.
      share: the part of every batch that is made.

    Yields:
      Batches of few shapes.
    """
    plan = plan_eval(cache.source_lengths, cache.target_lengths, config=config)
    for planned in plan:
        yield _share(cache, planned, row_multiple=row_multiple, share=share)


def train_stream(
    cache: TokenCache,
    config: DataConfig,
    *,
    seed: int,
    start: DataPosition = START,
    row_multiple: int = 1,
    share: BatchShard = UNSHARDED,
) -> Prefetcher[Placed]:
    """Reads epoch after epoch, in batches that a thread makes ahead of time.

    Args:
      cache: the corpus; how often an epoch holds a pair is by its parts' weights.
      config: layout and size of batches.
      seed: the run's; with epoch and batch it decides every batch.
      start: where to go on; what comes before it is planned again, and not read.
      row_multiple: what the number of rows of every batch must be a multiple of.
      share: the part of every batch that is made.

    Returns:
      An endless iterator of (position after the batch, batch), to be closed: use it
      in a `with` statement.
    """
    plan = _plan(cache, config, seed=seed)
    made = partial(_share, cache, row_multiple=row_multiple, share=share)
    return Prefetcher(
        (position, made(planned)) for position, planned in _endless(plan, start)
    )


def find_batch(
    cache: TokenCache, config: DataConfig, *, seed: int, start: DataPosition, ahead: int
) -> tuple[DataPosition, PlannedBatch]:
    """Finds a batch of `stream`, and reads nothing.

    Args:
      cache: the corpus, as for `stream`.
      config: layout and size of batches.
      start: where the first batch stands.
      ahead: how many batches after that one; 0 is that one.

    Returns:
      Where the batch stands, and which pairs are in it.
    """
    place = start
    batches = _endless(_plan(cache, config, seed=seed), start)
    for after, _ in islice(batches, ahead):
        place = after
    return place, next(batches)[1]


def _plan(
    cache: TokenCache, config: DataConfig, *, seed: int
) -> Callable[..., Iterator[PlannedBatch]]:
    """Binds all that an epoch depends on, but its number."""
    return partial(
        plan_epoch,
        cache.source_lengths,
        cache.target_lengths,
        config=config,
        seed=seed,
        part_pairs=cache.part_pairs,
        weights=cache.weights,
    )


def _share(
    cache: TokenCache, planned: PlannedBatch, *, row_multiple: int, share: BatchShard
) -> Batch:
    return collate(
        cache,
        planned,
        row_multiple=row_multiple,
        rows=share.rows_of(padded_rows(planned, row_multiple)),
    )


def _endless(
    plan: Callable[..., Iterator[PlannedBatch]], start: DataPosition
) -> Iterator[tuple[DataPosition, PlannedBatch]]:
    """Plans epoch after epoch; gives each batch with the position after it."""
    skipped = start.batch
    for epoch in count(start.epoch):
        done = 0
        for planned, last in _marked(plan(epoch=epoch)):
            done += 1
            if done > skipped:
                after = (
                    DataPosition(epoch + 1, 0) if last else DataPosition(epoch, done)
                )
                yield after, planned
        if skipped > done:
            raise DataError(
                f"The run stopped after batch {skipped} of epoch {epoch}, which has "
                f"only {done} batches: the data are not the same. Restore data.train, "
                "or start a new run."
            )
        skipped = 0


def _marked(plan: Iterator[PlannedBatch]) -> Iterator[tuple[PlannedBatch, bool]]:
    """Tells of each batch whether it is the last."""
    for planned, following in pairwise(chain(plan, [None])):
        if planned is not None:
            yield planned, following is None
