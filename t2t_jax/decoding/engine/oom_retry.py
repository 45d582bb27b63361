"""Retries batches that do not fit a device's memory with half as many rows."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import jax
import numpy as np

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import SourceBatch
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.errors import ConfigError

OOM_ERRORS = (MemoryError, jax.errors.JaxRuntimeError)
"""Raised when memory is exhausted; JAX raises it for other reasons too."""

Result = TypeVar("Result")

_LOGGER = logging.getLogger(__name__)


def decode_with_oom_retry(
    decode: Callable[[deque[SourceBatch], int], Iterator[Result]],
    batches: Iterable[SourceBatch],
    *,
    config: DecodingConfig,
    devices: int,
    max_concurrent: int = 1,
) -> Iterator[Result]:
    """Decodes batches, in smaller ones where memory is exhausted.

    Args:
      decode: decodes batches, so many at a time, and removes those that are done.
      batches: in the order in which they are decoded.
      max_concurrent: batches in flight on a single device. What does not fit beside
        another is retried by itself before it is halved.

    Yields:
      What `decode` yields.

    Raises:
      ConfigError: as in `halve_batches`.
      Exception: other errors of `decode`.
    """
    left = deque(batches)
    max_concurrent = max_concurrent if devices == 1 else 1
    while left:
        try:
            yield from decode(left, max_concurrent)
        except OOM_ERRORS as error:
            if max_concurrent == 1 or not _is_out_of_memory(error):
                left = halve_batches(left, error, config=config, devices=devices)
            max_concurrent = 1


def halve_batches(
    left: Iterable[SourceBatch],
    error: Exception,
    *,
    config: DecodingConfig,
    devices: int,
) -> deque[SourceBatch]:
    """Halves the rows of all batches that are left, since the first one did not fit.

    The others take about as much memory, so they are not tried first.

    Args:
      error: of the first batch.
      devices: number of devices that share the rows of a batch.

    Returns:
      The same sentences in order, in batches of half as many rows.

    Raises:
      ConfigError: the first batch has a single row on each device.
      Exception: `error`, if memory was not the reason.
    """
    if not _is_out_of_memory(error):
        raise error
    reason = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(" .")
    first, *others = left
    rows, length = first.source_BxS.shape
    if rows == devices:
        kept = "n_best" if config.sample else "beam_size"
        raise ConfigError(
            f"Out of device memory for a single line of {length} subwords with "
            f"decoding.{kept}={getattr(config, kept)}: {reason}.\n"
            f"Lower config.decoding.{kept} or config.decoding.max_source_length, or "
            "end other programs on the device."
        ) from error
    _LOGGER.warning(
        "Out of device memory for %d lines of %d subwords (%s). Continuing with half "
        "as many lines. Set config.decoding.tokens_per_batch below %d to start so.",
        rows,
        length,
        reason,
        config.tokens_per_batch,
    )
    return deque(
        half for batch in (first, *others) for half in _split_in_half(batch, devices)
    )


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _split_in_half(batch: SourceBatch, devices: int) -> list[SourceBatch]:
    """Splits a batch in two of one shape; omits a half without sentences."""
    rows = devices * -(-len(batch.source_BxS) // (2 * devices))
    halves = []
    for start in range(0, len(batch.indices), rows):
        part_BxS = batch.source_BxS[start : start + rows]
        missing = ((0, rows - len(part_BxS)), (0, 0))
        source_BxS = np.pad(part_BxS, missing, constant_values=DEFAULT_IDS.pad)
        halves.append(SourceBatch(source_BxS, batch.indices[start : start + rows]))
    return halves
