"""Summarizes the device time of a trace by what the step's operations are for.

Their categories are read from the HLO text of the compiled step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import jax


class OpCategory(NamedTuple):
    """The category of an operation of a compiled program.

    Attributes:
      kind: matrix products, elementwise, …
      part: feed-forward, attention, optimizer, …
    """

    kind: str
    part: str


class _Instruction(NamedTuple):
    """An instruction: name, opcode, called computations, and name in JAX."""

    name: str
    opcode: str
    called: tuple[str, ...]
    scope: str


_MODULE = re.compile(r"HloModule ([\w.\-]+)")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][\w\-]*)\("
)
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.\-]+)")
_SCOPE = re.compile(r'op_name="([^"]*)"')
_PRODUCTS = re.compile(r'custom_call_target="[^"]*(?:gemm|matmul|fmha|dot|conv)')
_CALLERS = ("fusion", "call", "async-start")

# The first entry that matches one of an operation's opcodes is its kind.
_KINDS = (
    (
        "exchange between devices",
        r"all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute",
    ),
    ("matrix products", "dot|convolution"),
    ("gathers and scatters", "gather|scatter|sort"),
    ("reductions", "reduce$|reduce-window"),
)
# Operations of only these opcodes are copies.
_MOVES = frozenset(
    "bitcast broadcast call concatenate constant copy copy-done copy-start "
    "dynamic-slice dynamic-update-slice fusion get-tuple-element iota pad parameter "
    "reshape reverse slice transpose tuple".split()
)

# The first entry found in an operation's name in JAX is its part, forward and backward.
# A sub-layer is called by the "Add & Norm" around it, so its name is inside.
_PARTS = (
    ("attention", r"attention[./]"),
    ("feed-forward", r"feed_forward[./]"),
    ("recurrent layers", "lstm|cell|forwards_|backwards_|attentive_"),
    ("add and norm", "norm/"),
    ("logits", r"\.logits|readout"),
    ("embeddings", "coder|embed|positions"),
    ("loss", "jvp"),
    ("optimizer", r"jit\("),
    ("unnamed", ""),
)


def categorize_all(programs: Iterable[str]) -> dict[str, OpCategory]:
    """Categorizes the operations of several programs.

    Args:
      programs: HLO texts as in `categorize_ops`, one for each batch shape, all with the
        same module name.

    Returns:
      The categories by `module/operation`, without those that differ between programs.
    """
    found: dict[str, OpCategory] = {}
    differing = set()
    for program in programs:
        module = _MODULE.match(program)
        for name, category in categorize_ops(program).items():
            key = f"{module[1]}/{name}" if module else name
            if found.setdefault(key, category) != category:
                differing.add(key)
    return {key: category for key, category in found.items() if key not in differing}


def categorize_ops(program: str) -> dict[str, OpCategory]:
    """Categorizes the operations of a program, by their names.

    Args:
      program: the HLO text, `compiled.as_text()`.

    Example:
      >>> categorize_ops('''
      ... ENTRY %main (x: f32[2,2]) -> f32[2,2] {
      ...   ROOT %y = f32[2,2] dot(%x, %x), metadata={op_name="jit(a)/feed_forward/b"}
      ... }
      ... ''')
      {'y': OpCategory(kind='matrix products', part='feed-forward')}
    """
    computations = dict(_computations(program))
    return {
        line.name: OpCategory(
            _kind(_opcodes(line, computations)), _part(_scope(line, computations))
        )
        for lines in computations.values()
        for line in lines
    }


def _computations(program: str) -> Iterator[tuple[str, list[_Instruction]]]:
    """Parses a program into its computations: (name, instructions)."""
    name = ""
    found: list[_Instruction] = []
    for line in program.splitlines():
        if begin := _COMPUTATION.match(line):
            name, found = begin[1], []
        elif line.startswith("}"):  # That of another thread has its name after it.
            yield name, found
        elif read := _INSTRUCTION.match(line):
            scope = _SCOPE.search(line)
            opcode = "dot" if _PRODUCTS.search(line) else read[2]
            called = _CALLED.findall(line) if opcode in _CALLERS else ()
            found.append(
                _Instruction(read[1], opcode, tuple(called), scope[1] if scope else "")
            )


def _opcodes(
    line: _Instruction, computations: Mapping[str, list[_Instruction]]
) -> set[str]:
    """Returns the opcodes of an instruction and of what is fused into it."""
    inside = (
        _opcodes(x, computations) for c in line.called for x in computations.get(c, ())
    )
    return {line.opcode}.union(*inside)


def _scope(line: _Instruction, computations: Mapping[str, list[_Instruction]]) -> str:
    """Returns an instruction's name in JAX, or that of the last one inside it."""
    if line.scope.startswith("jit("):
        return line.scope
    inside = (
        _scope(x, computations)
        for c in line.called
        for x in computations.get(c, ())[::-1]
    )
    return next(filter(None, inside), "")


def _kind(opcodes: Set[str]) -> str:
    for kind, pattern in _KINDS:
        if any(re.match(pattern, opcode) for opcode in opcodes):
            return kind
    return "copies" if opcodes <= _MOVES else "elementwise"


def _part(scope: str) -> str:
    return next(part for part, pattern in _PARTS if re.search(pattern, scope))


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
