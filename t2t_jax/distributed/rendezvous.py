"""How long processes wait for one another to come, and what is said if they do not.

JAX ends a process that has waited in vain from C++, where no exception tells of it, and
one that finds its port taken by a crash. So both are seen to here.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from t2t_jax.distributed.cluster_env import ProcessInfo, split_address
from t2t_jax.distributed.signal_watcher import watch_signals, write_stderr
from t2t_jax.errors import StoppedError, UnavailableError, UserError

TIMEOUT = "T2T_JAX_INITIALIZATION_TIMEOUT"
"""The environment variable that says for how many seconds processes are waited for."""

HEARTBEAT_SECONDS = 30
"""After how long without a sign a process counts as dead, and all others end too."""

SHUTDOWN_SECONDS = 30
"""How long a process that leaves waits for the others to leave."""

_INITIALIZATION_SECONDS = 300
_BIND = "JAX_COORDINATOR_BIND_ADDRESS"
_PROBE_SECONDS = 3


def hard_exit(code: int) -> NoReturn:
    """Ends this process, whatever else it is doing, and waits for nobody."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # a reader that has gone
            continue
    os._exit(code)


def initialize_jax_distributed(
    place: ProcessInfo, *, environ: Mapping[str, str]
) -> str:
    """Starts or finds the coordinator, and waits until all have come.

    Args:
      environ: the environment; `TIMEOUT` says how long to wait.

    Returns:
      The coordinator's address, host:port.

    Raises:
      UserError: the environment's limit is none.
      UnavailableError: the coordinator cannot be made or found. If the others do not
        come in time there is a message, and the process ends with the same code, 69.
    """
    seconds = _initialization_seconds(environ)
    import jax

    # A signal ends this process until `preemption.preemption_notice` is entered.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        address = place.address or _detected_address(place, seconds, environ)
        require_free_port(place, address, environ=environ)
        with initialization_deadline(place, address, seconds=seconds):
            jax.distributed.initialize(
                address,
                place.count,
                place.index,
                local_device_ids=place.devices,
                cluster_detection_method="deactivate",
                # Ours comes first: what ends a process in C++ says too little.
                initialization_timeout=seconds + 60,
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
                shutdown_timeout_seconds=SHUTDOWN_SECONDS,
            )
    except (RuntimeError, OSError) as error:
        raise UnavailableError(
            f"{place.promise} promises {place.count} processes, and process "
            f"{place.index} cannot join them: {str(error).splitlines()[0]}"
        ) from error
    return address


def require_free_port(
    place: ProcessInfo, address: str, *, environ: Mapping[str, str]
) -> None:
    """Checks that process 0 can listen where the others will look for it.

    Args:
      place: of this process; there is nothing to check if it is another one.
      address: host:port, as all processes know it.
      environ: the environment; it may name another address for listening.

    Raises:
      UnavailableError: the port is taken. JAX would end in a segmentation fault, or
        share it with a coordinator that is there.
    """
    if place.index:
        return
    host, port = split_address(
        environ.get(_BIND) or f"[::]:{split_address(address)[1]}"
    )
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # What a coordinator has left that has just ended is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(where)
        except OSError as error:
            raise UnavailableError(
                f"Process 0 of {place.count} must listen at {address} and cannot: "
                f"{error.strerror}. Is another run there, or a second process 0? "
                "Choose another port."
            ) from error


@contextmanager
def initialization_deadline(
    place: ProcessInfo, address: str, *, seconds: float
) -> Iterator[None]:
    """Ends the process if what it does inside takes too long, or on a signal.

    JAX waits for the others in C++, where Python's signal handlers do not run and no
    exception can reach. To be used in the main thread.

    Args:
      place: of this process, for the message.
      seconds: how long the others are waited for; then the exit code is 69.
    """
    mark = f"[rank {place.index}] error: "

    def leave(name: str) -> None:
        write_stderr(f"{mark}Stopped by {name}. Give the same command again.")
        hard_exit(StoppedError.exit_code)

    def give_up() -> None:
        write_stderr(mark + _in_vain(place, address, seconds))
        hard_exit(UnavailableError.exit_code)

    with watch_signals(leave, seconds=seconds, on_expiry=give_up):
        yield


def _in_vain(place: ProcessInfo, address: str, seconds: float) -> str:
    """Says who has waited for whom, where, and what to look at."""
    last = place.count - 1
    if place.index == 0:
        who = (
            f"not all of processes 1 to {last} have"
            if last > 1
            else "process 1 has not"
        )
        reason = (
            f"{who} come. Look at what they say, and whether they can reach this host "
            "and port."
        )
    else:
        reason = _at(address)
    return (
        f"{place.promise} promises {place.count} processes. Process {place.index} has "
        f"waited {seconds:g} s at {address}:\n{reason}\n"
        "Start all of them, each with its own number, or one by itself without them."
    )


def _at(address: str) -> str:
    """Looks at what is to be found at the coordinator's address."""
    try:
        socket.create_connection(split_address(address), _PROBE_SECONDS).close()
    except socket.gaierror as error:
        return f"that host is not known here ({error.strerror})."
    except TimeoutError:
        return "that host does not answer. Is a firewall between, or the host down?"
    except OSError as error:
        return (
            f"nobody listens there ({error.strerror}). Has process 0 started, and on "
            "that host?"
        )
    return (
        "process 0 or some other program listens there, so another process is missing. "
        "Look at what the others say."
    )


def _detected_address(
    place: ProcessInfo, seconds: int, environ: Mapping[str, str]
) -> str:
    """Asks JAX's own detection for the coordinator of a cluster; it is not public."""
    from jax._src import clusters

    found = clusters.ClusterEnv.auto_detect_unset_distributed_params(
        environ.get("JAX_COORDINATOR_ADDRESS"),
        place.count,
        place.index,
        place.devices or (),
        place.found_by,
        seconds,
    )
    return str(found[0])


def _initialization_seconds(environ: Mapping[str, str]) -> int:
    value = environ.get(TIMEOUT) or str(_INITIALIZATION_SECONDS)
    if not (value.isascii() and value.isdecimal() and int(value) > 0):
        raise UserError(
            f"{TIMEOUT}={value} must be a whole number of seconds from 1. Change it, "
            f"or leave it out for {_INITIALIZATION_SECONDS}."
        )
    return int(value)
