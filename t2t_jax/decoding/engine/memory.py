"""Estimates what a search may hold, so that its batches fit the memory there is."""

from __future__ import annotations

import functools
import os
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.device_rows import abstract_key
from t2t_jax.errors import ConfigError
from t2t_jax.types import StepModel

_SHARE = 4  # Two batches are in flight, and a cache that grows is copied.
# Slots that need no estimate: 16 times those of the default batch.
_FEW_SLOTS = 1 << 18
_COPIES = 4  # of tokens and of logits: living, finished, merged and sorted
_estimates: dict[Hashable, int] = {}


def rows_that_fit(
    model: StepModel, config: DecodingConfig, *, rows: int, length: int, mesh: Mesh
) -> int:
    """Cuts the rows of a batch so that its search fits a quarter of a device's memory.

    Args:
      rows: of each device, as `config.tokens_per_batch` allows.
      length: of the sources, in slots.

    Raises:
      ConfigError: a single row does not fit.
    """
    longest = config.longest_output(length)
    kept = "n_best" if config.sample else "beam_size"
    if rows * getattr(config, kept) * longest <= _FEW_SLOTS:
        return rows
    each, share = _row_bytes(model, config, length), _memory(mesh) // _SHARE
    if each > share:
        raise ConfigError(
            f"A search of {length} source tokens with decoding.{kept}="
            f"{getattr(config, kept):,} and outputs of up to {longest:,} tokens "
            f"(decoding.max_extra_tokens={config.max_extra_tokens:,}) may hold "
            f"{each / 2**30:.1f} GiB, and {share / 2**30:.1f} GiB are a quarter of the "
            f"device's memory. Lower config.decoding.{kept} or "
            "config.decoding.max_extra_tokens."
        )
    return min(rows, share // each)


def _row_bytes(model: StepModel, config: DecodingConfig, length: int) -> int:
    """Estimates the bytes of one row at its longest output: past, tokens and logits."""
    key = (abstract_key(model), config, length)
    if key not in _estimates:
        _estimates[key] = _estimate(model, config, length)
    return _estimates[key]


def _estimate(model: StepModel, config: DecodingConfig, length: int) -> int:
    beams = config.n_best if config.sample else config.beam_size
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


def _memory(mesh: Mesh) -> int:
    """Returns the bytes of memory of each device."""
    devices = list(mesh.devices.flat)
    limits = [(one.memory_stats() or {}).get("bytes_limit", 0) for one in devices]
    return min(limits) or host_memory() // len(devices)


@functools.cache
def host_memory() -> int:
    """Returns the bytes of memory of this machine, or of this process's cgroup."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no cgroup, or "max"
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total
