"""Traces some steps of a run with JAX's profiler, and logs a summary.

The summary has the device time by what the step's operations are for: their categories
are read from the HLO text of the compiled step.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from heapq import heappop, heappush
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax

from t2t_jax.devices.distributed.processes import barrier, current_processes, finishing


class Profiler:
    """Traces a range of steps; its failures do not end the run.

    Args:
      steps: their numbers; empty for none.
      folder: directory of the trace, created when needed.
    """

    def __init__(self, steps: range, *, folder: Path, log: Callable[[str], None]):
        self._steps, self._folder, self._log = steps, folder, log
        self._setting = f"profile.steps={steps.start}:{steps.stop - 1}"
        self._first = self._newest = 0
        self._is_open = self._is_tracing = False
        self._programs: Callable[[], Iterable[str]] = tuple

    def starts_at(self, step: int) -> bool:
        """Returns whether to call `start` before a step; the same on all processes."""
        return step in self._steps and not self._first

    def ends_at(self, step: int) -> bool:
        """Returns whether to call `stop` after a step; the same on all processes."""
        return self._is_open and step >= self._steps[-1]

    def start(self, step: int) -> None:
        """Starts the trace.

        Args:
          step: the first one in it; the devices must have finished those before it.
        """
        self._first, self._is_open = step, True
        with self._log_errors():
            options = jax.profiler.ProfileOptions()
            # Tracing Python calls slows the host down.
            options.python_tracer_level = 0
            jax.profiler.start_trace(
                self._folder, create_perfetto_trace=True, profiler_options=options
            )
            self._is_tracing = True

    def annotate(self, step: int) -> AbstractContextManager[object]:
        """Returns a context in which to dispatch a step, so that the trace names it."""
        if not self._is_tracing:
            return nullcontext()
        self._newest = step
        return jax.profiler.StepTraceAnnotation("train", step_num=step)

    def stop(self) -> None:
        """Writes the trace of steps that are finished; logs its path and summary."""
        self._write()
        # Collectives time out, in Gloo after 30 s, so all processes continue together.
        barrier(current_processes(), "write the profile")

    @contextmanager
    def stop_on_exit(
        self, made: int, *, programs: Callable[[], Iterable[str]] = tuple
    ) -> Iterator[None]:
        """Writes the trace on exit, if the run ends before its last step.

        Args:
          made: steps done before this process.
          programs: returns the HLO texts of the compiled steps.
        """
        self._programs = programs
        if self._steps and self._steps[-1] <= made:
            why = f"since this run is at step {made:,} already"
            self._log(f"{self._setting}: nothing is traced, {why}.")
        with finishing(current_processes(), self._write):
            yield

    def _write(self) -> None:
        self._is_open = False
        if not self._is_tracing:
            return
        self._is_tracing = False
        with self._log_errors():
            jax.profiler.stop_trace()
            files = self._folder.glob("plugins/profile/*/*.xplane.pb")
            file = max(files, key=lambda path: path.stat().st_mtime)
            self._log(
                f"Traced steps {self._first:,} to {self._newest:,}: open "
                f"perfetto_trace.json.gz of {file.parent} at https://ui.perfetto.dev, "
                f"or all of it with xprof --logdir={self._folder}."
            )
            self._log(summarize_trace(file, categorize_all(self._programs())))

    @contextmanager
    def _log_errors(self) -> Iterator[None]:
        """Logs errors instead of raising them."""
        try:
            yield
        except Exception as error:  # of any kind: training does not need a trace
            self._log(f"WARNING: Profiling failed ({self._setting}): {error}")


class OpCategory(NamedTuple):
    """The category of an operation of a compiled program.

    Attributes:
      kind: matrix products, elementwise, …
      part: feed-forward, attention, optimizer, …
    """

    kind: str
    part: str


_MODULE = re.compile(r"HloModule ([\w.\-]+)")
# A computation: its name, and its lines. Of another thread, it has a name after it.
_COMPUTATION = re.compile(
    r"^(?:ENTRY )?%?([\w.\-]+) [^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)
# Attributes of kernels for TPUs go on in lines of their own.
_CONTINUED = re.compile(r'\n(?=\}\}|"\w+":)')
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)", re.MULTILINE
)
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.\-]+)")
_SCOPE = re.compile(r'op_name="(jit\([^"]*)"')
_PRODUCTS = re.compile(r'custom_call_target="[^"]*(?:gemm|matmul|fmha|dot|conv)')
_CALLERS = ("fusion", "call", "async-start")

# The first entry that matches one of an operation's opcodes is its kind.
_KINDS = {
    "exchange between devices": re.compile("all-|reduce-scatter|collective-permute"),
    "matrix products": re.compile("dot|convolution"),
    "gathers and scatters": re.compile("gather|scatter|sort"),
    "reductions": re.compile("reduce$|reduce-window"),
}
# Operations of only these opcodes are copies.
_MOVES = frozenset(
    "bitcast broadcast call concatenate constant copy copy-done copy-start "
    "dynamic-slice dynamic-update-slice fusion get-tuple-element iota pad parameter "
    "reshape reverse slice transpose tuple".split()
)

# The first entry found in an operation's name in JAX is its part, forward and backward.
# A sub-layer is called by the "Add & Norm" around it, so its name is inside.
_PARTS = {
    "attention": r"attention[./]",
    "feed-forward": r"feed_forward[./]",
    "recurrent layers": "lstm|cell|forwards_|backwards_|attentive_",
    "add and norm": "norm/",
    "logits": r"[./]logits|readout",
    "embeddings": "coder|embed|positions",
    "loss": "jvp",
    "optimizer": r"jit\(",
    "unnamed": "",
}


def categorize_all(programs: Iterable[str]) -> dict[str, OpCategory]:
    """Categorizes the operations of several programs.

    Args:
      programs: HLO texts as in `categorize_ops`, one for each batch shape, all with the
        same module name.

    Returns:
      The categories by `module/operation`, without those that differ between programs.
    """
    found: defaultdict[str, set[OpCategory]] = defaultdict(set)
    for program in programs:
        module = _MODULE.match(program)
        for name, category in categorize_ops(program).items():
            found[f"{module[1]}/{name}" if module else name].add(category)
    return {key: each.pop() for key, each in found.items() if len(each) == 1}


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
    computations, categories = computations_of(program), {}
    for one in chain.from_iterable(computations.values()):
        inside = list(_inside(one, computations))
        opcodes = {"dot" if _PRODUCTS.search(x.rest) else x.opcode for x in inside}
        scopes = filter(None, (_SCOPE.search(x.rest) for x in reversed(inside)))
        scope = next((found[1] for found in scopes), "")
        usual = "copies" if opcodes <= _MOVES else "elementwise"
        kinds = (n for n, known in _KINDS.items() if any(map(known.match, opcodes)))
        parts = (part for part, known in _PARTS.items() if re.search(known, scope))
        categories[one.name] = OpCategory(next(kinds, usual), next(parts))
    return categories


class Instruction(NamedTuple):
    """An instruction of a program; `rest` is its line, from the first operand."""

    name: str
    shape: str
    opcode: str
    rest: str

    @property
    def operands(self) -> list[str]:
        """The names of its operands."""
        return re.findall(r"%([\w.\-]+)", self.rest.split("), ")[0])

    def number(self, pattern: str) -> int:
        """Returns the number behind a key of the compiler's; 0 if it is not there."""
        found = re.search(pattern + r'":"?(\d+)', self.rest)
        return int(found[1]) if found else 0


