"""Several processes that encode, in order, with a bounded number of chunks on the way.

SentencePiece's own threads gain nothing, since the lists that it returns are made under
Python's lock. A process costs half a second to start, so few pairs are encoded here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import NamedTuple, TypeAlias

from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.encoder import Encoded, PairEncoder
from t2t_jax.errors import StoppedError

CHUNK_PAIRS = 2_000
"""Pairs that go to a process at a time: a tenth of a second of work."""

_MOST_UNASKED = 16
_FEWEST_CHUNKS = 10
_CHUNKS_AHEAD = 3


class Chunk(NamedTuple):
    """Consecutive pairs of a corpus.

    Attributes:
      part: which of the corpora it is of, from 0.
      first: line number of its first pair there, from 1.
      sources: sentences to translate.
      targets: their translations.
    """

    part: int
    first: int
    sources: list[str]
    targets: list[str]


Result: TypeAlias = tuple[Chunk, Encoded]


def num_workers(workers: int) -> int:
    """Returns how many processes `data.workers` asks for.

    Args:
      workers: the number, or 0 for one for each core, at most 16: more wait for the
        one that reads and counts, and each takes memory.
    """
    if workers:
        return workers
    if hasattr(os, "sched_getaffinity"):  # fewer than cpu_count under Slurm, say
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores, _MOST_UNASKED)


def encode_chunks(
    chunks: Iterator[Chunk], encoder: PairEncoder, *, workers: int
) -> Generator[Result]:
    """Encodes chunks, and yields each with what became of it, in their order.

    Args:
      chunks: read only a little ahead of what has been yielded.
      encoder: encodes here; other processes make one like it.
      workers: number of processes. With 1, or fewer than 10 chunks, there are none
        but this one. To be closed, so that they end.

    Raises:
      StoppedError: a process has died.
    """
    first = list(islice(chunks, _FEWEST_CHUNKS))
    chunks = chain(first, chunks)
    if workers > 1 and len(first) == _FEWEST_CHUNKS:
        yield from _in_processes(chunks, encoder, workers)
        return
    for chunk in chunks:
        yield chunk, encoder.encode(chunk.sources, chunk.targets)


def _in_processes(
    chunks: Iterator[Chunk], encoder: PairEncoder, workers: int
) -> Iterator[Result]:
    pool = ProcessPoolExecutor(
        workers,
        # A fork of a process with threads, as JAX has, may hang.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=encoder.recipe,
    )
    waiting: deque[tuple[Chunk, Future[Encoded]]] = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, _submit(pool, chunk)))
            if len(waiting) > _CHUNKS_AHEAD * workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    except BrokenProcessPool as error:
        raise StoppedError(
            "A process that encodes text has died; perhaps the memory was full. Set a "
            "lower config.data.workers, then rerun to resume."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, chunk: Chunk) -> Future[Encoded]:
    """Gives a chunk to the processes, of which one more may start for it.

    It starts deaf to SIGINT, which a terminal sends to everyone: what that means is
    decided here, and not by tracebacks from processes.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with _without_main():
            return pool.submit(_encode, chunk.sources, chunk.targets)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Hides the main module from processes that start meanwhile.

    They would import it, though they need nothing of it: a script that trains without
    `if __name__ == "__main__"` would begin to train in each of them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# The encoder of a worker process, once it has begun.
_encoders: list[PairEncoder] = []


def _begin(models: tuple[bytes, bytes], config: DataConfig, dtype: str) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    _encoders.append(PairEncoder(models, config, dtype))


def _end_with(parent: BaseProcess) -> None:
    """Ends this process when its parent has, even by SIGKILL."""
    parent.join()
    os._exit(1)


def _encode(sources: list[str], targets: list[str]) -> Encoded:
    return _encoders[0].encode(sources, targets)
