"""Estimates what a compiled program costs on its devices, from its HLO text.

A TPU's compiler writes its own estimate of cycles beside each fusion. In a program for
a GPU each operation takes the longer of two times: that of its bytes, as if none stayed
in a cache, and that of its matrix products. Both are floors of the program, good for
comparing programs: the time between operations, for one, is not in them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from math import prod

import numpy as np

from t2t_jax.devices.topology import Topology
from t2t_jax.training.reporting.profiler import (
    Instruction,
    categorize_ops,
    computations_of,
)

REACHED = 0.8
"""Share of a data sheet's products and links that large ones reach."""

_ARRAY = re.compile(r"\b(?:pred|[a-z]+(8|16|32|64))\[([\d,]*)\]")
_CALLED = re.compile(
    r"(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.\-]+)"
)
_COLLECTIVE = re.compile(
    "(all-(?:reduce|gather|to-all)|reduce-scatter|collective-permute)(-start|-done)?"
)
_MESH_GROUP = re.compile(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}")
_LISTED_GROUP = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_STRIDED_GROUP = re.compile(r"replica_groups=\[\d+,(\d+)\]<=\[(\d+)\](?!T)")
_FREE = frozenset(
    "parameter get-tuple-element tuple constant bitcast after-all partition-id "
    "opt-barrier copy-start copy-done async-done".split()
)
_CALLERS = ("while", "call", "conditional", "async-start")
_SLICES = {"dynamic-slice", "gather", "slice"}


@dataclass
class Collective:
    """What one kind of collective costs a device in a step.

    Attributes:
      bytes: that a device sends.
      ms: on the links, if nothing else uses them.
      exposed_ms: of these, those in which the device waits and computes nothing.
    """

    kind: str
    count: int = 0
    bytes: float = 0.0
    ms: float = 0.0
    exposed_ms: float = 0.0


