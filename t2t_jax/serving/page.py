"""Serves the files of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_FILES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "page.js": "text/javascript; charset=utf-8",
    "client.js": "text/javascript; charset=utf-8",
    "words.js": "text/javascript; charset=utf-8",
    "panels.js": "text/javascript; charset=utf-8",
}


def routes() -> list[Route]:
    """Lists the routes of the page, `/` and its files."""
    found = [Route("/", _endpoint("index.html"))]
    for name in _FILES:
        if name != "index.html":
            found.append(Route(f"/static/{name}", _endpoint(name)))
    return found


def _endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
    content = (resources.files("t2t_jax.serving") / "static" / name).read_bytes()
    # Browsers ask again at each load: a new version of the program is used at once.
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        kind = {"content-type": _FILES[name]}
        return Response(content, headers=headers | kind)

    return send
