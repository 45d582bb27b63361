"""`python` and `t2t-jax` for shells: a command line of the package is a fork.

`ForkServer.for_shells` makes both programs of this file, which needs no package.
"""

import json
import os
import signal
import socket
import sys

program, *argv = sys.argv
if os.path.basename(program) == "python":
    if argv[:2] not in (["-m", "t2t_jax"], ["-m", "t2t_jax.main"]):
        os.execv(sys.executable, [sys.executable, *argv])
    program, argv = "", argv[2:]
server = socket.socket(fileno=int(os.environ["T2T_JAX_TEST_FORKS"]))
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
values = {"argv": argv, "environ": dict(os.environ), "cwd": os.getcwd()}
values["program"] = program
socket.send_fds(server, [json.dumps(values).encode()], [0, 1, 2, theirs.fileno()])
theirs.close()
process = int(ours.recv(64))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(process, number))
code = int(ours.recv(64))
sys.exit(code if code >= 0 else 128 - code)
