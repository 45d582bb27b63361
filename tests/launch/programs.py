"""Stand-ins for what the launchers run, so that a test says how each of it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.commands import run
from tests.integration.tiny import ROOT

LAUNCH = ROOT / "launch"

_PROGRAM = """\
#!{python}
import json, os, signal, subprocess, sys, time
from pathlib import Path

options = dict(a[2:].split("=", 1) for a in sys.argv[3:] if a.startswith("--"))
index = int(options.get("process_id") or os.environ.get("SLURM_PROCID", 0))
acts = options["do"].split(",")[index].split("+")
notes = Path(options["notes"])

def stop(number, frame):
    (notes / f"signal-{{index}}").write_text(signal.Signals(number).name)
    if "slow" in acts:
        time.sleep(2.5)
        (notes / f"saved-{{index}}").touch()
    os._exit(75)

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    if "deaf" in acts:
        signal.signal(number, signal.SIG_IGN)
    else:
        signal.signal(number, stop)
pids = [os.getpid()]
if "worker" in acts:
    pids.append(subprocess.Popen(["sleep", "300"]).pid)
wanted = ("JAX_PLATFORMS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")
seen = dict(argv=sys.argv[1:], pids=pids, env={{k: os.environ.get(k) for k in wanted}})
partial = notes / f"partial-{{index}}"
partial.write_text(json.dumps(seen))
partial.rename(notes / f"seen-{{index}}")
# Nothing happens before all of them handle signals, on machines of any speed.
everybody = range(len(options["do"].split(",")))
deadline = time.monotonic() + 60
while not all((notes / f"seen-{{k}}").exists() for k in everybody):
    if time.monotonic() > deadline:
        sys.exit("the others have not started")
    time.sleep(0.01)
print(f"process {{index}} speaks", flush=True)
print(f"process {{index}} complains", file=sys.stderr, flush=True)
if "echo" in acts:
    sys.stdout.write(sys.stdin.read().upper())
if "slow75" in acts:
    time.sleep(2.5)
    (notes / f"saved-{{index}}").touch()
    os._exit(75)
if "abort" in acts:
    os.abort()
if "sleep" in acts:
    time.sleep(300)
sys.exit(int(acts[-1]) if acts[-1].isdigit() else 0)
"""


def fake_python(folder: Path) -> Path:
    """Returns an interpreter that ends as its flag --do says, a word for a process.

    The words, joined by `+`: a number is the exit code; `sleep` five of them; `abort`;
    `echo` stdin in capitals; `deaf` to signals; `slow` to stop; `slow75` stops by
    itself, slowly; `worker` starts a process of its own.
    """
    path = folder / "python"
    path.write_text(_PROGRAM.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return path


def command(folder: Path, name: str, script: str) -> None:
    """Puts the bash script `script` as the command `name` into `folder`."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def environment(*, path: Path | None = None, **more: str | Path) -> dict[str, str]:
    """Returns this process's environment, with `path` searched first, and `more`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    for name in ("JAX_PLATFORMS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES", "PYTHON"):
        kept.pop(name, None)
    if path is not None:
        kept["PATH"] = f"{path}:{kept['PATH']}"
    return kept | {key: str(value) for key, value in more.items()}


def launch(
    script: str, *arguments: str, cwd: Path = ROOT, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a script of launch/ as `run` does."""
    return run(["bash", LAUNCH / script, *arguments], cwd, **how)
