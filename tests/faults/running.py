"""Runs of the tiny experiment that are hurt: starting, watching, ending, comparing."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from t2t_jax.devices import fault_injection
from t2t_jax.main import main
from t2t_jax.training.reporting.metrics_writer import TIME_FIELDS
from tests.integration import tiny

LAUNCHER = tiny.ROOT / "launch" / "local" / "processes.sh"
Process = subprocess.Popen[bytes]


def launch(
    argv: list[str],
    *,
    fault: str = "",
    devices: int = 1,
    processes: int = 1,
    environment: dict[str, str] | None = None,
    fresh: bool = False,
    **streams: Any,
) -> Process:
    """Starts the real command line, as `tiny.run` does.

    Args:
      devices: of each process.
      streams: other arguments of `subprocess.Popen`.
    """
    environ = {**tiny.environment(devices), fault_injection.VARIABLE: fault}
    environ |= environment or {}
    python = tiny.python(environ, fresh=fresh)
    command = [python, "-m", "t2t_jax.main", *argv]
    if processes > 1:
        options = [str(processes), f"--devices={devices}"]
        command = ["bash", str(LAUNCHER), *options, "--", *argv]
        environ["PYTHON"] = python
    streams = {"stdin": subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE} | streams
    return subprocess.Popen(command, env=environ, cwd=tiny.ROOT, **streams)


def fork_of(process: Process) -> int:
    """Returns the number of the fork that a process stands for, or its own."""
    name = Path(f"/proc/{process.pid}/comm").read_text().strip()
    return int(name) if name.isdecimal() else process.pid


_LAUNCH = ("fault", "devices", "processes", "environment", "fresh", "stdout", "stderr")


def start(workdir: Path, *, flags: tuple[str, ...] = (), **how: Any) -> Process:
    """Starts the tiny experiment.

    `flags` are further ones (`--mode=…`), and the others those of `launch` and keys of
    its configuration, with `__` for a dot.
    """
    options = {name: how.pop(name) for name in _LAUNCH if name in how}
    return launch([*tiny.arguments(workdir, **how), *flags], **options)


def free_address() -> str:
    """Returns an address that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def run_both(
    *argv: str, each: Sequence[Sequence[str]] = ((), ()), **how: Any
) -> list[subprocess.CompletedProcess[bytes]]:
    """Runs two processes of one run; `each` are further flags of each."""
    met = (f"--coordinator_address={free_address()}", "--num_processes=2")

    def one(index: int) -> subprocess.CompletedProcess[bytes]:
        return tiny.run(*argv, *each[index], *met, f"--process_id={index}", **how)

    return tiny.run_together(one)


def end(process: Process, seconds: float = 300) -> tuple[int, str]:
    """Waits for the end, and returns the exit code and what was said on stderr."""
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # Its launcher's processes go with it, and the pipe closes.
        process.send_signal(signal.SIGKILL)
        _, said = process.communicate()
        raise AssertionError(f"no end in {seconds} s:\n{said.decode()}") from None
    return process.returncode, said.decode()


def main_refuses(capsys, argv: list[str], codes: tuple[int, ...], *words: str) -> str:
    """Checks that `main` refuses a command line; returns its stderr."""
    assert main(argv) in codes
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert [one for one in words if one not in errors] == [], errors
    return errors


def end_codes(said: str) -> dict[int, int]:
    """Reads from the launcher's words what each process that failed ended with."""
    pattern = r"^processes.sh: process (\d+) ended with code (\d+)\."
    return {int(k): int(code) for k, code in re.findall(pattern, said, re.MULTILINE)}


@contextmanager
def running(workdir: Path, **how: object) -> Iterator[Process]:
    """Starts as `start` does, and leaves nothing running, whatever the test meets."""
    process = start(workdir, **how)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(workdir: Path, *, code: int = 0, seconds: float = 300, **how: Any) -> str:
    """Runs as `start` does to the end, which must be `code`; returns its stderr."""
    found, said = end(start(workdir, **how), seconds)
    assert found == code, said
    return said


def wait_for(
    there: Path | Callable[[], object], process: Process, *, seconds: float = 300
) -> None:
    """Waits until a file is there, or a predicate holds, while the process runs."""
    holds = there.exists if isinstance(there, Path) else there
    deadline = time.monotonic() + seconds
    while not holds():
        if process.poll() is not None:
            said = process.stderr.read().decode()
            raise AssertionError(f"it ended with {process.returncode}:\n{said}")
        assert time.monotonic() < deadline, f"nothing of {there} in {seconds} s"
        time.sleep(0.02)


def refused(done: Any, code: int, *expected: str) -> str:
    """Checks that a command was refused before it worked; returns its stderr."""
    errors = done.stderr.decode()
    assert done.returncode == code, errors
    assert "Traceback" not in errors
    assert "ompil" not in errors
    assert [words for words in expected if words not in errors] == [], errors
    return errors


def hashes(workdir: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file but the lock, which every start writes."""
    return {
        str(path.relative_to(workdir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in workdir.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def unstamped(line: str) -> str:
    """Removes the time that a line of the log begins with."""
    return re.sub(r"^\[[-\d: ]+Z \+[\d:]+\] ", "", line)


def metrics(workdir: Path) -> list[dict[str, object]]:
    """Reads every whole line of metrics.jsonl, without what depends on the clock."""
    path = workdir / "metrics.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    records = [json.loads(line) for line in whole.splitlines()]
    return [{k: v for k, v in r.items() if k not in TIME_FIELDS} for r in records]


def last_step(workdir: Path) -> int:
    """Returns the newest step that metrics.jsonl speaks of; 0 if there is none."""
    return max((record["step"] for record in metrics(workdir)), default=0)


def saved(workdir: Path) -> list[int]:
    """Lists the steps whose folders bear their own name, oldest first."""
    folder = workdir / "checkpoints"
    names = os.listdir(folder) if folder.exists() else []
    return sorted(int(name) for name in names if name.isdecimal())


ITEMS = ("params", "optimizer", "trained")


def parameters(
    workdir: Path, step: int, items: tuple[str, ...] = ITEMS
) -> dict[str, np.ndarray]:
    """Reads every leaf of a checkpoint, of all its items or of some, by its path.

    Without the package's own reader, and on no device.
    """
    leaves = {}
    for item in items:
        folder = workdir / "checkpoints" / str(step) / item
        if item == "trained" and not folder.exists():
            continue
        with ocp.PyTreeCheckpointer() as reader:
            shapes = reader.metadata(folder).item_metadata.tree
            plain = ocp.RestoreArgs(restore_type=np.ndarray)
            tree = reader.restore(
                folder, restore_args=jax.tree.map(lambda _, one=plain: one, shapes)
            )
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            leaves[item + jax.tree_util.keystr(path)] = np.asarray(leaf)
    return leaves


def require_bit_equal(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]):
    """Compares every bit of every leaf, so that -0 is not 0 and NaN is NaN."""
    assert ours.keys() == theirs.keys()
    assert len(ours) > 30
    other = [
        path
        for path, leaf in ours.items()
        if (leaf.dtype, leaf.shape) != (theirs[path].dtype, theirs[path].shape)
        or leaf.tobytes() != theirs[path].tobytes()
    ]
    assert other == []


def require_same(ours: Path, theirs: Path, step: int) -> None:
    """Compares two runs: every bit of a checkpoint, and every record but its times."""
    require_bit_equal(parameters(ours, step), parameters(theirs, step))
    assert metrics(ours) == metrics(theirs)
