"""Start-up: `--help`, `import t2t_jax`, the first translated line, the first step.

  python benchmarks/startup.py --workdir=runs/phrasebook
  python benchmarks/startup.py --workdir=runs/phrasebook --json --rounds=9
  python benchmarks/startup.py --workdir=runs/phrasebook --only=help,import,first_line

Each is the median of several processes: seconds from the shell, and seconds of all
processors, which say more on a busy machine. The first line is translated with a warm
cache of compiled programs (one process goes first); the first step is that of the
embedded experiment with empty caches, once. One more translation says where time goes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from startup_phases import phases
from step_figures import machine, versions

ROOT = Path(__file__).parents[1]
PROGRAM = [sys.executable, "-m", "t2t_jax.main"]
NAMES = ("help", "import", "first_line", "first_step")
_IMPORT = (
    "import time; t = time.perf_counter(); import t2t_jax; "
    "print(time.perf_counter() - t)"
)
_LINE = "The old teacher reads a book.\n"


class Measured(NamedTuple):
    """A process: seconds until what was waited for, and seconds of all processors."""

    seconds: float
    cpu: float


def main() -> int:
    """Measures, and prints a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", required=True, help="a trained run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(NAMES), help="some of these")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := set(only) - set(NAMES):
        parser.error(f"--only takes {', '.join(NAMES)}, not {', '.join(unknown)}.")
    figures: dict[str, Any] = {
        **machine(),
        "versions": versions(["jax", "flax", "orbax-checkpoint", "numpy"]),
    }
    for name in only:
        found = _measure(name, options)
        figures[f"{name}_seconds"] = statistics.median(one.seconds for one in found)
        figures[f"{name}_cpu_seconds"] = statistics.median(one.cpu for one in found)
    if "first_line" in only:
        figures["phases"] = phases(options.workdir)
    print(json.dumps(figures) if options.json else _table(figures))
    return 0


def _measure(name: str, options: argparse.Namespace) -> list[Measured]:
    if name == "first_step":
        return [_first_step()]
    if name == "first_line":
        _first_line(options.workdir)  # fills the cache
    actions = {
        "help": lambda: _run([*PROGRAM, "--help"]),
        "import": _import,
        "first_line": lambda: _first_line(options.workdir),
    }
    return [actions[name]() for _ in range(options.rounds)]


def _run(command: list[str], text: str = "") -> Measured:
    """Runs a program to its end."""
    begin = time.perf_counter()
    process = _start(command)
    process.communicate(text)
    return Measured(time.perf_counter() - begin, _cpu(process))


def _import() -> Measured:
    """Imports the package; seconds of the import alone, CPU of the process."""
    process = _start([sys.executable, "-c", _IMPORT])
    out, _ = process.communicate()
    return Measured(float(out), _cpu(process))


def _first_line(workdir: str) -> Measured:
    """Translates a line; seconds until it is there."""
    begin = time.perf_counter()
    process = _start([*PROGRAM, "--mode=translate", f"--workdir={workdir}"])
    process.stdin.write(_LINE)
    process.stdin.close()
    line = process.stdout.readline()
    seconds = time.perf_counter() - begin
    process.stdout.read()
    process.wait()
    if not line.strip():
        raise SystemExit(f"No translation came. Is {workdir} a trained run?")
    return Measured(seconds, _cpu(process))


def _first_step() -> Measured:
    """Trains the embedded experiment with empty caches, for a step."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder, "run", "metrics.jsonl")
        begin = time.perf_counter()
        process = _start(
            [
                *(*PROGRAM, "--mode=train", f"--workdir={folder}/run"),
                *("--config.steps=1", "--config.logging.every_steps=1"),
                *("--config.evaluation.every_steps=0", "--config.checkpoint.keep=1"),
            ],
            {"XDG_CACHE_HOME": folder, "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax"},
        )
        process.stdin.close()
        while process.poll() is None and not _has_step(metrics):
            time.sleep(0.02)
        seconds = time.perf_counter() - begin
        process.wait()
        if not _has_step(metrics):
            raise SystemExit("No step was trained.")
        return Measured(seconds, _cpu(process))


def _has_step(metrics: Path) -> bool:
    return metrics.exists() and '"train"' in metrics.read_text()


def _start(
    command: list[str], environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
        cwd=ROOT,
    )


_spent = 0.0


def _cpu(process: subprocess.Popen[str]) -> float:
    """Returns the CPU seconds of the process that has just ended."""
    global _spent
    process.wait()
    times = os.times()
    before, _spent = _spent, times.children_user + times.children_system
    return _spent - before


def _table(figures: dict[str, Any]) -> str:
    lines = [f"{figures['cpu']}, {figures['cores']} cores, load {figures['load']}", ""]
    lines += ["| | s | CPU s |", "|---|---|---|"]
    for name in NAMES:
        if f"{name}_seconds" in figures:
            seconds, cpu = (figures[f"{name}_{u}"] for u in ("seconds", "cpu_seconds"))
            lines.append(f"| {name} | {seconds:.2f} | {cpu:.2f} |")
    for phase, (seconds, cpu) in figures.get("phases", {}).items():
        lines.append(f"| of the first line: {phase} | {seconds:.2f} | {cpu:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
