"""Reads of a trace what took the devices' time."""

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
    """Something that a device has done.

    Attributes:
      name: `module/operation`; another program may have an operation of that name.
      begin: in nanoseconds, on the clock of the trace.
      end: likewise.
    """

    name: str
    begin: int
    end: int


def operations(plane: Any) -> Iterator[Operation]:
    """Yields what a trace says of the compiled operations of a device.

    Args:
      plane: the device's, of a `jax.profiler.ProfileData`.
    """
    # A CPU hands its larger products over to other threads, and goes on. Their end is
    # an event of its own, which has the number of what it ends.
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
    """Adds up nanoseconds by operation, each moment being of the one that began last.

    So what a loop does counts, and not the loop; and the sum is the time in which
    anything was done.

    Example:
      >>> self_times([Operation("loop", 0, 10), Operation("dot", 2, 5)])
      Counter({'loop': 7, 'dot': 3})
    """
    times: Counter[str] = Counter()
    under_way: list[Operation] = []
    order = sorted(done, key=lambda one: (one.begin, -one.end))
    last = max((one.end for one in order), default=0)
    limits = [one.begin for one in order[1:]] + [last]
    for begun, limit in zip(order, limits, strict=False):
        under_way.append(begun)
        now = begun.begin
        while under_way and now < limit:
            latest = under_way[-1]
            until = min(latest.end, limit)
            times[latest.name] += max(0, until - now)
            now = max(now, until)
            if latest.end <= limit:
                under_way.pop()
    return times


def percentages(nanoseconds: Mapping[str, float]) -> str:
    """Puts times into words, as shares of their sum; the largest first.

    Example:
      >>> percentages({"reductions": 1.0, "matrix products": 3.0})
      'matrix products 75.0 %, reductions 25.0 %'
    """
    whole = sum(nanoseconds.values())
    largest = Counter(nanoseconds).most_common()
    return ", ".join(f"{name} {100 * time / whole:.1f} %" for name, time in largest)


def summary(file: Path, roles: Mapping[str, OpCategory]) -> str:
    """Says where the time went; of a trace without operations, that it has none.

    Args:
      file: the trace, an `.xplane.pb`.
      roles: of the operations of the step, by `module/operation`.
    """
    kinds: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    whole = 0.0
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        done = list(operations(plane))
        if done:
            whole += max(one.end for one in done) - min(one.begin for one in done)
        for name, nanoseconds in self_times(done).items():
            role = roles.get(name, _UNKNOWN)
            kinds[role.kind] += nanoseconds
            parts[role.part] += nanoseconds
    if not whole:
        return "The trace does not say which operations the devices made."
    return (
        f"The devices were busy for {100 * kinds.total() / whole:.1f} % of the time "
        f"between the first and the last operation: {percentages(kinds)}.\n"
        f"By parts of the step: {percentages(parts)}."
    )
