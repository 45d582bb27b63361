"""Batches that do not fit the memory of a device, cut into smaller ones."""

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
"""What is raised where memory does not suffice; JAX raises it for other things too."""

Found = TypeVar("Found")

_LOGGER = logging.getLogger(__name__)


def decode_with_oom_retry(
    decode: Callable[[deque[SourceBatch], int], Iterator[Found]],
    batches: Iterable[SourceBatch],
    *,
    config: DecodingConfig,
    devices: int,
    at_once: int = 1,
) -> Iterator[Found]:
    """Decodes batch by batch, in smaller ones where they do not fit the memory.

    Args:
      decode: decodes batches, so many at once, and takes away those that are done.
      batches: in the order in which they are decoded.
      at_once: batches under way, where there is one device. What does not fit beside
        another is tried alone before it is cut.

    Yields:
      What `decode` yields.

    Raises:
      ConfigError: as in `halve_batches`.
      Exception: what `decode` raises of other things than memory.
    """
    left = deque(batches)
    at_once = at_once if devices == 1 else 1
    while left:
        try:
            yield from decode(left, at_once)
        except OOM_ERRORS as error:
            if at_once == 1 or not _is_of_memory(error):
                left = halve_batches(left, error, config=config, devices=devices)
            at_once = 1


def halve_batches(
    left: Iterable[SourceBatch],
    error: Exception,
    *,
    config: DecodingConfig,
    devices: int,
) -> deque[SourceBatch]:
    """Cuts all batches that are left, since the first of them has not fitted.

    The others take about as much memory, so it is not tried with each of them.

    Args:
      error: what the first one has met.
      config: how it is searched, for what is said.
      devices: how many share the rows of a batch evenly.

    Returns:
      The same sentences in their order, in batches of half as many rows.

    Raises:
      ConfigError: the first has a single row on each device, and so no halves.
      Exception: `error`, where it is of something else.
    """
    if not _is_of_memory(error):
        raise error
    reason = (str(error) or type(error).__name__).splitlines()[0][:200].rstrip(" .")
    first, *others = left
    rows, length = first.source_BxS.shape
    if rows == devices:
        kept = "n_best" if config.sample else "beam_size"
        raise ConfigError(
            "A line must fit the memory of a device beside the model, and one of "
            f"{length} subwords with decoding.{kept}={getattr(config, kept)} does not: "
            f"{reason}.\nLower config.decoding.{kept} or config.decoding."
            "max_source_length, or end what else takes the memory."
        ) from error
    _LOGGER.warning(
        "%d lines of %d subwords at a time do not fit the memory of the device (%s). "
        "From here on it is half as many. Lower config.decoding.tokens_per_batch, "
        "which is %d, to begin so.",
        rows,
        length,
        reason,
        config.tokens_per_batch,
    )
    return deque(half for batch in (first, *others) for half in _halves(batch, devices))


def _is_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _halves(batch: SourceBatch, devices: int) -> list[SourceBatch]:
    """Cuts a batch in two of one shape; a second one without sentences is none."""
    rows = devices * -(-len(batch.source_BxS) // (2 * devices))
    found = []
    for start in range(0, len(batch.indices), rows):
        part_BxS = batch.source_BxS[start : start + rows]
        missing = ((0, rows - len(part_BxS)), (0, 0))
        source_BxS = np.pad(part_BxS, missing, constant_values=DEFAULT_IDS.pad)
        found.append(SourceBatch(source_BxS, batch.indices[start : start + rows]))
    return found
