"""uvicorn's HTTP protocol, with limits for slow clients and for many."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.responses import error_body, to_json

_PROBE_SECONDS = 0.5
_READ_BYTES = 1 << 16  # at a time, so that parts of other requests come in between
# Bytes of a body that are not its own: of chunks, which cost more than what they hold.
_MAX_OVERHEAD = 1 << 16


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
            self._timer = self.loop.call_later(self.limits.read_timeout, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        self._refuse(408, "The request did not arrive in time")

    def _refuse(self, status: int, message: str) -> None:
        """Answers without the application, and closes the connection."""
        body = to_json(error_body(message))
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        with suppress(h11.LocalProtocolError):  # a response has begun
            for event in (
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def protocol_for(config: ServingConfig) -> type[GuardedProtocol]:
    """Returns the class of connections with these limits."""

    class Protocol(GuardedProtocol):
        limits = config

    return Protocol
