"""Summarizes the device time of a trace by category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

from t2t_jax.training.profiling.hlo_categories import OpCategory

_UNKNOWN = OpCategory("other programs", "other programs")
_END = "end: "


class Operation(NamedTuple):
    """An executed operation.

    Attributes:
      name: `module/operation`; operations of other programs may have the same name.
      begin: in nanoseconds, as `end`, on the clock of the trace.
    """

    name: str
    begin: int
    end: int


def operations(plane: Any) -> Iterator[Operation]:
    """Yields the operations of a device, a plane of a `jax.profiler.ProfileData`."""
    # A CPU runs larger products in other threads. Their end is a separate event, with
    # the id of the operation.
    ends = {
        (event.name.removeprefix(_END), dict(event.stats).get("_c")): event.start_ns
        for event in _events(plane)
        if event.name.startswith(_END)
    }
    for event in _events(plane):
        stats = dict(event.stats)
        if "hlo_op" in stats:
            end = ends.get((event.name, stats.get("_p")), event.end_ns)
            module = stats.get("hlo_module")
            name = f"{module}/{stats['hlo_op']}" if module else stats["hlo_op"]
            yield Operation(name, int(event.start_ns), int(max(end, event.end_ns)))


def _events(plane: Any) -> Iterator[Any]:
    for line in plane.lines:
        yield from line.events


def self_times(done: Iterable[Operation]) -> Counter[str]:
    """Sums nanoseconds by operation, each moment attributed to the latest one begun.

    So the body of a loop counts, and not the loop; the sum is the busy time.

    Example:
      >>> self_times([Operation("loop", 0, 10), Operation("dot", 2, 5)])
      Counter({'loop': 7, 'dot': 3})
    """
    times: Counter[str] = Counter()
    running: list[Operation] = []
    order = sorted(done, key=lambda one: (one.begin, -one.end))
    last = max((one.end for one in order), default=0)
    limits = [one.begin for one in order[1:]] + [last]
    for begun, limit in zip(order, limits, strict=False):
        running.append(begun)
        now = begun.begin
        while running and now < limit:
            latest = running[-1]
            until = min(latest.end, limit)
            times[latest.name] += max(0, until - now)
            now = max(now, until)
            if latest.end <= limit:
                running.pop()
    return times


def percentages(nanoseconds: Mapping[str, float]) -> str:
    """Formats times as shares of their sum, the largest first.

    Example:
      >>> percentages({"reductions": 1.0, "matrix products": 3.0})
      'matrix products 75.0 %, reductions 25.0 %'
    """
    total = sum(nanoseconds.values())
    largest = Counter(nanoseconds).most_common()
    return ", ".join(f"{name} {100 * time / total:.1f} %" for name, time in largest)


def summarize_trace(file: Path, categories: Mapping[str, OpCategory]) -> str:
    """Describes where the device time went.

    Args:
      file: the trace, an `.xplane.pb`.
      categories: categories of the step's operations, by `module/operation`.
    """
    kinds: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    total = 0.0
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        done = list(operations(plane))
        if done:
            total += max(one.end for one in done) - min(one.begin for one in done)
        for name, nanoseconds in self_times(done).items():
            category = categories.get(name, _UNKNOWN)
            kinds[category.kind] += nanoseconds
            parts[category.part] += nanoseconds
    if not total:
        return "The trace does not contain the operations of the devices."
    return (
        f"The devices were busy for {100 * kinds.total() / total:.1f} % of the time "
        f"between the first and the last operation: {percentages(kinds)}.\n"
        f"By parts of the step: {percentages(parts)}."
    )
