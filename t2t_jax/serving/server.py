"""Runs the application on a socket, with uvicorn, until a signal.

Its protocol has limits for slow clients and for many.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeAlias

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from t2t_jax.devices.distributed.signals import handling, watch_signals, write_stderr
from t2t_jax.errors import StoppedError, UnavailableError, UserError
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.request_limits import CLOSE, LATE
from t2t_jax.serving.requests import to_json

_Call: TypeAlias = Callable[[], None]

_GRACE = 5.0  # seconds beyond the timeout of a request, for its response to be sent
_PROBE_SECONDS = 0.5
_READ_BYTES = 1 << 16  # at a time, so that parts of other requests come in between
# Bytes of a body that are not its own: of chunks, which cost more than what they hold.
_MAX_OVERHEAD = 1 << 16


def open_socket(host: str, port: int) -> socket.socket:
    """Binds a socket, which does not listen yet.

    Raises:
      UnavailableError: the port is in use, or may not be used.
      UserError: the host is not an address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"Cannot serve on {host}: {error}. Choose an address of this machine, such "
            "as 127.0.0.1, or 0.0.0.0 for all of them."
        ) from error
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise UnavailableError(
            f"Cannot serve on port {port} of {host}: {error.strerror}. Choose another, "
            "or end the program that uses it."
        ) from error
    return opened


def url_of(host: str, opened: socket.socket) -> str:
    """Returns the address of a server, as users type it."""
    port = opened.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: ASGIApp, opened: socket.socket, config: ServingConfig, *, on_ready: _Call
) -> None:
    """Serves until a signal, then answers what is under way. For the main thread.

    A second signal ends the process at once.

    Args:
      on_ready: called when requests are accepted.
    """
    # Their own messages may hold parts of requests.
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi", "python_multipart"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    server = _Server(
        uvicorn.Config(
            app,
            http=type("_Protocol", (GuardedProtocol,), {"limits": config}),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=512,
            timeout_keep_alive=15,  # seconds without a request
            timeout_graceful_shutdown=int(config.request_timeout + _GRACE),
            h11_max_incomplete_event_size=16 * 1024,
        ),
        on_ready,
    )
    with _stopping(server):
        asyncio.run(server.serve(sockets=[opened]))


class GuardedProtocol(H11Protocol):
    """A connection.

    uvicorn waits for ever for the header of a first request; here a timer runs from
    the start of the connection, or of a header, which more data does not reset.
    """

    limits = ServingConfig()
    _timer: asyncio.TimerHandle | None = None
    _has_ended = False
    _overhead = 0

    def connection_made(self, transport: Any) -> None:
        """Accepts a connection, or refuses it where there are too many."""
        super().connection_made(transport)
        transport.max_size = _READ_BYTES
        # For the application, which finds out that nobody reads its response.
        self.app_state = {**self.app_state, "abort": transport.abort}
        if len(self.connections) > self.limits.max_connections:
            self._refuse(503, "Too many connections")
        else:
            self._watch_header()

    def data_received(self, data: bytes) -> None:
        """Receives a part of a request."""
        cycle, before = self.cycle, len(self.cycle.body) if self.cycle else 0
        super().data_received(data)
        if self.cycle is not cycle or cycle is None:
            self._overhead = 0
        elif cycle.more_body and not cycle.response_complete:
            self._overhead += len(data) + before - len(cycle.body)
            if self._overhead > _MAX_OVERHEAD:
                self._refuse(400, "Invalid HTTP request")
        self._watch_header()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keeps a connection whose client has sent its last, until it is answered."""
        if not self._is_answering():
            return False
        if not self._has_ended:
            self._has_ended = True
            self._probe()
        return True

    def on_response_complete(self) -> None:
        """Ends a response, and the connection after the last."""
        super().on_response_complete()
        if self._has_ended and not self._is_answering():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets a connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answers what is not HTTP."""
        self._refuse(400, "Invalid HTTP request")

    def _is_answering(self) -> bool:
        """Whether a request has arrived whole and is not answered yet."""
        cycle = self.cycle
        return not (cycle is None or cycle.response_complete or cycle.more_body)

    def _probe(self) -> None:
        """Finds out whether a client that has sent its last still waits.

        A status 100, which HTTP/1.1 lets clients ignore, resets the connection of one
        that does not, as nothing else can tell.
        """
        is_idle = self.conn.our_state is h11.SEND_RESPONSE
        if is_idle and self.conn.their_http_version == b"1.1":
            event = h11.InformationalResponse(status_code=100, headers=[])
            self.transport.write(self.conn.send(event) or b"")
        if not self.transport.is_closing():
            self._timer = self.loop.call_later(_PROBE_SECONDS, self._probe)

    def _watch_header(self) -> None:
        has_request = self.cycle is not None and not self.cycle.response_complete
        is_idle = self.timeout_keep_alive_task is not None
        if has_request or is_idle or self.transport.is_closing():
            self._stop_timer()
        elif self._timer is None:
            seconds = self.limits.read_timeout
            self._timer = self.loop.call_later(seconds, self._refuse, 408, LATE)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, message: str) -> None:
        """Answers without the application, and closes the connection."""
        body = to_json({"error": message})
        headers = {"content-type": "application/json", **CLOSE}
        headers["content-length"] = str(len(body))
        start = h11.Response(status_code=status, headers=list(headers.items()))
        with suppress(h11.LocalProtocolError):  # a response has begun
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: _Call):
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # `_stopping` handles them, also while foreign code runs


@contextmanager
def _stopping(server: uvicorn.Server) -> Generator[None, None, None]:
    """Lets the first signal stop the server, and the second end the process."""

    def on_signal(name: str) -> None:
        if server.should_exit:
            os._exit(StoppedError.exit_code)
        write_stderr(f"{name}: answering what is under way (again to exit at once)")
        server.should_exit = True

    def ignore(number: int, frame: FrameType | None) -> None:
        """Python's handlers do not run during foreign code; the thread above does."""

    with handling(ignore), watch_signals(on_signal):
        yield
