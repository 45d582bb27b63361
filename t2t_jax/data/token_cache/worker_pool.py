"""Encodes chunks in several processes, in order, with a bounded number in flight.

SentencePiece's own threads gain nothing, since its lists of ids are built under the
GIL. A process takes half a second to start, so few pairs are encoded in this one.
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
from itertools import chain, islice
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, TypeAlias

from t2t_jax.data.token_cache.encoder import Chunk, Encoded, PairEncoder
from t2t_jax.errors import UnavailableError
from t2t_jax.quantities import usable_processors

CHUNK_PAIRS = 2_000
"""Pairs per task of a process: a tenth of a second of work."""

_MAX_DEFAULT_WORKERS = 16
_MIN_CHUNKS = 10
_CHUNKS_AHEAD = 3


Result: TypeAlias = tuple[Chunk, Encoded]


def num_workers(workers: int) -> int:
    """Returns the processes for `data.workers`; 0 is one per core, at most 16."""
    return workers or min(usable_processors(), _MAX_DEFAULT_WORKERS)


def encode_chunks(
    chunks: Iterator[Chunk], encoder: PairEncoder, *, workers: int
) -> Generator[Result]:
    """Encodes chunks, read only a little ahead, and yields the results in order.

    Close the generator to stop the processes.

    Args:
      encoder: used in this process; the others construct a copy.
      workers: number of processes. With 1, or fewer than 10 chunks, this process
        encodes.

    Raises:
      UnavailableError: a process died.
    """
    first = list(islice(chunks, _MIN_CHUNKS))
    chunks = chain(first, chunks)
    if workers > 1 and len(first) == _MIN_CHUNKS:
        yield from _encode_in_processes(chunks, encoder, workers)
        return
    for chunk in chunks:
        yield chunk, encoder.encode(chunk)


def _encode_in_processes(
    chunks: Iterator[Chunk], encoder: PairEncoder, workers: int
) -> Iterator[Result]:
    # Forking a process with threads, such as JAX's, may hang.
    spawn = multiprocessing.get_context("spawn")
    recipe = (encoder.models, encoder.config, encoder.dtype, encoder.trigrams)
    pool = ProcessPoolExecutor(workers, spawn, _initialize, recipe)
    pending: deque[tuple[Chunk, Future[Encoded]]] = deque()
    try:
        for chunk in chunks:
            pending.append((chunk, _submit(pool, chunk)))
            if len(pending) > _CHUNKS_AHEAD * workers:
                done, future = pending.popleft()
                yield done, future.result()
        while pending:
            done, future = pending.popleft()
            yield done, future.result()
    except BrokenProcessPool as error:
        fault = "A process that encodes text died, perhaps out of memory"
        change = "Set a lower config.data.workers, then rerun to resume."
        raise UnavailableError(f"{fault}. {change}") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, chunk: Chunk) -> Future[Encoded]:
    """Submits a chunk; a process that starts for it ignores the terminal's SIGINT.

    The main module is hidden from it: it would import and run that.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        return pool.submit(_encode, chunk)
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The encoder of a worker process, set by its initializer.
_encoders: list[PairEncoder] = []


def _initialize(*recipe: Any) -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_exit_with, args=[parent], daemon=True).start()
    _encoders.append(PairEncoder(*recipe))


def _exit_with(parent: BaseProcess) -> None:
    """Exits this process when its parent ends, even by SIGKILL."""
    parent.join()
    os._exit(1)


def _encode(chunk: Chunk) -> Encoded:
    return _encoders[0].encode(chunk)
