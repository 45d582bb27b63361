"""Runs batches: within the memory there is, two in flight, compiled ahead.

Where memory is exhausted all the same, they go on in halves.

A single batch leaves the device idle at times: between its steps a search checks what
is done, shrinks batches and reads outputs, and small operations do not fill all cores.
Two cores of a CPU translate 1.15 times as many sentences with two batches at once: 286
a second instead of 249 (beams of 4, 16 tokens, 3 layers of 256, 8,000 subwords), and
with the base model 21.4 instead of 18.7.
"""

from __future__ import annotations

import functools
import logging
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import SourceBatch
from t2t_jax.decoding.engine.device_rows import abstract_key, devices_of
from t2t_jax.errors import ConfigError
from t2t_jax.types import PAD, StepModel

MAX_CONCURRENT = 2
"""Batches in the memory of a device; three are no faster than two."""

OOM_ERRORS = (MemoryError, jax.errors.JaxRuntimeError)
"""Raised when memory is exhausted; JAX raises it for other reasons too."""

_FULL = "RESOURCE_EXHAUSTED"

Shape: TypeAlias = tuple[int, ...]
Item = TypeVar("Item")
Result = TypeVar("Result")

_LOGGER = logging.getLogger(__name__)
_compiled: set[Hashable] = set()

_SHARE = 4  # Two batches are in flight, and a cache that grows is copied.
# Slots that need no estimate: 16 times those of the default batch.
_FEW_SLOTS = 1 << 18
_COPIES = 4  # of tokens and of logits: living, finished, merged and sorted
_estimates: dict[Hashable, int] = {}


def run_batches(
    run: Callable[[SourceBatch], Result],
    batches: Iterable[SourceBatch],
    *,
    compile_shape: Callable[[Shape], object] | None,
    cache_key: Hashable,
    config: DecodingConfig,
    devices: int,
    max_concurrent: int = MAX_CONCURRENT,
) -> Iterator[Result]:
    """Runs batches in order, in smaller ones where memory is exhausted.

    Args:
      compile_shape: compiles the programs for a shape, in a thread, while earlier
        batches run; None compiles nothing ahead.
      max_concurrent: batches in flight on a single device. What does not fit beside
        another is retried by itself before it is halved.

    Raises:
      ConfigError: as in `halve_batches`.
      Exception: other errors of `run`.
    """
    left = deque(batches)
    max_concurrent = max_concurrent if devices == 1 else 1

    def is_ready(batch: SourceBatch) -> bool:
        return (cache_key, batch.source_BxS.shape) in _compiled

    while left:
        shapes = [batch.source_BxS.shape for batch in left]
        try:
            with _compiled_ahead(run, compile_shape, shapes, cache_key) as compiled:
                for _, result in map_concurrently(
                    compiled, left, is_ready=is_ready, max_concurrent=max_concurrent
                ):
                    yield result
        except OOM_ERRORS as error:
            if not isinstance(error, MemoryError) and _FULL not in str(error):
                raise
            if max_concurrent == 1:
                left = halve_batches(left, error, config=config, devices=devices)
            max_concurrent = 1


@contextmanager
def _compiled_ahead(
    run: Callable[[SourceBatch], Result],
    compile_shape: Callable[[Shape], object] | None,
    shapes: Iterable[Shape],
    cache_key: Hashable,
) -> Iterator[Callable[[SourceBatch], Result]]:
    """Compiles for the shapes of upcoming batches, one after the other, in a thread.

    What this process has compiled is not compiled again. The first shape is left to
    the caller. In the end what has not been started is cancelled.

    Yields:
      `run`, once the programs of a batch are compiled, if they are being compiled.
      Errors of that are only logged: they occur again where the programs are used.
    """

    def note(function: Callable[[Any], Any], item: object, shape: Shape) -> Any:
        result = function(item)
        _compiled.add((cache_key, shape))
        return result

    def run_compiled(batch: SourceBatch) -> Result:
        shape = batch.source_BxS.shape
        future = pending.pop(shape, None)
        # What was not started is compiled by the caller.
        if future and not future.cancel() and (error := future.exception()):
            _LOGGER.debug("Background compilation for %s: %r", shape, error)
        result: Result = note(run, batch, shape)
        return result

    thread = ThreadPoolExecutor(1)  # starts with its first task
    pending = {
        shape: thread.submit(note, compile_shape, shape, shape)
        for shape in list(dict.fromkeys(shapes))[1:]
        if compile_shape is not None and (cache_key, shape) not in _compiled
    }
    try:
        yield run_compiled
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def map_concurrently(
    function: Callable[[Item], Result],
    left: deque[Item],
    *,
    is_ready: Callable[[Item], bool],
    max_concurrent: int = MAX_CONCURRENT,
) -> Iterator[tuple[Item, Result]]:
    """Applies a function to items, to a few of them at a time.

    Args:
      function: called in threads; in the caller's thread for a single item, or with
        `max_concurrent=1`.
      left: the items. Each is removed when its result is there, so after an error the
        first one left is the one that failed.
      is_ready: whether an item may run beside others, or has to wait until none runs.

    Yields:
      (item, result), in the order of the items.

    Raises:
      Exception: what `function` raised, as soon as no earlier item is running.

    Example:
      >>> found = map_concurrently(abs, deque([-1, 2, -3]), is_ready=lambda _: True)
      >>> list(found)
      [(-1, 1), (2, 2), (-3, 3)]
    """
    if max_concurrent == 1 or len(left) == 1:
        while left:
            result = function(left[0])
            yield left.popleft(), result
        return
    running: deque[Future[Result]] = deque()
    threads = ThreadPoolExecutor(max_concurrent)

    def begin() -> None:
        while len(running) < min(max_concurrent, len(left)):
            item = left[len(running)]
            if running and not is_ready(item):
                return
            running.append(threads.submit(function, item))

    try:
        while left:
            begin()
            result = running[0].result()
            running.popleft()
            item = left.popleft()
            begin()
            yield item, result
    except Exception:
        threads.shutdown(cancel_futures=True)  # frees their memory for a retry
        raise
    finally:  # A caller that leaves early does not wait for the threads.
        running.clear()  # Futures would keep the error and its buffers alive.
        threads.shutdown(wait=False, cancel_futures=True)


