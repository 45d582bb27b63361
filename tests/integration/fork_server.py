"""Programs as forks of one process that has imported the package.

A start of Python that imports JAX, Flax and Orbax takes 1.3 s of CPU, and the tests
start hundreds. A fork has its own process id, signals, streams and exit code, and ends
as Python ends. It does not test what is imported when: `tiny.run(…, fresh=True)` does.

The server imports no device: a backend has threads, which a fork would lose.
"""

import atexit
import gc
import importlib
import io
import json
import logging
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from t2t_jax.devices.huge_pages import request_huge_pages

_ROOT = Path(__file__).parents[2]
# A message is received in one piece, and nothing is an end.
_IN_PIECES = socket.AF_UNIX, socket.SOCK_SEQPACKET
# What is read when a module is imported must be the server's own.
_READ_LATER = "XLA_FLAGS", "XDG_CACHE_HOME", "HOME", "T2T_JAX_", "PYTEST_", "TFDS_"


class ForkServer:
    """Starts a server, which lives as long as this process.

    Args:
      environ: of the server.
    """

    def __init__(self, environ: Mapping[str, str]):
        self._environ = _read_early(environ)
        self._connection, theirs = socket.socketpair(*_IN_PIECES)
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
        """Runs the command line, or `-c CODE …`, as `subprocess.run` does, in a thread.

        Raises:
          subprocess.TimeoutExpired: it was killed.
        """
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        values = {"argv": list(argv), "environ": dict(environ), "cwd": str(cwd)}
        request = json.dumps(values).encode()
        answers, answering = socket.socketpair(*_IN_PIECES)
        files = [*theirs, answering.detach()]
        socket.send_fds(self._connection, [request], files)
        for file in files:
            os.close(file)
        with answers, ThreadPoolExecutor(3) as threads:
            threads.submit(_write, pipes[0][1], stdin)
            output = [threads.submit(_read, pipes[k][0]) for k in (1, 2)]
            process = int(_receive(answers, 60))
            try:
                code = int(_receive(answers, seconds))
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                _receive(answers, 60)
                raise subprocess.TimeoutExpired(argv, seconds) from None
        results = [one.result() for one in output]
        return subprocess.CompletedProcess(argv, code, *results)


def _receive(answers: socket.socket, seconds: float) -> bytes:
    answers.settimeout(seconds)
    message = answers.recv(64)
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


def _serve(connection: socket.socket) -> bool:
    """Answers requests; returns whether this is a fork that is to run one."""
    forks: dict[int, tuple[int, socket.socket]] = {}  # by what is readable at the end
    while True:
        ready = select.select([connection, *forks], [], [])[0]
        for file in forks.keys() & ready:
            process, answers = forks.pop(file)
            _, status = os.waitpid(process, 0)
            with answers:
                answers.send(str(os.waitstatus_to_exitcode(status)).encode())
            os.close(file)
        if connection not in ready:
            continue
        request, files, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not request:
            return False
        answers = socket.socket(fileno=files.pop())
        process = os.fork()
        if not process:
            connection.close()
            _become(files, **json.loads(request))
            return True
        for file in files:
            os.close(file)
        answers.send(str(process).encode())
        forks[os.pidfd_open(process)] = process, answers


def _become(
    files: Sequence[int], *, argv: list[str], environ: dict[str, str], cwd: str
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
    sys.argv = argv if argv[:1] == ["-c"] else [main.__file__, *argv]


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
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if sys.argv[0] == "-c":
            _end(lambda: exec(sys.argv.pop(1), {"__name__": "__main__"}))
        _end(main.cli_entry_point)
