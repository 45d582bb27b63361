"""Distributes lines over processes; gathers strings, parameters and results."""

from __future__ import annotations

import functools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import DataError
from t2t_jax.types import Params, PyTree

_CANCELLED = "cancelled"
_CODEC = ("utf-8", "surrogatepass")


Tree = TypeVar("Tree")

MAX_IN_FLIGHT = 8
"""Computations dispatched before the first one is fetched.

Enough to hide the host's work; more would keep more inputs in device memory. With
several simulated CPU devices XLA blocks after 32 computations per device, and more in
flight deadlock as soon as they communicate.
"""


class Cancelled(Exception):
    """The work was cancelled, since the process has been requested to stop."""


def allgather_strings(
    lines: Sequence[str], processes: Processes = SINGLE_PROCESS
) -> list[list[str]]:
    """Gathers strings from all processes on every process, over their devices.

    Collective: call on every process.

    Args:
      lines: of this process; any number of any strings.

    Returns:
      The lines of each process, in the order of ranks.

    Example:
      >>> allgather_strings(["ein Hund", ""])
      [['ein Hund', '']]
    """
    if processes.count == 1:
        return [list(lines)]
    from jax.experimental import multihost_utils

    # Any Python string, lone surrogates included.
    encoded = json.dumps(list(lines), ensure_ascii=False).encode(*_CODEC)
    text = np.frombuffer(encoded, np.uint8)
    sizes = multihost_utils.process_allgather(np.asarray(text.size, np.int32))
    # To the next power of two, since each shape compiles another program.
    padded = np.zeros(1 << (int(sizes.max()) - 1).bit_length(), np.uint8)
    padded[: text.size] = text
    pairs = zip(multihost_utils.process_allgather(padded), sizes, strict=True)
    return [json.loads(row[:size].tobytes().decode(*_CODEC)) for row, size in pairs]


def broadcast_strings(
    lines: Sequence[str], processes: Processes = SINGLE_PROCESS
) -> list[str]:
    """Returns the strings of process 0 on every process, over their devices.

    Collective: call on every process.

    Args:
      lines: used on process 0 only; any number of any strings.

    Example:
      >>> broadcast_strings(["ein Hund", ""])
      ['ein Hund', '']
    """
    return allgather_strings(lines if processes.is_first else (), processes)[0]


def map_lines_across_processes(
    translate: Callable[[list[str], int], list[str]],
    lines: Sequence[str],
    processes: Processes = SINGLE_PROCESS,
) -> list[str]:
    """Translates a contiguous share of the lines on each process, and gathers all.

    The shares have about the same number of characters. Collective: call on every
    process with the same lines.

    Args:
      translate: called with n lines and the index of the first; returns n strings.
      lines: all lines, on every process.

    Returns:
      All translations on every process, in the order of `lines`.

    Raises:
      DataError: a process has returned another number of lines.
      Cancelled: `translate` has raised it on some process.

    Example:
      >>> def shout(lines, first):
      ...     return [f"{first + n}: {line.upper()}" for n, line in enumerate(lines)]
      >>> map_lines_across_processes(shout, ["a", "b"])
      ['0: A', '1: B']
    """
    if processes.count == 1:
        return translate(list(lines), 0)
    shares = _shares(lines, processes.count)
    own = shares[processes.index]
    try:
        result = ["", *translate(list(lines[own.start : own.stop]), own.start)]
    except Cancelled:
        result = [_CANCELLED]
    gathered = allgather_strings(result, processes)
    if any(head == _CANCELLED for head, *_ in gathered):
        raise Cancelled
    translated = [lines for _, *lines in gathered]
    for index, (share, texts) in enumerate(zip(shares, translated, strict=True)):
        if len(share) != len(texts):
            rule = f"{len(share)} lines must have as many translations"
            made = f"process {index} has made {len(texts)}"
            raise DataError(
                f"{rule}, and {made}. Pass the same lines to all processes."
            )
    return list(chain(*translated))


def _shares(lines: Sequence[str], count: int) -> list[range]:
    """Splits lines into contiguous ranges of about the same number of characters."""
    # + 1, since an empty line takes time too.
    sizes = np.array([len(line) + 1 for line in lines], np.int64)
    # A line belongs to the share that holds its middle.
    middles = np.cumsum(sizes) - sizes / 2
    cuts = np.searchsorted(middles, sizes.sum() * np.arange(count + 1) / count)
    return [range(*pair) for pair in pairwise([*cuts[:-1].tolist(), len(lines)])]


def replicate(tree: PyTree, devices: Sequence[jax.Device] | None = None) -> PyTree:
    """Replicates arrays over devices of this process; None means all of them.

    Example:
      >>> len(replicate(np.ones(7), jax.local_devices()[:1]).sharding.device_set)
      1
    """
    return jax.device_put(tree, _replicated_sharding(devices or jax.local_devices()))


def gather_to_local_devices(params: Params) -> Params:
    """Gathers sharded parameters on each device of this process.

    Collective if the mesh spans several processes: call on every process.

    Args:
      params: arrays on one mesh, sharded or not. Arrays without a mesh are returned.

    Returns:
      The parameters replicated over this process's devices of the mesh, usable without
      the other processes. What is replicated already is not copied.

    Example:
      >>> params = gather_to_local_devices(replicate({"bias": np.ones(5)}))
      >>> params["bias"].is_fully_replicated
      True
    """
    arrays = [x for x in jax.tree.leaves(params) if isinstance(x, jax.Array)]
    meshes = [x.sharding.mesh for x in arrays if isinstance(x.sharding, NamedSharding)]
    if not meshes:
        return params
    if not all(array.is_fully_replicated for array in arrays):
        params = _gatherer(meshes[0])(params)
    devices = meshes[0].local_devices
    replicated = _replicated_sharding(devices)

    def localize(leaf: jax.Array) -> jax.Array:
        parts = {shard.device: shard.data for shard in leaf.addressable_shards}
        return jax.make_array_from_single_device_arrays(
            leaf.shape, replicated, [parts[device] for device in devices]
        )

    return jax.tree.map(localize, params)


def _replicated_sharding(devices: Sequence[jax.Device]) -> NamedSharding:
    mesh = Mesh(np.asarray(devices), ("devices",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec())


# Compiled once for each mesh.
@functools.cache
def _gatherer(mesh: Mesh) -> Callable[[Params], Params]:
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda params: params, out_shardings=whole)


def fetch_pipelined(dispatched: Iterable[Tree]) -> Iterator[Tree]:
    """Fetches results from the devices to the host, in order, a few behind dispatch.

    Args:
      dispatched: pytrees of arrays; taking the next one dispatches its computation.

    Example:
      >>> begin = jax.jit(lambda x: x * x)
      >>> [int(square) for square in fetch_pipelined(begin(x) for x in range(4))]
      [0, 1, 4, 9]
    """
    waiting: deque[Tree] = deque()
    for one in dispatched:
        waiting.append(one)
        if len(waiting) >= MAX_IN_FLIGHT:
            yield jax.device_get(waiting.popleft())
    while waiting:
        yield jax.device_get(waiting.popleft())