def halve_batches(
    left: Sequence[SourceBatch],
    error: Exception,
    *,
    config: DecodingConfig,
    devices: int,
) -> deque[SourceBatch]:
    """Halves the rows of all batches that are left, since the first one did not fit.

    The others take about as much memory, so they are not tried first.

    Raises:
      ConfigError: the first batch has a single row on each device.
    """
    reason = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(" .")
    rows, length = left[0].source_BxS.shape
    if rows == devices:
        raise _too_large(config, length, reason) from error
    _LOGGER.warning(
        f"Out of device memory for {rows} lines of {length} subwords ({reason}). "
        "Continuing with half as many lines. Set config.decoding.tokens_per_batch "
        f"below {config.tokens_per_batch} to start so."
    )
    return deque(half for batch in left for half in _split_in_half(batch, devices))


def _split_in_half(batch: SourceBatch, devices: int) -> list[SourceBatch]:
    """Splits a batch in two of one shape; omits a half without sentences."""
    rows = devices * -(-len(batch.source_BxS) // (2 * devices))
    missing = ((0, 2 * rows - len(batch.source_BxS)), (0, 0))
    padded_BxS = np.pad(batch.source_BxS, missing, constant_values=PAD)
    starts = range(0, len(batch.indices), rows)
    halves = (slice(start, start + rows) for start in starts)
    return [SourceBatch(padded_BxS[half], batch.indices[half]) for half in halves]


def _too_large(config: DecodingConfig, length: int, reason: str) -> ConfigError:
    kept = _width_key(config)
    return ConfigError(
        f"Too little device memory for a single line of {length} subwords with "
        f"decoding.{kept}={getattr(config, kept):,}: {reason}.\nLower config.decoding."
        f"{kept}, config.decoding.max_extra_tokens or config.decoding."
        "max_source_length, or end other programs on the device."
    )


def _width_key(config: DecodingConfig) -> str:
    """Returns the key that is the number of a search's hypotheses or samples."""
    return "n_best" if config.sample and config.mbr == "none" else "beam_size"


def rows_that_fit(
    model: StepModel, config: DecodingConfig, rows: int, length: int
) -> int:
    """Cuts the rows of a batch so that its search fits a quarter of a device's memory.

    Args:
      rows: of each device, as `config.tokens_per_batch` allows.
      length: of the sources, in slots.

    Raises:
      ConfigError: a single row does not fit.
    """
    longest = config.longest_output(length)
    if rows * getattr(config, _width_key(config)) * longest <= _FEW_SLOTS:
        return rows
    key = (abstract_key(model), config, length)
    if key not in _estimates:
        _estimates[key] = _row_bytes(model, config, length)
    devices = list(devices_of(model).devices.flat)
    limits = [(one.memory_stats() or {}).get("bytes_limit", 0) for one in devices]
    memory = min(limits) or host_memory() // len(devices)
    each, share = _estimates[key], memory // _SHARE
    if each > share:
        takes = f"outputs of up to {longest:,} tokens may take {each / 2**30:.1f} GiB"
        most = f"at most a quarter of the device's, {share / 2**30:.1f} GiB, is used"
        raise _too_large(config, length, f"{takes}, and {most}")
    return min(rows, share // each)


def _row_bytes(model: StepModel, config: DecodingConfig, length: int) -> int:
    """Estimates the bytes of one row at its longest output: past, tokens and logits."""
    beams = getattr(config, _width_key(config))
    longest = config.longest_output(length)

    def hold(source_1xS: jax.Array) -> object:
        memory = model.encode(source_1xS)
        cache = model.init_cache(memory, beams, longest)
        tokens_1xW = jnp.zeros((1, beams), jnp.int32)
        logits, _ = model.step(tokens_1xW, memory, cache, jnp.zeros((), jnp.int32))
        tokens_1xWxT = jnp.zeros((1, beams, longest), jnp.int32)
        return memory, cache, [logits] * _COPIES, [tokens_1xWxT] * _COPIES

    shapes = jax.eval_shape(hold, jax.ShapeDtypeStruct((1, length), jnp.int32))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


@functools.cache
def host_memory() -> int:
    """Returns the bytes of memory of this machine, or of this process's cgroup."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no cgroup, or "max"
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total
