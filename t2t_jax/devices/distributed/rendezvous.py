"""Connects the processes of a run, with a deadline and error messages.

After its own timeout JAX ends the process from C++, without an exception; if the
coordinator's port is in use it crashes. Both cases are handled here first, so the
address is detected (by JAX) before `jax.distributed.initialize`.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from t2t_jax import jax_internals
from t2t_jax.devices.distributed.cluster_env import ProcessInfo, split_address
from t2t_jax.devices.distributed.signals import watch_signals, write_stderr
from t2t_jax.errors import StoppedError, UnavailableError, UserError

TIMEOUT = "T2T_JAX_INITIALIZATION_TIMEOUT"
"""The environment variable with the timeout for the other processes, in seconds."""

HEARTBEAT_SECONDS = 30
"""Without a heartbeat for so long a process counts as failed, and all others end."""

SHUTDOWN_SECONDS = 30
"""Timeout of the shutdown, which waits for the other processes."""

_INITIALIZATION_SECONDS = 300
_BIND_ADDRESS = "JAX_COORDINATOR_BIND_ADDRESS"
_PROBE_SECONDS = 3


def hard_exit(code: int) -> NoReturn:
    """Ends this process at once, without cleanup and without waiting for threads."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # A closed pipe.
            continue
    os._exit(code)


def initialize_jax_distributed(info: ProcessInfo, *, environ: Mapping[str, str]) -> str:
    """Starts or finds the coordinator, and waits until all processes are connected.

    Args:
      environ: the environment; may hold `TIMEOUT`.

    Returns:
      The coordinator's address, host:port.

    Raises:
      UserError: `TIMEOUT` is not a number of seconds.
      UnavailableError: the coordinator cannot be started or found. If other processes
        are missing, a message is printed and this process exits with the same code, 69.
    """
    seconds = _initialization_seconds(environ)
    import jax

    # Until `preemption.preemption_sync` a signal ends this process.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        address = info.address or jax_internals.detect_coordinator(
            environ.get("JAX_COORDINATOR_ADDRESS"),
            count=info.count,
            index=info.index,
            devices=info.devices or (),
            kind=info.detected_by,
            seconds=seconds,
        )
        require_free_port(info, address, environ=environ)
        with initialization_deadline(info, address, seconds=seconds):
            jax.distributed.initialize(
                address,
                info.count,
                info.index,
                local_device_ids=info.devices,
                cluster_detection_method="deactivate",
                # Our own timeout, whose message says more, expires first.
                initialization_timeout=seconds + 60,
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
                shutdown_timeout_seconds=SHUTDOWN_SECONDS,
            )
    except (RuntimeError, OSError) as error:
        raise UnavailableError(
            f"{info.source} requires {info.count} processes, and process "
            f"{info.index} cannot connect to them: {str(error).splitlines()[0]}"
        ) from error
    return address


def require_free_port(
    info: ProcessInfo, address: str, *, environ: Mapping[str, str]
) -> None:
    """Checks on process 0 that the coordinator's port is free.

    Args:
      address: host:port of the coordinator.
      environ: the environment; may hold another address to listen at.

    Raises:
      UnavailableError: the port is in use. JAX would crash, or share it with another
        coordinator.
    """
    if info.index:
        return
    host, port = split_address(
        environ.get(_BIND_ADDRESS) or f"[::]:{split_address(address)[1]}"
    )
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # The port of a coordinator that has just ended can be used again.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(where)
        except OSError as error:
            raise UnavailableError(
                f"Process 0 of {info.count} cannot listen at {address}: "
                f"{error.strerror}. Another run or a second process 0 may use it. "
                "Choose another port."
            ) from error


@contextmanager
def initialization_deadline(
    info: ProcessInfo, address: str, *, seconds: float
) -> Iterator[None]:
    """Ends the process on a signal (exit code 75) or after a timeout (69).

    JAX waits for the other processes in C++, where neither Python's signal handlers nor
    exceptions take effect. Use it in the main thread.
    """
    prefix = f"[rank {info.index}] error: "

    def on_stop(name: str) -> None:
        write_stderr(f"{prefix}Stopped by {name}. Rerun the same command.")
        hard_exit(StoppedError.exit_code)

    def on_expiry() -> None:
        write_stderr(prefix + _timeout_message(info, address, seconds))
        hard_exit(UnavailableError.exit_code)

    with watch_signals(on_stop, seconds=seconds, on_expiry=on_expiry):
        yield


def _timeout_message(info: ProcessInfo, address: str, seconds: float) -> str:
    """Describes which processes are missing, and what to check."""
    reason = f"Not all of processes 1 to {info.count - 1} have connected."
    if info.index:
        reason = "Process 0 or another program listens there: others are missing."
        try:
            socket.create_connection(split_address(address), _PROBE_SECONDS).close()
        except OSError as error:  # A host without that name or an answer, too.
            cause = error.strerror or "no answer"
            reason = (
                f"No process listens there ({cause}). Check process 0, on that host."
            )
    return (
        f"{info.source} requires {info.count} processes. Process {info.index} has "
        f"waited {seconds:g} s at {address}:\n{reason} Check the output of the others, "
        "and whether they can reach this host and port.\nStart all of them, each with "
        "its own number, or a single one without these settings."
    )


def _initialization_seconds(environ: Mapping[str, str]) -> int:
    value = environ.get(TIMEOUT) or str(_INITIALIZATION_SECONDS)
    if not (value.isascii() and value.isdecimal() and int(value) > 0):
        raise UserError(
            f"{TIMEOUT}={value} must be a positive integer, in seconds. Change it, or "
            f"unset it for {_INITIALIZATION_SECONDS}."
        )
    return int(value)
