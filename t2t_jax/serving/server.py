"""Runs the application on a socket, with uvicorn, until a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from t2t_jax.distributed.signals import handling, watch_signals, write_stderr
from t2t_jax.errors import StoppedError, UnavailableError, UserError
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.guard import App
from t2t_jax.serving.http_protocol import protocol_for

_HEADER_BYTES = 16 * 1024
_KEEP_ALIVE = 15  # seconds without a request until a connection is closed
_GRACE = 5.0  # seconds beyond the timeout of a request, for its response to be sent
_BACKLOG = 512


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
    app: App,
    opened: socket.socket,
    config: ServingConfig,
    *,
    on_ready: Callable[[], None],
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
            http=protocol_for(config),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=int(config.request_timeout + _GRACE),
            h11_max_incomplete_event_size=_HEADER_BYTES,
        ),
        on_ready,
    )
    with _stopping(server):
        asyncio.run(server.serve(sockets=[opened]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]):
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
    received: list[str] = []

    def on_signal(name: str) -> None:
        received.append(name)
        if len(received) > 1:
            os._exit(StoppedError.exit_code)
        write_stderr(f"{name}: answering what is under way (again to exit at once)")
        server.should_exit = True

    def ignore(number: int, frame: FrameType | None) -> None:
        """Python's handlers do not run during foreign code; the thread above does."""

    with handling(ignore), watch_signals(on_signal):
        yield
