"""Defends the application: hosts, origins, sizes, slow clients, security headers."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException
from starlette.responses import Response

from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.metrics import Metrics
from t2t_jax.serving.requests import RequestError
from t2t_jax.serving.responses import error_body, to_json

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_MISSING_KEY = "Please contact the server operator to obtain an API key"
_OTHER = "other"
_CLIENT_GONE = 499  # in metrics: nothing was sent
# A body that is too large is read up to this multiple of the limit, so that clients
# which send before they read get the response and not a reset connection.
_DRAIN = 8

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::\d{1,5})?")
_PART = 1 << 16  # bytes that a client has to accept within `write_timeout`

_LOGGER = logging.getLogger(__name__)


class ClientGoneError(Exception):
    """The client closed the connection."""


class Guard:
    """An ASGI application around another, which refuses what is not safe to answer.

    Args:
      paths: counted by name; all others together, so that nobody can add metrics.
    """

    def __init__(
        self,
        app: App,
        config: ServingConfig,
        metrics: Metrics,
        *,
        paths: Collection[str],
    ):
        self._app, self._config, self._metrics = app, config, metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; other kinds of connections pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _GuardedResponse(scope, send, self._config)
        start = time.perf_counter()
        self._metrics.in_progress += 1
        try:
            await self._answer(scope, receive, response)
        finally:
            self._metrics.in_progress -= 1
            path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
            self._metrics.count(
                path if path in self._paths else _OTHER,
                response.status or _CLIENT_GONE,
                time.perf_counter() - start,
            )

    async def _answer(
        self, scope: Scope, receive: Receive, response: _GuardedResponse
    ) -> None:
        found = None
        try:
            # With an application in the scope the router raises HTTPException.
            scope.setdefault("app", self)
            self._check(scope)
            await self._app(scope, receive, response.send)
        except RequestError as error:
            found = error
        except HTTPException as error:
            found = RequestError(error.status_code, error.detail, error.headers)
        except ClientGoneError:
            response.abort()
        except Exception:
            # Without the message, which may hold text of the request.
            _LOGGER.exception("A request failed.", exc_info=self._config.log_text)
            found = RequestError(500, "Internal error")
        if found is not None:
            await response.send_error(found, receive)

    def _check(self, scope: Scope) -> None:
        """Refuses requests of foreign hosts and origins, and of two framings."""
        names = [name for name, _ in scope["headers"]]
        headers = headers_of(scope)
        framings = {b"content-length", b"transfer-encoding"}
        if names.count(b"host") > 1 or framings <= set(names):
            # Servers and proxies that read these differently can be played off.
            raise RequestError(400, "Invalid request", {"connection": "close"})
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


class _GuardedResponse:
    """Adds headers to a response, and ends connections that do not read it."""

    def __init__(self, scope: Scope, send: Send, config: ServingConfig):
        self.status = 0
        self._scope, self._send, self._config = scope, send, config

    async def send(self, message: Message) -> None:
        """Sends a message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = self._headers(message.get("headers", ()))
        body, start = message.get("body", b""), 0
        while len(body) - start > _PART:
            part = body[start : start + _PART]
            await self._send_part({**message, "body": part, "more_body": True})
            start += _PART
        await self._send_part({**message, "body": body[start:]} if start else message)

    async def _send_part(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._config.write_timeout):
                await self._send(message)
        except TimeoutError:
            self.abort()
            raise ClientGoneError from None

    async def send_error(self, error: RequestError, receive: Receive) -> None:
        """Sends an error as JSON, or aborts a response that has begun."""
        if self.status:
            self.abort()
            return
        headers = {"content-type": "application/json", **error.headers}
        response = Response(to_json(error_body(error.message)), error.status, headers)
        with suppress(ClientGoneError):
            await response(self._scope, receive, self.send)

    def abort(self) -> None:
        """Closes the connection at once, where the server allows it."""
        abort = (self._scope.get("state") or {}).get("abort")
        if abort is not None:
            abort()

    def _headers(self, given: Any) -> list[tuple[bytes, bytes]]:
        found = {bytes(name).lower(): bytes(value) for name, value in given}
        added = {"cache-control": "no-store", **_HEADERS}
        if not self._config.cors_origins:
            added["cross-origin-resource-policy"] = "same-origin"
        for name, value in added.items():
            found.setdefault(name.encode(), value.encode())
        return list(found.items())


def headers_of(scope: Scope) -> dict[str, str]:
    """Returns the headers of a request; names are in lower case."""
    return {n.decode("latin-1"): v.decode("latin-1") for n, v in scope["headers"]}


def _name_of(host: str) -> str:
    """Returns the name in a header Host, without a port; "" if it is not one.

    Example:
      >>> _name_of("LocalHost:5000"), _name_of("[::1]:5000"), _name_of("a:1.b")
      ('localhost', '::1', '')
    """
    match = _HOST.fullmatch(host.strip().lower())
    return (match[1] or match[2]) if match else ""


async def read_body(
    headers: Mapping[str, str], receive: Receive, config: ServingConfig
) -> bytes:
    """Reads the body of a request.

    Raises:
      RequestError: it is too large, or does not arrive in time.
      ClientGoneError: the client closed the connection.
    """
    length = headers.get("content-length", "0")
    most = config.max_body_bytes
    declared = int(length) if length.isascii() and length.isdecimal() else 0
    if declared > _DRAIN * most:
        raise _body_too_large(most)
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(config.read_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                size += len(message.get("body", b""))
                if size > _DRAIN * most:
                    raise _body_too_large(most)
                if size <= most:
                    body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise RequestError(
            408, "The request did not arrive in time", {"connection": "close"}
        ) from None
    if size > most:
        raise _body_too_large(most)
    return bytes(body)


def _body_too_large(most: int) -> RequestError:
    return RequestError(
        413,
        f"Invalid request: the body exceeds text limit ({most} bytes)",
        {"connection": "close"},
    )


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
