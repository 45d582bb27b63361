"""Work that processes share and put together: lines of text, and whole parameters."""

from __future__ import annotations

import functools
import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import DataError
from t2t_jax.types import Params, PyTree

_GIVEN_UP = "given up"
_CODEC = ("utf-8", "surrogatepass")


class Cancelled(Exception):
    """What was being done is broken off, since the process has been asked to stop."""


def allgather_strings(
    lines: Sequence[str], processes: Processes = SINGLE_PROCESS
) -> list[list[str]]:
    """Gives every process the lines of all.

    All processes must come here, and their devices carry the text.

    Args:
      lines: of this process, any number of any strings.
      processes: all of them; one alone communicates with nobody.

    Returns:
      The lines of each process, that of index 0 first.

    Example:
      >>> allgather_strings(["ein Hund", ""])
      [['ein Hund', '']]
    """
    if processes.count == 1:
        return [list(lines)]
    from jax.experimental import multihost_utils

    # Whatever a Python string holds, half surrogates too.
    encoded = json.dumps(list(lines), ensure_ascii=False).encode(*_CODEC)
    text = np.frombuffer(encoded, np.uint8)
    sizes = multihost_utils.process_allgather(np.asarray(text.size, np.int32))
    # A power of two, as every length of an array is a program to compile.
    padded = np.zeros(1 << (int(sizes.max()) - 1).bit_length(), np.uint8)
    padded[: text.size] = text
    texts = multihost_utils.process_allgather(padded)
    return [
        json.loads(row[:size].tobytes().decode(*_CODEC))
        for row, size in zip(texts, sizes, strict=True)
    ]


def map_lines_across_processes(
    translate: Callable[[list[str], int], list[str]],
    lines: Sequence[str],
    processes: Processes = SINGLE_PROCESS,
) -> list[str]:
    """Lets each process translate a share of the lines.

    A share is lines that follow one another, so that each of them keeps its number,
    and is about as much text as the others. All processes must come here with the same
    lines.

    Args:
      translate: gets n lines and how many there are before them; returns n strings in
        the same order.
      lines: all of them, on every process.

    Returns:
      All translations on every process, in the order of `lines`.

    Raises:
      DataError: a share has come back with more lines or fewer.
      GivenUp: `translate` has raised that on some process.

    Example:
      >>> def shout(lines, first):
      ...     return [f"{first + n}: {line.upper()}" for n, line in enumerate(lines)]
      >>> map_lines_across_processes(shout, ["a", "b"])
      ['0: A', '1: B']
    """
    if processes.count == 1:
        return translate(list(lines), 0)
    shares = _shares(lines, processes.count)
    mine = shares[processes.index]
    try:
        told = ["", *translate(list(lines[mine.start : mine.stop]), mine.start)]
    except Cancelled:
        told = [_GIVEN_UP]
    gathered = allgather_strings(told, processes)
    if any(head == _GIVEN_UP for head, *_ in gathered):
        raise Cancelled
    for index, (share, (_, *translated)) in enumerate(
        zip(shares, gathered, strict=True)
    ):
        if len(share) != len(translated):
            raise DataError(
                f"{len(share)} lines must become as many translations, and process "
                f"{index} has made {len(translated)}. Give all processes the same "
                "lines."
            )
    return [text for _, *translated in gathered for text in translated]


def _shares(lines: Sequence[str], count: int) -> list[range]:
    """Cuts lines into stretches of about as much text."""
    # A line of no length takes its time too.
    ends = list(accumulate(len(line) + 1 for line in lines))
    total = ends[-1] if ends else 0
    # A line belongs where the larger part of it lies.
    middles = [end - (len(line) + 1) / 2 for end, line in zip(ends, lines, strict=True)]
    cuts = [bisect_left(middles, total * index / count) for index in range(count + 1)]
    cuts[-1] = len(lines)
    return [range(*pair) for pair in pairwise(cuts)]


def replicate(tree: PyTree, devices: Sequence[jax.Device] | None = None) -> PyTree:
    """Copies arrays onto each of several devices of this process.

    Args:
      devices: None means all of this process's.

    Returns:
      The same pytree, all of it on every device.

    Example:
      >>> len(replicate(np.ones(7), jax.local_devices()[:1]).sharding.device_set)
      1
    """
    return jax.device_put(tree, _whole_on(devices or jax.local_devices()))


def gather_to_local_devices(params: Params) -> Params:
    """Gives each device of this process all of parameters that a mesh holds.

    Where the mesh reaches over several processes, all of them must come here.

    Args:
      params: arrays on one mesh, split or not; on a single device they are left there.

    Returns:
      The same on the devices of the mesh that are this process's, and on no others:
      what each process may use by itself. What was whole already is not copied.

    Example:
      >>> whole = gather_to_local_devices(replicate({"bias": np.ones(5)}))
      >>> whole["bias"].is_fully_replicated
      True
    """
    placed = [x.sharding for x in jax.tree.leaves(params) if isinstance(x, jax.Array)]
    meshes = [x.mesh for x in placed if isinstance(x, NamedSharding)]
    if not meshes:
        return params
    if not all(sharding.is_fully_replicated for sharding in placed):
        params = _gatherer(meshes[0])(params)
    devices = meshes[0].local_devices
    whole = _whole_on(devices)

    def hold(leaf: jax.Array) -> jax.Array:
        parts = {shard.device: shard.data for shard in leaf.addressable_shards}
        return jax.make_array_from_single_device_arrays(
            leaf.shape, whole, [parts[device] for device in devices]
        )

    return jax.tree.map(hold, params)


def _whole_on(devices: Sequence[jax.Device]) -> NamedSharding:
    mesh = Mesh(np.asarray(devices), ("devices",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec())


@functools.cache
def _gatherer(mesh: Mesh) -> Callable[[Params], Params]:
    """Makes the program that copies every part to every device of the mesh."""
    gather: Callable[[Params], Params] = jax.jit(
        lambda params: params, out_shardings=NamedSharding(mesh, PartitionSpec())
    )
    return gather
