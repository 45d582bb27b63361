"""Runs a program of `benchmarks/` as its users do."""

import json
import subprocess
import sys

from tests.integration.tiny import ROOT, environment


def measured(script, *flags, timeout=300):
    """Returns the report that a program writes as JSON."""
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *flags, "--json"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=ROOT,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
