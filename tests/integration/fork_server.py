"""Programs as forks of one process that has imported the package.

A start of Python that imports JAX, Flax and Orbax takes 1.3 s of CPU, and the tests
start hundreds. A fork has its own process id, signals, streams and exit code, and ends
as Python ends. All of a server have one seed of hashes. It does not test what is
imported when: `tiny.run(…, fresh=True)` does.

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
import selectors
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from t2t_jax.devices.huge_pages import request_huge_pages

_ROOT = Path(__file__).parents[2]
# Other variables may be read when a module is imported: they must be the server's.
_READ_LATER = ("XLA_FLAGS", "XDG_CACHE_HOME", "HOME", "T2T_JAX_", "PYTEST_")


class ForkServer:
    """Starts a server, which lives as long as this process.

    Its `python` is a program that runs `-m t2t_jax.main …`, `-m t2t_jax …` and
    `-c CODE …` as forks, and everything else by the interpreter.

    Args:
      environ: of the server.
    """

    def __init__(self, environ: Mapping[str, str]):
        self._environ = _read_early(environ)
        self._directory = TemporaryDirectory()
        self.python = str(Path(self._directory.name, "python"))
        environ = dict(environ)
        request_huge_pages(environ)  # as the command line does, by an exec
        # A message is received in one piece.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")  # the system finds a name
            listener.listen(64)
            address = listener.getsockname()[1:].decode()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
                env=environ,
                cwd=_ROOT,
            )
        client = Path(__file__).with_name("fork_client.py")
        command = shlex.join([sys.executable, "-IS", str(client), address])
        for program in ("python", "t2t-jax"):
            file = Path(self._directory.name, program)
            file.write_text(f'#!/bin/sh\nexec {command} {program} "$@"\n', "utf-8")
            file.chmod(0o700)
        atexit.register(self._process.communicate)  # the end of its stdin is its own

    def for_shells(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of a shell whose `python` and `t2t-jax` are forks."""
        own = [self._directory.name, str(Path(sys.executable).parent)]
        path = os.pathsep.join([*own, environ.get("PATH", "")])
        return {**environ, "PATH": path, "PYTHON": self.python}

    def serves(self, environ: Mapping[str, str]) -> bool:
        """Whether a fork would be what a start in this environment is."""
        return _read_early(environ) == self._environ


def _read_early(environ: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environ.items() if not k.startswith(_READ_LATER)}


def _serve(listener: socket.socket) -> bool:
    """Answers requests; returns whether this is a fork that is to run one."""
    selector, running = selectors.DefaultSelector(), {}
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                for process in running:
                    os.kill(process, signal.SIGKILL)
                return False
            if key.fileobj is listener:
                if _fork(listener, selector, running):
                    return True
            elif key.fileobj is running.get(key.data):  # its client was killed
                os.kill(key.data, signal.SIGKILL)
                selector.unregister(key.fileobj)
            elif key.data in running:
                _, status = os.waitpid(key.data, 0)
                selector.unregister(key.fileobj)
                os.close(key.fd)
                with running.pop(key.data) as connection, suppress(KeyError):
                    _send(connection, os.waitstatus_to_exitcode(status))
                    selector.unregister(connection)


def _fork(
    listener: socket.socket,
    selector: selectors.BaseSelector,
    running: dict[int, socket.socket],
) -> bool:
    """Forks for a client; returns whether this is the fork."""
    connection, _ = listener.accept()
    request, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    if not request or struct.unpack("3i", credentials)[1] != os.getuid():
        return False  # It was killed, or is another user's.
    process = os.fork()
    if not process:
        for one in (selector, listener, connection):
            one.close()
        _become(files, **json.loads(request))
        return True
    for file in files:
        os.close(file)
    _send(connection, process)
    running[process] = connection
    for one in (connection, os.pidfd_open(process)):
        selector.register(one, selectors.EVENT_READ, process)
    return False


def _send(connection: socket.socket, number: int) -> None:
    with suppress(ConnectionError):  # it was killed
        connection.send(str(number).encode())


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
    sys.argv = [argv[0] or main.__file__, *argv[1:]]


def _program() -> None:
    if sys.argv[0] != "-c":
        return main.cli_entry_point()
    return exec(sys.argv.pop(1), {"__name__": "__main__"})


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
    # What functions import.
    for name in ("rich.progress", "sacrebleu", "sentencepiece", "tensorboardX"):
        importlib.import_module(name)
    # Importing Orbax adds one, which a start of the program finds only after its own.
    logging.getLogger().handlers.clear()
    gc.freeze()  # No fork looks for garbage in what it has from here.
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _end(_program)
