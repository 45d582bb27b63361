"""Categorizes the operations of a compiled training step from its HLO text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple


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