def computations_of(program: str) -> dict[str, list[Instruction]]:
    """Returns the instructions of each computation in the HLO text of a program."""
    found = _COMPUTATION.findall(_CONTINUED.sub(" ", program))
    return {
        name: [Instruction(*parts) for parts in _INSTRUCTION.findall(lines)]
        for name, lines in found
    }


def _inside(
    one: Instruction, computations: Mapping[str, list[Instruction]]
) -> Iterator[Instruction]:
    """Yields the instructions that are fused into one, and last that one."""
    for name in _CALLED.findall(one.rest) if one.opcode in _CALLERS else ():
        for inner in computations.get(name, ()):
            yield from _inside(inner, computations)
    yield one


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
    events = [event for line in plane.lines for event in line.events]
    ends = {
        (event.name.removeprefix(_END), dict(event.stats).get("_c")): event.start_ns
        for event in events
        if event.name.startswith(_END)
    }
    for event in events:
        stats = dict(event.stats)
        if "hlo_op" in stats:
            end = ends.get((event.name, stats.get("_p")), event.end_ns)
            module = stats.get("hlo_module")
            name = f"{module}/{stats['hlo_op']}" if module else stats["hlo_op"]
            yield Operation(name, int(event.start_ns), int(max(end, event.end_ns)))


def self_times(done: Iterable[Operation]) -> Counter[str]:
    """Sums nanoseconds by operation, each moment attributed to the latest one begun.

    So the body of a loop counts, and not the loop; the sum is the busy time.

    Example:
      >>> self_times([Operation("loop", 0, 10), Operation("dot", 2, 5)])
      Counter({'loop': 7, 'dot': 3})
    """
    times: Counter[str] = Counter()
    waiting = deque(sorted(done, key=lambda one: one.begin))
    running: list[tuple[int, int, str]] = []  # A heap: the latest one is first.
    moments = sorted({moment for one in waiting for moment in (one.begin, one.end)})
    for now, until in pairwise(moments):
        while waiting and waiting[0].begin <= now:
            one = waiting.popleft()
            heappush(running, (-one.begin, one.end, one.name))
        while running and running[0][1] <= now:
            heappop(running)
        if running:
            times[running[0][2]] += until - now
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
