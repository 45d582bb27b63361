"""Defends the application, and counts its requests.

Hosts, origins, keys, sizes, slow clients, security headers.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.requests import RequestError, to_json
from t2t_jax.serving.worker import TranslationWorker
from t2t_jax.version import __version__

_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_ALONE = {b"cross-origin-resource-policy": b"same-origin"}  # without `cors_origins`
_MISSING_KEY = "Please contact the server operator to obtain an API key"
LATE = "The request did not arrive in time"
CLOSE = {"connection": "close"}
_CLIENT_GONE = 499  # in metrics: nothing was sent
# A body that is too large is read up to this multiple of the limit, so that clients
# which send before they read get the response and not a reset connection.
_DRAIN = 8

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::\d{1,5})?")
_ONCE = ("host", "origin", "authorization", "content-length")
_PART = 1 << 16  # bytes that a client has to accept within `write_timeout`

_LOGGER = logging.getLogger(__name__)


# Seconds; the upper ends of the buckets of the histogram.
_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics(Collector):
    """Counts the requests of a server, in a registry of its own.

    Attributes:
      in_progress: requests that are being answered.
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, worker: TranslationWorker) -> None:
        self.in_progress = 0
        self._worker = worker
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        names = ("path", "status")
        self._requests = Counter("t2t_jax_requests", "Answered.", names, **own)
        name, about = "t2t_jax_translate_seconds", "Of requests to /translate."
        self._seconds = Histogram(name, about, buckets=_BOUNDS, **own)
        Info("t2t_jax", "Version.", **own).info({"version": __version__})
        ProcessCollector(**own)
        self._registry.register(self)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        if path == "/translate":
            self._seconds.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yields what the worker and its queue count themselves."""
        counts, queue = self._worker.counts, self._worker.queue
        for name in ("sentences", "tokens", "groups", "failures"):
            yield CounterMetricFamily(f"t2t_jax_{name}", "So far.", counts[name])
        for name, value in (
            ("waiting_sentences", queue.waiting),
            ("queue_capacity", queue.capacity),
            ("requests_in_progress", self.in_progress),
        ):
            yield GaugeMetricFamily(f"t2t_jax_{name}", "At present.", value)

    def text(self) -> bytes:
        """Returns all metrics as Prometheus reads them."""
        return generate_latest(self._registry)


class Guard:
    """An ASGI application around a router, which refuses what is not safe to answer.

    Only the router's paths are counted by name, so that nobody can add metrics.
    """

    def __init__(self, router: Router, config: ServingConfig, metrics: Metrics):
        self._router, self._config, self._metrics = router, config, metrics
        self._paths = {getattr(route, "path", "") for route in router.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; other kinds of connections pass."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        response = _Guarded(scope, send, self._config)
        start = time.perf_counter()
        self._metrics.in_progress += 1
        try:
            await self._answer(scope, receive, response)
        finally:
            self._metrics.in_progress -= 1
            path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
            name = path if path in self._paths else "other"
            seconds = time.perf_counter() - start
            self._metrics.count(name, response.status or _CLIENT_GONE, seconds)

    async def _answer(self, scope: Scope, receive: Receive, response: _Guarded) -> None:
        # With an application in the scope the router raises HTTPException.
        scope.setdefault("app", self)
        try:
            self._check(scope)
            await self._router(scope, receive, response.send)
        except ClientDisconnect:
            response.abort()
        except HTTPException as error:  # RequestError, and the router's own
            await response.send_error(error, receive)
        except Exception:
            # Without the message, which may hold text of the request.
            _LOGGER.exception("A request failed.", exc_info=self._config.log_text)
            await response.send_error(RequestError(500, "Internal error"), receive)

    def _check(self, scope: Scope) -> None:
        """Refuses foreign hosts and origins, two framings, and headers given twice."""
        headers = Headers(scope=scope)
        has_two_framings = {"content-length", "transfer-encoding"} <= {*headers.keys()}
        if has_two_framings or any(len(headers.getlist(one)) > 1 for one in _ONCE):
            # Servers and proxies that read these differently can be played off.
            raise RequestError(400, "Invalid request", CLOSE)
        host = headers.get("host", "")
        allowed = self._config.allowed_hosts
        if allowed and _name_of(host) not in allowed:
            raise RequestError(421, "This server does not serve this host name")
        origin = headers.get("origin", "")
        if (
            origin
            and scope["method"] not in ("GET", "HEAD")
            and not self._config.cors_origins & {origin, "*"}
            and origin.lower().partition("://")[2] != (host.lower() or None)
        ):
            raise RequestError(403, "This server does not serve pages of other origins")


class _Guarded:
    """Adds headers to a response, and ends connections that do not read it."""

    def __init__(self, scope: Scope, send: Send, config: ServingConfig):
        self.status = 0
        self._scope, self._send, self._config = scope, send, config

    async def send(self, message: Message) -> None:
        """Sends a message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {} if self._config.cors_origins else _ALONE
            given = message.get("headers", ())
            found = {bytes(name).lower(): bytes(value) for name, value in given}
            message["headers"] = list((own | _HEADERS | found).items())
            await self._send_part(message)
            return
        body = message.get("body", b"")
        for start in range(0, len(body) or 1, _PART):
            end = start + _PART
            more = end < len(body) or message.get("more_body", False)
            part = {**message, "body": body[start:end], "more_body": more}
            await self._send_part(part)

    async def _send_part(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._config.write_timeout):
                await self._send(message)
        except TimeoutError:
            self.abort()
            raise ClientDisconnect from None

    async def send_error(self, error: HTTPException, receive: Receive) -> None:
        """Sends an error as JSON, or aborts a response that has begun."""
        if self.status:
            self.abort()
            return
        headers = {"content-type": "application/json", **(error.headers or {})}
        body = to_json({"error": error.detail})
        response = Response(body, error.status_code, headers)
        with suppress(ClientDisconnect):
            await response(self._scope, receive, self.send)

    def abort(self) -> None:
        """Closes the connection at once, where the server allows it."""
        if abort := (self._scope.get("state") or {}).get("abort"):
            abort()