class ProgramCosts:
    """Estimates of one run of a program on one device.

    It walks through the schedule with two clocks, of the device and of its links.

    Args:
      text: of the compiled program, `compiled.as_text()`.

    Attributes:
      ms: in all, those in which it waits for links included.
      flops: of matrix products, and of kernels that say theirs.
      bytes: read and written, as if there were no cache.
      bounds: milliseconds by what they are bound by: memory, products, links.
      parts: milliseconds by (section of the model, forward or backward), the longest
        first; links apart.
      calls: number of calls of kernels outside of the compiler, by target.
    """

    def __init__(self, text: str, topology: Topology):
        self._topology, self._target = topology, topology.target
        self._computations = computations_of(text)
        self._shapes = {
            (name, line.name): line.shape
            for name, lines in self._computations.items()
            for line in lines
        }
        self.ms = self._links_free = self.flops = self.bytes = 0.0
        self.calls: Counter[str] = Counter()
        self.collectives: dict[str, Collective] = {}
        self.bounds: dict[str, float] = defaultdict(float)
        self._arrivals: dict[str, tuple[float, Collective]] = {}
        parts: dict[tuple[str, str], float] = defaultdict(float)
        self._categories, self._parts = categorize_ops(text), parts
        self._walk(next(reversed(self._computations)), 1)  # the entry is the last
        self.parts = dict(sorted(parts.items(), key=lambda item: -item[1]))

    def _walk(self, computation: str, times: int) -> None:
        """Adds the costs of a computation that runs so many times."""
        for line in self._computations.get(computation, ()):
            if found := _COLLECTIVE.fullmatch(line.opcode):
                if found[2] != "-done":
                    self._send(computation, line, found[1], times)
                if found[2] != "-start":
                    self._wait(line.operands[0] if found[2] else line.name, times)
            elif line.opcode in _CALLERS:
                began = self.ms
                # A loop counts once where the compiler does not know its length.
                trips = line.number("known_trip_count.*?n") or 1
                for called in _CALLED.findall(line.rest):
                    self._walk(called, times * trips)
                self.ms += (trips - 1) * (self.ms - began)
            elif line.opcode not in _FREE:
                self._compute(computation, line, times)

    def _compute(self, computation: str, line: Instruction, times: int) -> None:
        moved, flops = self._moved(computation, line), self._flops(computation, line)
        memory = 1e3 * moved / self._target.bandwidth
        products = 1e3 * flops / (REACHED * self._target.peak)
        ms = max(memory, products)
        if call := re.search(r'custom_call_target="([^"]*)"', line.rest):
            self.calls[call[1]] += times
        if not self._target.gpu and "tpu_custom_call" not in line.rest:
            # Without cycles it is part of another operation.
            ms = 1e3 * line.number("estimated_cycles") / self._target.clock
        self.ms += ms
        self.bytes += times * moved
        self.flops += times * flops
        self.bounds["memory" if memory >= products else "products"] += times * ms
        part = self._categories[line.name].part
        direction = "backward" if "transpose(" in line.rest else "forward"
        if part in ("optimizer", "unnamed"):
            direction = ""
        self._parts[part, direction] += times * ms

    def _send(self, computation: str, line: Instruction, kind: str, times: int) -> None:
        """Puts a collective on the links."""
        group = _group(line.rest, prod(self._topology.shape))
        near = sum(device < self._topology.linked for device in group)
        link = self._target.link
        if self._target.gpu and near < len(group):
            # Each GPU of a host has a network adapter, and the ring runs through all.
            link = min(link, near * self._target.gpu.network)
        ring = (len(group) - 1) / len(group)
        factor = {"all-reduce": 2 * ring, "all-gather": len(group) - 1}.get(kind, ring)
        operands = (self._shapes.get((computation, o), "") for o in line.operands)
        sent = factor * sum(map(_size, operands))
        ms = 1e3 * sent / (REACHED * link)
        entry = self.collectives.setdefault(kind, Collective(kind))
        entry.count += times
        entry.bytes += times * sent
        entry.ms += times * ms
        self._links_free = max(self.ms, self._links_free) + ms
        self._arrivals[line.name] = self._links_free, entry

    def _wait(self, name: str, times: int) -> None:
        arrival, entry = self._arrivals.pop(name)
        exposed = max(0.0, arrival - self.ms)
        entry.exposed_ms += times * exposed
        self.bounds["links"] += times * exposed
        self.ms += exposed

    def _moved(self, computation: str, line: Instruction) -> int:
        """Counts the bytes that are read and written; of slices, their own."""
        inner, inside, names = computation, [line], line.operands
        if line.opcode == "fusion":
            inner = _CALLED.findall(line.rest)[0]
            inside = self._computations.get(inner, [])
            found = (x for x in inside if x.opcode == "parameter")
            numbered = {x.rest.partition(")")[0]: x.name for x in found}
            names = [numbered.get(str(number), "") for number in range(len(names))]
        result, moved = _size(line.shape), 0
        for outer, name in zip(line.operands, names, strict=True):
            size = _size(self._shapes.get((computation, outer), ""))
            users = [x for x in inside if name in x.operands]
            kinds = {x.opcode if x.operands[0] == name else "" for x in users}
            if kinds == {"dynamic-update-slice"} and len(users) == 1:
                # It is updated in place: only the update moves.
                update = _size(self._shapes.get((inner, users[0].operands[1]), ""))
                result, size = result - (size - update), update
            elif kinds and kinds <= _SLICES:
                size = min(size, sum(_size(x.shape) for x in users))
            moved += size
        return moved + max(result, 0)

    def _flops(self, computation: str, line: Instruction) -> float:
        """Counts the operations of an instruction's matrix products."""
        shapes = [self._shapes.get((computation, o), "") for o in line.operands]
        if line.opcode == "dot":
            axes = re.findall(r"lhs_contracting_dims=\{([\d,]*)\}", line.rest)[0]
            contracted = [_dims(shapes[0])[int(n)] for n in axes.split(",") if n]
            return 2.0 * prod(_dims(line.shape) + contracted)
        if line.opcode == "custom-call":
            heads = [dims for dims in map(_dims, shapes) if len(dims) == 4]
            if "attention/" not in line.rest or len(heads) < 2:
                return line.number("flops")  # what a Pallas kernel says of itself
            # Two products forward, five backward. Queries and keys are [B, T, H, D] for
            # cuDNN, [B, H, T, D] on TPUs.
            products = 5 if "transpose(" in line.rest else 2
            length = heads[1][1 if self._target.gpu else 2]
            return 2.0 * products * prod(heads[0]) * length
        return sum(
            self._flops(called, inner)
            for called in _CALLED.findall(line.rest)
            for inner in self._computations.get(called, ())
        )


def _dims(shape: str) -> list[int]:
    """Returns the dimensions of the first array of a shape."""
    found = _ARRAY.search(shape)
    return [int(n) for n in found[2].split(",") if n] if found else []


def _size(shape: str) -> int:
    """Returns the bytes of a shape, which may be a tuple.

    Example:
      >>> _size("(f32[2,3]{1,0}, bf16[4]{0})")
      32
    """
    return sum(
        int(bits or 8) // 8 * prod(int(n) for n in dims.split(",") if n)
        for bits, dims in _ARRAY.findall(shape)
    )


def _group(text: str, devices: int) -> list[int]:
    """Returns the devices of the first group of a collective; all where it has none.

    Example:
      >>> _group("replica_groups=mesh['a'=2,'b'=4] {'a'}, channel_id=1", 8)
      [0, 4]
      >>> _group("replica_groups={{1,3},{0,2}}", 4)
      [1, 3]
      >>> _group("replica_groups=[4,2]<=[8]", 8)
      [0, 1]
    """
    if listed := _LISTED_GROUP.search(text):
        return [int(n) for n in listed[1].split(",")]
    if strided := _STRIDED_GROUP.search(text):
        return list(range(int(strided[1])))
    if not (found := _MESH_GROUP.search(text)):
        return list(range(devices))
    axes = re.findall(r"'(\w+)'=(\d+)", found[1])
    sizes = [int(size) for _, size in axes]
    picked = tuple(slice(None) if f"'{a}'" in found[2] else 0 for a, _ in axes)
    return [int(n) for n in np.arange(prod(sizes)).reshape(sizes)[picked].flat]
