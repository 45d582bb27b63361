"""Runs the parts of `gpu.sh` one after the other, and writes what they found.

A part is done once its command has ended with exit code 0. Parts that were never begun
come before those that failed or ran out of time, so that one that hangs does not keep
the others waiting.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_parts import Part, Settings, make_parts
from gpu_report import markdown, plot
from step_figures import machine

from t2t_jax.errors import UserError
from t2t_jax.files import atomic_write, read_json_object

_LEAST_SECONDS = 20
"""A part is not begun with less time left."""

_TAIL = 2_000


class Results:
    """What the parts have found, kept in results.json after each.

    Args:
      path: of results.json.
      rehearse: whether it is a rehearsal; the two are not mixed.

    Raises:
      UserError: the file is of the other kind.
    """

    def __init__(self, path: Path, *, rehearse: bool):
        self._path = path
        self.content: dict[str, Any] = {"rehearsal": rehearse, "parts": {}}
        if path.exists():
            self.content = read_json_object(path, advice="Choose another OUT.")
            if self.content.get("rehearsal") != rehearse:
                raise UserError(
                    f"{path} must be of the same kind: of a rehearsal, or not. Choose "
                    "another OUT."
                )

    @property
    def parts(self) -> dict[str, Any]:
        """What is known of each part, by name."""
        parts: dict[str, Any] = self.content["parts"]
        return parts

    def add(self, name: str, found: dict[str, Any]) -> None:
        """Adds what a part has come to."""
        self.parts[name] = found
        atomic_write(self._path, json.dumps(self.content, indent=1) + "\n")


def waiting(parts: Sequence[Part], results: Results) -> list[Part]:
    """Returns the parts that are not done, those never begun first."""
    known = results.parts
    never = [part for part in parts if part.name not in known]
    again = [
        part
        for part in parts
        if part.name in known and known[part.name]["state"] != "done"
    ]
    return [*never, *again]


def run_part(
    part: Part, *, seconds: float, log: Path, environment: dict[str, str]
) -> dict[str, Any]:
    """Runs the command of a part.

    Args:
      seconds: after which it and all its processes are ended.
      log: gets what it writes to stderr.

    Returns:
      Its `state` (done, failed, out of time, missing), and the `report` that it
      printed or the `reason`.
    """
    if part.missing:
        return {"state": "missing", "reason": part.missing}
    began = time.monotonic()
    with log.open("ab") as stderr:
        stderr.write(f"== {part.name}: {' '.join(part.argv)}\n".encode())
        stderr.flush()
        begin_of_log = stderr.tell()
        with subprocess.Popen(
            part.argv,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**environment, **part.environment},
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                reason = f"ended after {seconds:.0f} s"
                return {"state": "out of time", "reason": reason}
            finally:
                # Contestants of a benchmark have no other parent.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    took = round(time.monotonic() - began, 1)
    try:
        report: Any = json.loads(output)
    except ValueError:
        report = None
    if process.returncode == 0 and report is not None:
        return {"state": "done", "seconds": took, "report": report}
    with log.open("rb") as file:
        file.seek(begin_of_log)
        reason = file.read()[-_TAIL:].decode(errors="replace")
    code = process.returncode
    return {"state": "failed", "exit_code": code, "report": report, "reason": reason}


def run_all(
    parts: Sequence[Part], results: Results, *, minutes: float, log: Path
) -> None:
    """Runs what is not done, as long as there is time."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    end = time.monotonic() + 60 * minutes
    for part in waiting(parts, results):
        left = end - time.monotonic()
        if left < _LEAST_SECONDS:
            print("The time is over. The same command goes on.", file=sys.stderr)
            return
        seconds = min(part.seconds, left)
        print(f"{part.name}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
        found = run_part(part, seconds=seconds, log=log, environment=environment)
        results.add(part.name, {**found, "hardware": machine()})
        about = found.get("reason", f"{found.get('seconds')} s").strip()
        print(
            f"{part.name}: {found['state']}, {about.splitlines()[-1] if about else ''}",
            file=sys.stderr,
            flush=True,
        )


def write_report(results: Results, out: Path) -> None:
    """Writes rows.md and plots.png."""
    atomic_write(out / "rows.md", markdown(results.content))
    try:
        image = plot(results.content)
    except UserError as error:
        print(f"no plots.png: {error}", file=sys.stderr)
    else:
        atomic_write(out / "plots.png", image)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="gpu.sh", description=__doc__)
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="directory of results")
    add("--rehearse", action="store_true", help="tiny sizes on the CPU")
    add("--minutes", type=float, default=9.0, help="of this call; default 9")
    add("--only", default="", metavar="PART,…", help="these parts only")
    add(
        "--data",
        default=os.environ.get("T2T_JAX_TEST_DATA", ""),
        metavar="DIR",
        help="with multi30k and multi30k_bpe; T2T_JAX_TEST_DATA by default",
    )
    add("--scratch", type=Path, metavar="DIR", help="of runs, which may be lost")
    options = parser.parse_args(argv)
    if options.scratch is None:
        name = hashlib.sha256(str(options.out.resolve()).encode()).hexdigest()[:12]
        options.scratch = Path(tempfile.gettempdir()) / f"t2t_jax_gpu-{name}"
    if options.data and not Path(options.data, "multi30k").is_dir():
        parser.error(f"--data={options.data} has no folder multi30k")
    options.parts = make_parts(
        Settings(rehearse=options.rehearse, data=options.data, scratch=options.scratch)
    )
    names = [part.name for part in options.parts]
    wanted = [name for name in options.only.split(",") if name] or names
    if unknown := set(wanted) - set(names):
        parser.error(f"--only={unknown.pop()} is not known; known: {', '.join(names)}")
    options.parts = [part for part in options.parts if part.name in wanted]
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not done.

    Returns:
      0 if all is done, 1 if a part failed, 3 if time ran out.
    """
    options = read_options(argv)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        options.scratch.mkdir(parents=True, exist_ok=True)
        results = Results(options.out / "results.json", rehearse=options.rehearse)
        log = options.out / "log.txt"
        run_all(options.parts, results, minutes=options.minutes, log=log)
        write_report(results, options.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}. Choose another OUT.", file=sys.stderr)
        return 1
    print((options.out / "rows.md").read_text(encoding="utf-8"), end="")
    states = [
        results.parts.get(part.name, {"state": "waiting"})["state"]
        for part in options.parts
    ]
    if "failed" in states:
        return 1
    return 3 if {"waiting", "out of time"} & set(states) else 0


if __name__ == "__main__":
    sys.exit(main())