def _name_of(host: str) -> str:
    """Returns the name in a header Host, without a port; "" if it is not one.

    Example:
      >>> _name_of("LocalHost:5000"), _name_of("[::1]:5000"), _name_of("a:1.b")
      ('localhost', '::1', '')
    """
    match = _HOST.fullmatch(host.strip().lower())
    return (match[1] or match[2]) if match else ""


async def read_body(request: Request, config: ServingConfig) -> bytes:
    """Reads the body of a request.

    Raises:
      RequestError: it is too large, or does not arrive in time.
      ClientDisconnect: the client closed the connection.
    """
    length, most = request.headers.get("content-length", "0"), config.max_body_bytes
    about = f"Invalid request: the body exceeds text limit ({most} bytes)"
    too_large = RequestError(413, about, CLOSE)
    if length.isascii() and length.isdecimal() and int(length) > _DRAIN * most:
        raise too_large
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(config.read_timeout):
            async for part in request.stream():
                size += len(part)
                body += part if size <= most else b""
                if size > _DRAIN * most:
                    break
    except TimeoutError:
        raise RequestError(408, LATE, CLOSE) from None
    if size > most:
        raise too_large
    return bytes(body)


def bearer_key(headers: Mapping[str, str]) -> str | None:
    """Returns the key of `Authorization: Bearer`; None without that header."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return value.strip().encode("latin-1").decode("utf-8", "replace")


def require_key(key: object, config: ServingConfig) -> str:
    """Checks the API key of a request.

    Returns:
      The key; "" where the server has none.

    Raises:
      RequestError: it is missing or wrong.
    """
    if not config.api_keys:
        return ""
    if not key:
        raise RequestError(401, _MISSING_KEY, {"www-authenticate": "Bearer"})
    text = key if isinstance(key, str) else ""
    found = text.encode("utf-8", "replace")
    # Compares with every key, in a time that does not depend on them.
    matches = [hmac.compare_digest(found, known.encode()) for known in config.api_keys]
    if not any(matches):
        raise RequestError(403, "Invalid API key")
    return text
