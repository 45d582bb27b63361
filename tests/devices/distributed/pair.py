"""Runs a program in two processes that know each other's address."""

import socket
import subprocess
import sys

from tests.integration import tiny


def run_two(program, *arguments):
    """Runs a module with (rank, port, *arguments); each has to print: all is well."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", program, *map(str, (index, port, *arguments))],
            cwd=tiny.ROOT,
            **pipe,
        )
        for index in range(2)
    ]
    try:
        for process in started:
            out, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors
            assert "all is well" in out.splitlines()
    finally:
        for process in started:
            process.kill()
