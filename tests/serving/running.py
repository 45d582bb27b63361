"""Starts the real `--mode=serve`, and asks it."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

from tests.integration.tiny import ROOT, environment


class Server:
    """A running server.

    Attributes:
      url: as it prints it.
      lines: of stderr so far.
    """

    def __init__(self, *argv, seconds=300):
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "t2t_jax.main", "--mode=serve", "--port=0"),
                # The first translations compile, on machines of any speed.
                *("--request_timeout=900", *argv),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=ROOT,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self._wait(seconds)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def _wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.lines:
                if match := re.fullmatch(r"Serving on (http://\S+)\n", line):
                    return match[1]
            time.sleep(0.05)
        raise AssertionError("".join(self.lines))

    def post(self, path, fields, *, seconds=600):
        """Posts JSON; returns the status and the answer."""
        body = json.dumps(fields).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@contextmanager
def serving(*argv):
    server = Server(*argv)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server._reader.join()
        server.process.stderr.close()
