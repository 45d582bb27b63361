"""How far the host runs ahead of the devices."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import jax

Tree = TypeVar("Tree")

MAX_IN_FLIGHT = 8
"""Computations that are begun before the first is waited for.

Enough to hide the host's work; more would hold what they read in the devices' memory.
And where a CPU plays several devices, XLA lets 32 wait on each: with more that exchange
anything, the devices wait for one another, and none ever ends.
"""


def fetch_pipelined(
    begun: Iterable[Tree], at_once: int = MAX_IN_FLIGHT
) -> Iterator[Tree]:
    """Brings results from the devices to the host, in order, a few computations behind.

    Args:
      begun: pytrees of arrays; taking the next one begins its computation.
      at_once: how many may be begun and not yet brought.

    Yields:
      The pytrees, of NumPy arrays.

    Example:
      >>> begin = jax.jit(lambda x: x * x)
      >>> [int(square) for square in fetch_pipelined(begin(x) for x in range(4))]
      [0, 1, 4, 9]
    """
    waiting: deque[Tree] = deque()
    for one in begun:
        waiting.append(one)
        if len(waiting) >= at_once:
            yield jax.device_get(waiting.popleft())
    while waiting:
        yield jax.device_get(waiting.popleft())
