"""The programs `python` and `t2t-jax`, each of which asks a server for a fork.

It passes signals on and ends as the fork does, and what kills it kills the
fork. What is no program of the package is run by the interpreter.
"""

import json
import os
import signal
import socket
import sys
from contextlib import suppress


def main(address: str, program: str, *argv: str) -> None:
    if program == "t2t-jax":
        argv = (program, *argv)
    elif argv[:2] in (("-m", "t2t_jax"), ("-m", "t2t_jax.main")):
        argv = ("", *argv[2:])
    elif argv[:1] != ("-c",):
        os.execv(sys.executable, [sys.executable, *argv])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0{address}")
    request = {"argv": argv, "environ": dict(os.environ), "cwd": os.getcwd()}
    socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
    process = int(connection.recv(64))
    os.closerange(0, 3)

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(process, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, pass_on)
    with open("/proc/self/comm", "w") as name:  # which `running.fork_of` reads
        name.write(str(process))
    code = int(connection.recv(64) or -signal.SIGKILL)  # with the server
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
