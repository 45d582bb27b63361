"""Serves the files of the page, and the description of the API."""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from t2t_jax.version import __version__

_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
_PATHS = {"index.html": "/", "openapi.json": "/spec"}


def routes() -> list[Route]:
    """Lists the routes of the page, `/` and its files, and `/spec`."""
    return [
        _route(file.name, file.read_bytes())
        for file in (resources.files("t2t_jax.serving") / "static").iterdir()
    ]


def _route(name: str, content: bytes) -> Route:
    content = content.replace(b"VERSION", __version__.encode())
    # Browsers ask again at each load: a new version of the program is used at once.
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    kind = {"content-type": _KINDS[name.rpartition(".")[2]]}

    async def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers | kind)

    return Route(_PATHS.get(name, f"/static/{name}"), send)
