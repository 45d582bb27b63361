"""Sizes of the collectives of a compiled step."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
)
"""Collective operations of XLA."""

_ARRAY = re.compile(r"\b(?:pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")  # bits, shape
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_ENTRY = "ENTRY "
_COLLECTIVE = re.compile(rf" = (.*?) ({'|'.join(KINDS)})(-start)?\(")
_LOOP = re.compile(r" while\(.*body=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(
    r" (?:call|conditional|async-start)\(.*?"
    r"(?:calls|to_apply|branch_computations)=(\{.*?\}|\S+)"
)


def collective_bytes(program: str) -> dict[str, int]:
    """Sums the bytes that a compiled program exchanges, on one device.

    Args:
      program: `compiled.as_text()`, XLA's HLO.

    Returns:
      Bytes of the results by kind; kinds that do not occur are left out. The body of a
      loop counts as often as it runs, if XLA knows the trip count. Collectives that a
      TPU compiler fuses with other operations, as for sharded parameters, are not
      found.

    Example:
      >>> program = '''
      ... ENTRY %main (x: f32[2,3]) -> f32[2,3] {
      ...   ROOT %y = f32[2,3]{1,0} all-reduce(%x), to_apply=%add
      ... }
      ... '''
      >>> collective_bytes(program)
      {'all-reduce': 24}
    """
    computations = dict(_computations(program))
    entry = next((n for n, lines in computations.items() if lines[:1] == [_ENTRY]), "")
    total = _total_of(entry, computations)
    return {kind: total[kind] for kind in KINDS if total[kind]}


def _computations(program: str) -> Iterator[tuple[str, list[str]]]:
    """Splits a program into computations (name, lines) and marks the entry."""
    name, lines = "", []
    for line in program.splitlines():
        if begin := _COMPUTATION.match(line):
            name, lines = begin[1], [_ENTRY] * line.startswith(_ENTRY)
        elif line == "}":
            yield name, lines
        else:
            lines.append(line)


def _total_of(name: str, computations: Mapping[str, list[str]]) -> Counter[str]:
    """Sums a computation and all that it calls."""
    total: Counter[str] = Counter()
    for line in computations.get(name, ()):
        if found := _COLLECTIVE.search(line):
            arrays, kind, start = found.groups()
            total[kind] += _bytes_of(arrays, only_last=bool(start))
        elif found := _LOOP.search(line):
            trips = _TRIPS.search(line)
            inside = _total_of(found[1], computations)
            for kind, size in inside.items():
                total[kind] += size * (int(trips[1]) if trips else 1)
        elif found := _CALLED.search(line):
            for called in re.findall(r"[\w.\-]+", found[1]):
                total += _total_of(called, computations)
    return total


def _bytes_of(arrays: str, *, only_last: bool) -> int:
    """Sums the bytes of an HLO type; `only_last` skips the operands of a start op."""
    sizes = [
        math.prod(int(n) for n in shape.split(",") if n) * int(bits or 8) // 8
        for bits, shape in _ARRAY.findall(arrays)
    ]
    return sum(sizes[len(sizes) // 2 :] if only_last and len(sizes) > 1 else sizes)
