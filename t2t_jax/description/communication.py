"""What the devices tell one another in a step, read from the compiled program."""

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
"""The ways in which XLA lets devices exchange arrays."""

_ARRAY = re.compile(r"\b(?:pred|[a-z]+(\d+)\w*)\[([\d,]*)\]")  # bits, shape
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_ENTRY = "ENTRY "
_EXCHANGE = re.compile(rf" = (.*?) ({'|'.join(KINDS)})(-start)?\(")
_LOOP = re.compile(r" while\(.*body=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(
    r" (?:call|conditional|async-start)\(.*?"
    r"(?:calls|to_apply|branch_computations)=(\{.*?\}|\S+)"
)


def collective_bytes(program: str) -> dict[str, int]:
    """Adds up the arrays that a compiled program exchanges, on one device.

    Args:
      program: `compiled.as_text()`, XLA's own.

    Returns:
      Bytes by kind, of what a device has after the exchange; kinds that do not occur
      are left out. The body of a loop counts as often as it runs, where XLA knows. What
      a TPU's compiler fuses with other operations, as it does on split parameters, is
      not found.

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
    total = _of(entry, computations)
    return {kind: total[kind] for kind in KINDS if total[kind]}


def _computations(program: str) -> Iterator[tuple[str, list[str]]]:
    """Cuts a program into its computations: (name, lines); the entry is marked."""
    name, lines = "", []
    for line in program.splitlines():
        if begin := _COMPUTATION.match(line):
            name, lines = begin[1], [_ENTRY] * line.startswith(_ENTRY)
        elif line == "}":
            yield name, lines
        else:
            lines.append(line)


def _of(name: str, computations: Mapping[str, list[str]]) -> Counter[str]:
    """Adds up a computation and all that it calls."""
    total: Counter[str] = Counter()
    for line in computations.get(name, ()):
        if found := _EXCHANGE.search(line):
            arrays, kind, start = found.groups()
            total[kind] += _bytes_of(arrays, only_last=bool(start))
        elif found := _LOOP.search(line):
            trips = _TRIPS.search(line)
            inside = _of(found[1], computations)
            for kind, size in inside.items():
                total[kind] += size * (int(trips[1]) if trips else 1)
        elif found := _CALLED.search(line):
            for called in re.findall(r"[\w.\-]+", found[1]):
                total += _of(called, computations)
    return total


def _bytes_of(arrays: str, *, only_last: bool) -> int:
    """Adds up the bytes of the arrays of a type, as XLA writes it.

    Args:
      arrays: such as `(f32[2,3]{1,0}, s32[])`.
      only_last: whether the first half are operands, as where an exchange only starts.
    """
    sizes = [
        math.prod(int(n) for n in shape.split(",") if n) * int(bits or 8) // 8
        for bits, shape in _ARRAY.findall(arrays)
    ]
    return sum(sizes[len(sizes) // 2 :] if only_last and len(sizes) > 1 else sizes)
