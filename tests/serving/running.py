"""Starts the real `--mode=serve`, and asks it."""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import NamedTuple

from tests.faults.running import launch


class Server(NamedTuple):
    """A running server: its process, its address, and the lines of stderr so far."""

    process: subprocess.Popen
    url: str
    lines: list

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


def address_of(process, lines):
    """Returns the address once it was printed."""
    while process.poll() is None:
        if match := re.search(
            r"^Serving on (http://\S+)$", "".join(lines), re.MULTILINE
        ):
            return match[1]
        time.sleep(0.05)
    raise AssertionError("".join(lines))


@contextmanager
def serving(*argv):
    # The first translations compile, on machines of any speed.
    own = ["--mode=serve", "--port=0", "--request_timeout=900"]
    process = launch([*own, *argv], stdout=subprocess.DEVNULL, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr), daemon=True)
    reader.start()
    try:
        yield Server(process, address_of(process, lines), lines)
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()
