"""Starts the server of the fake model, a process of its own."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from tests.integration.tiny import ROOT


@contextmanager
def fake_server(seconds, limits):
    """Yields the process and its port.

    Args:
      seconds: that a group of sentences takes, as text.
      limits: of `ServingConfig`.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serving.fake_server", seconds],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LIMITS": json.dumps(limits)},
        cwd=ROOT,
    )
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
