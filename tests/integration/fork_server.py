"""Command lines as forks of one process that has imported the package.

A start of Python that imports JAX, Flax and Orbax takes 1.3 s of CPU, and the tests
start hundreds. A fork has its own process id, signals, streams and exit code, and ends
as Python ends. It does not test what is imported when: `tiny.run(…, fresh=True)` does.

The server imports no device: a backend has threads, which a fork would lose.
"""

import atexit
import functools
import gc
import importlib
import io
import json
import logging
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from t2t_jax.devices.huge_pages import request_huge_pages

_ROOT = Path(__file__).parents[2]
# What is read when a module is imported must be the server's own.
_READ_LATER = ("XLA_FLAGS", "T2T_JAX_", "PYTEST_")


class ForkServer:
    """Starts a server, which lives as long as this process.

    Args:
      environ: of the server.
    """

    def __init__(self, environ: Mapping[str, str]):
        self._environ = _read_early(environ)
        # A message is received in one piece, and nothing is an end.
        self._connection, theirs = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET
        )
        environ = dict(environ)
        request_huge_pages(environ)  # as the command line does, by an exec
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environ,
                cwd=_ROOT,
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._connection.close()
        self._process.wait()

    @functools.cached_property
    def _programs(self) -> tempfile.TemporaryDirectory[str]:
        folder = tempfile.TemporaryDirectory()
        client = Path(__file__).with_name("fork_client.py").read_text(encoding="utf-8")
        for name in ("python", "t2t-jax"):
            program = Path(folder.name, name)
            program.write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
            program.chmod(0o755)
        return folder

    def for_shells(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Returns the environment of a shell whose programs are forks; its files."""
        places = [self._programs.name, str(Path(sys.executable).parent)]
        path = os.pathsep.join([*places, environ.get("PATH", "")])
        file = self._connection.fileno()
        own = {"PATH": path, "PYTHON": f"{places[0]}/python"}
        env = {**environ, **own, "T2T_JAX_TEST_FORKS": str(file)}
        return {"environ": env, "pass_fds": [file]}

    def serves(self, environ: Mapping[str, str]) -> bool:
        """Whether a fork would be what a start in this environment is."""
        return _read_early(environ) == self._environ

    def run(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        stdin: bytes,
        seconds: float,
        cwd: Path = _ROOT,
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs the command line, as `subprocess.run` does.

        Raises:
          subprocess.TimeoutExpired: it was killed.
        """
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        values = {"argv": list(argv), "environ": dict(environ), "cwd": str(cwd)}
        request = json.dumps(values).encode()
        socket.send_fds(self._connection, [request], theirs)
        for file in theirs:
            os.close(file)
        with ThreadPoolExecutor(3) as threads:
            threads.submit(_write, pipes[0][1], stdin)
            output = [threads.submit(_read, pipes[k][0]) for k in (1, 2)]
            process = int(self._receive(60))
            try:
                code = int(self._receive(seconds))
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                self._receive(60)
                raise subprocess.TimeoutExpired(argv, seconds) from None
        return subprocess.CompletedProcess(
            argv, code, *(one.result() for one in output)
        )

    def _receive(self, seconds: float) -> bytes:
        self._connection.settimeout(seconds)
        message = self._connection.recv(64)
        assert message, "the server of forks has ended"
        return message


def _read_early(environ: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environ.items() if not k.startswith(_READ_LATER)}


def _write(file: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(file, "wb") as pipe:
        pipe.write(data)


def _read(file: int) -> bytes:
    with os.fdopen(file, "rb") as pipe:
        return pipe.read()


def _serve(connection: socket.socket) -> None:
    """Answers requests; returns in a fork that is to run one."""
    while True:
        request, files, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        if not request:
            os._exit(0)
        if len(files) == 4:  # of a client, who has a connection of its own
            if os.fork():
                for file in files:
                    os.close(file)
                continue
            connection = socket.socket(fileno=files.pop())
        process = os.fork()
        if not process:
            connection.close()
            return _become(files, **json.loads(request))
        for file in files:
            os.close(file)
        connection.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(
    files: Sequence[int],
    *,
    argv: list[str],
    environ: dict[str, str],
    cwd: str,
    program: str = "",
) -> None:
    os.chdir(cwd)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = open(number, "wb", closefd=False)
        stream = io.TextIOWrapper(file, encoding="utf-8", line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.update(environ)
    for name in set(os.environ) - set(environ) - {"GLIBC_TUNABLES"}:
        del os.environ[name]
    sys.argv = [program or main.__file__, *argv]


def _end(program: Callable[[], None]) -> NoReturn:
    """Runs a program and ends as Python does, but for taking 1,700 modules apart."""
    code: object = 0
    try:
        program()
    except SystemExit as raised:
        code = 0 if raised.code is None else raised.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import t2t_jax
    from t2t_jax import main

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for module in pkgutil.walk_packages(t2t_jax.__path__, "t2t_jax."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # Importing Orbax adds one, which a start of the program finds only after its own.
    logging.getLogger().handlers.clear()
    gc.freeze()  # No fork looks for garbage in what it has from here.
    _serve(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _end(main.cli_entry_point)
