"""Fetches results from the devices a few computations behind their dispatch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import jax

Tree = TypeVar("Tree")

MAX_IN_FLIGHT = 8
"""Computations dispatched before the first one is fetched.

Enough to hide the host's work; more would keep more inputs in device memory. With
several simulated CPU devices XLA blocks after 32 computations per device, and more in
flight deadlock as soon as they communicate.
"""


def fetch_pipelined(
    dispatched: Iterable[Tree], at_once: int = MAX_IN_FLIGHT
) -> Iterator[Tree]:
    """Fetches results from the devices to the host, in order, a few behind dispatch.

    Args:
      dispatched: pytrees of arrays; taking the next one dispatches its computation.
      at_once: the most computations in flight.

    Example:
      >>> begin = jax.jit(lambda x: x * x)
      >>> [int(square) for square in fetch_pipelined(begin(x) for x in range(4))]
      [0, 1, 4, 9]
    """
    waiting: deque[Tree] = deque()
    for one in dispatched:
        waiting.append(one)
        if len(waiting) >= at_once:
            yield jax.device_get(waiting.popleft())
    while waiting:
        yield jax.device_get(waiting.popleft())
