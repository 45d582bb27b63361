"""Parts of a training step, each against the least time that this machine needs for it.

The floor of a part is the longer of two times: its matrix products at the rate of one
large product, and what must be read and written (its arguments and its results, each
once) at the rate of a large array that is negated in place. Both rates are measured
here, on the same device and threads. Arrays that fit into a cache can be faster than
such a floor.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
from contest import Work
from step_parts import Part, Parts

_ROUNDS = 5
_ROUND_SECONDS = 0.2


class Components:
    """The parts of our own step, at the sizes of some work, as a contestant."""

    def __init__(self, work: Work):
        self._on_gpu = work.device == "gpu"
        self._parts = Parts(work)

    def measure(self) -> dict[str, Any]:
        """Measures the two rates, and then every part."""
        flop_rate, byte_rate = self._flop_rate(), self._byte_rate()
        parts = [
            beside_floor(_measured(part), flop_rate, byte_rate)
            for part in self._parts.all()
        ]
        return {
            "dtype": self._parts.dtype,
            "tflops": flop_rate / 1e12,
            "gigabytes_per_second": byte_rate / 1e9,
            "parts": parts,
            **{
                f"sum_{key}": sum(
                    part[key] * part["times"] for part in parts if not part["within"]
                )
                for key in ("ms", "floor_ms")
            },
        }

    def _flop_rate(self) -> float:
        side = 8192 if self._on_gpu else 2048
        matrix = self._parts.drawn(side, side)
        seconds = _seconds(
            Part("product", lambda _, x, y: ((), x @ y), arguments=(matrix, matrix))
        )
        return 2 * side**3 / seconds

    def _byte_rate(self) -> float:
        numbers = jnp.ones(2**28 if self._on_gpu else 2**26, jnp.float32)
        moved = 2 * numbers.nbytes
        return moved / _seconds(Part("negation", lambda x: (-x, ()), state=numbers))


def beside_floor(
    part: dict[str, Any], flop_rate: float, byte_rate: float
) -> dict[str, Any]:
    """Adds to what a part takes the least that it could take.

    Args:
      part: with `ms`, `gflop` and `megabytes`.
      flop_rate: operations a second of matrix products.
      byte_rate: bytes a second, read or written.

    Returns:
      The same with `floor_ms` and `ratio`.

    Example:
      >>> part = beside_floor({"ms": 9.0, "gflop": 2.0, "megabytes": 3.0}, 1e12, 1e9)
      >>> part["floor_ms"], part["ratio"]
      (3.0, 3.0)
    """
    computing, moving = part["gflop"] / flop_rate, part["megabytes"] / byte_rate
    floor = max(1e12 * computing, 1e9 * moving)
    return {**part, "floor_ms": floor, "ratio": part["ms"] / floor}


def _measured(part: Part) -> dict[str, Any]:
    results = jax.eval_shape(part.function, part.state, *part.arguments)
    moved = jax.tree.leaves((part.state, part.arguments, results))
    return {
        "name": part.name,
        "times": part.times,
        "within": part.within,
        "gflop": part.flops / 1e9,
        "megabytes": sum(x.size * x.dtype.itemsize for x in moved) / 1e6,
        "ms": 1e3 * _seconds(part),
    }


def _seconds(part: Part) -> float:
    """Times one call, in the best of rounds of as many as take a fifth of a second.

    The best, and not the median: what disturbs a round only makes it longer, and a
    floor is what the machine can do.
    """
    compiled = jax.jit(part.function, donate_argnums=0)
    state, calls, rounds = part.state, 1, []
    for number in range(_ROUNDS + 2):
        began = time.perf_counter()
        for _ in range(calls):
            state, results = compiled(state, *part.arguments)
        jax.block_until_ready((state, results))
        one = (time.perf_counter() - began) / calls
        if number == 1:  # The first round compiled.
            calls = max(1, round(_ROUND_SECONDS / one))
        elif number > 1:
            rounds.append(one)
    return min(rounds)
