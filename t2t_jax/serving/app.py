"""The ASGI application: LibreTranslate's HTTP API, extensions, and a page."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from t2t_jax.run.text import name_of_language
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.languages import AUTO, Languages
from t2t_jax.serving.queue import Job, Kind, QueueFullError
from t2t_jax.serving.request_limits import (
    CLOSE,
    Guard,
    Metrics,
    bearer_key,
    read_body,
    require_key,
)
from t2t_jax.serving.requests import (
    Place,
    RequestError,
    TranslateRequest,
    invalid,
    parse_body,
    read_texts,
    read_translate_request,
    segment,
    to_json,
    translate_response,
    without_weights,
)
from t2t_jax.serving.worker import TranslationWorker, first_line
from t2t_jax.version import __version__

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Translation
    from t2t_jax.run.inference.model import TranslationModel

T = TypeVar("T")
_Results: TypeAlias = AsyncGenerator[tuple[Place, "Translation"]]

_THREADS = 4
# By the end of a path; others are JSON.
_KINDS = {
    **{"/": "text/html", "css": "text/css", "js": "text/javascript"},
    "svg": "image/svg+xml",
}
_PATHS = {"index.html": "/", "openapi.json": "/spec"}
_LOGGER = logging.getLogger(__name__)


def make_app(
    models: Mapping[tuple[str, str], TranslationModel],
    config: ServingConfig | None = None,
    *,
    worker: TranslationWorker | None = None,
) -> ASGIApp:
    """Makes an ASGI application that translates with these models.

    It can be mounted in another application; it translates the sentences of all
    requests together.

    Args:
      models: by the codes of their source and target language.
      config: limits; None means those of `ServingConfig`.
      worker: translates; None for a new one.

    Example:
      `app = make_app({("en", "de"): t2t_jax.load("runs/phrasebook")})`
    """
    config = config or ServingConfig()
    languages = Languages(models)
    worker = worker or TranslationWorker(languages, capacity=config.max_waiting)
    api = _Api(languages, config, worker)
    routes = [*_static_routes(languages, config), *api.routes()]

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(worker.close)

    # Without Starlette's own application, whose errors are not JSON.
    router = Router(routes, lifespan=lifespan, redirect_slashes=False)
    app: ASGIApp = Guard(router, config, api.counts)
    if config.cors_origins:  # also on the errors of the guard
        app = CORSMiddleware(
            app,
            allow_origins=sorted(config.cors_origins),
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type"),
            max_age=3_600,
        )
    return app


class _Api:
    """The endpoints.

    Attributes:
      counts: of the requests.
    """

    def __init__(
        self, languages: Languages, config: ServingConfig, worker: TranslationWorker
    ):
        self._languages, self._config, self._worker = languages, config, worker
        self.counts = Metrics(worker)
        # Few, as each can delay the event loop by the time of a thread switch.
        self._threads = ThreadPoolExecutor(_THREADS, "requests")

    def routes(self) -> list[Route]:
        """Lists the endpoints."""
        post = partial(Route, methods=["POST"])
        return [
            post("/translate", self.translate),
            post("/translate/stream", self.translate_stream),
            post("/detect", self.detect),
            post("/translate_file", self.refuse),
            post("/suggest", self.refuse),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
        ]

    async def translate(self, request: Request) -> Response:
        """Translates texts, and answers when all are translated."""
        client, wanted = await self._read(request)
        task = asyncio.create_task(self._translate_all(wanted, client))
        gone = asyncio.create_task(_disconnected(request))
        try:
            seconds, first = self._config.request_timeout, asyncio.FIRST_COMPLETED
            await asyncio.wait({task, gone}, timeout=seconds, return_when=first)
            if task.done():
                return _json(task.result())
            raise ClientDisconnect if gone.done() else _timed_out()
        finally:
            task.cancel()
            gone.cancel()
            # Until what was not translated yet has left the queue.
            await asyncio.gather(task, gone, return_exceptions=True)

    async def translate_stream(self, request: Request) -> Response:
        """Translates texts, and sends each sentence as soon as it is translated."""
        client, wanted = await self._read(request)
        if wanted.is_html:
            raise invalid("format=html is not for /translate/stream")
        results = self._results(wanted, client)
        # Before the response begins, so that an error has its own status.
        first = await anext(results, None)
        lines = self._lines(wanted, dict([first] if first else []), results)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def detect(self, request: Request) -> Response:
        """Lists the languages that a text may be in."""
        texts, _ = read_texts(await self._fields(request), self._config)
        return _json(await self._in_thread(self._languages.detect, " ".join(texts)))

    async def health(self, request: Request) -> Response:
        """Returns whether requests are answered."""
        if not self._worker.is_alive:
            raise _stopping()
        if not self._worker.is_ready:
            return _json({"status": "loading"}, status=503)
        return _json({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Returns metrics in the text format of Prometheus."""
        require_key(bearer_key(request.headers), self._config)
        return Response(self.counts.text(), media_type=Metrics.content_type)

    async def refuse(self, request: Request) -> Response:
        """Refuses files and suggestions, as LibreTranslate does without them."""
        raise RequestError(403, "This is disabled on this server.")

    async def _fields(self, request: Request) -> dict[str, Any]:
        key: object = bearer_key(request.headers)
        if key is not None:  # before the body, which only clients with a key may send
            require_key(key, self._config)
        body = await read_body(request, self._config)
        content_type = request.headers.get("content-type", "")
        query = request.scope["query_string"]
        fields = await self._in_thread(parse_body, content_type, body, query)
        key = fields.get("api_key") if key is None else key
        request.state.client = require_key(key, self._config)
        return fields

    async def _read(self, request: Request) -> tuple[str, TranslateRequest]:
        fields = await self._fields(request)
        wanted = await self._in_thread(
            read_translate_request, fields, self._languages, self._config
        )
        address = request.client.host if request.client else ""
        return request.state.client or address, wanted

    async def _translate_all(self, wanted: TranslateRequest, client: str) -> bytes:
        """Translates all sentences of each text; returns the response."""
        found: dict[Place, Translation] = {}
        async with aclosing(self._results(wanted, client)) as results:
            async for place, one in results:
                is_small = wanted.is_html and "attention" not in wanted.details
                found[place] = without_weights(one) if is_small else one
        if self._config.log_text:
            for place, sentence in wanted.sentences.items():
                _LOGGER.warning("%s -> %s", sentence.text, found[place].text)
        return await self._in_thread(translate_response, wanted, found)

    async def _results(self, wanted: TranslateRequest, client: str) -> _Results:
        """Yields translations as they are found, with their places.

        Raises:
          RequestError: the queue is full, time is over, or a sentence failed.
        """
        loop = asyncio.get_running_loop()
        found: asyncio.Queue[tuple[Place, Any]] = asyncio.Queue()

        def deliver(where: list[Place], number: int, result: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(found.put_nowait, (where[number], result))

        jobs = []
        for kind, where in _places_by_kind(wanted).items():
            texts = [wanted.sentences[place].text for place in where]
            jobs.append(Job(client, kind, texts, partial(deliver, where)))
        deadline = loop.time() + self._config.request_timeout
        try:
            self._submit(jobs)
            for _ in wanted.sentences:
                try:
                    async with asyncio.timeout_at(deadline):
                        await asyncio.sleep(0)  # where results wait already
                        place, result = await found.get()
                except TimeoutError:
                    raise _timed_out() from None
                if isinstance(result, BaseException):
                    reason = first_line(result)
                    raise RequestError(500, f"Cannot translate text: {reason}")
                yield place, result
        finally:
            for job in jobs:
                self._worker.queue.cancel(job)

    def _submit(self, jobs: list[Job]) -> None:
        try:
            self._worker.submit(*jobs)
        except QueueFullError:
            if not self._worker.is_alive:
                raise _stopping() from None
            seconds = min(max(1, math.ceil(self._worker.seconds_waiting)), 60)
            about, retry = "Slowdown: too many texts are waiting", f"{seconds}"
            raise RequestError(429, about, {"retry-after": retry}) from None

    async def _lines(
        self, wanted: TranslateRequest, found: dict[Place, Translation], rest: _Results
    ) -> AsyncIterator[bytes]:
        """Yields lines of JSON: a sentence each, in order, and at last `done`."""
        end: dict[str, Any] = {"done": True}
        if wanted.detected:
            end["detectedLanguage"] = wanted.detected
        end["ends"] = [layout.end for layout in wanted.texts]
        try:
            for place in wanted.sentences:
                while place not in found:
                    other, translation = await anext(rest)
                    found[other] = translation
                yield await self._in_thread(_line, wanted, place, found.pop(place))
        except RequestError as error:
            end = {"error": error.detail, "status": error.status_code}
        finally:
            await rest.aclose()
        yield to_json(end) + b"\n"

    def _in_thread(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Runs what takes a while, so that other requests are answered meanwhile."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads, function, *args)


def _places_by_kind(wanted: TranslateRequest) -> Mapping[Kind, list[Place]]:
    """Groups the sentences by what they must share to be translated together."""
    has_details = bool(wanted.details - {"segments"})
    places: dict[Kind, list[Place]] = defaultdict(list)
    for text, number in wanted.sentences:
        # Markup follows the words, for which it takes attention weights.
        details = has_details or number in wanted.texts[text].marked
        pair = (wanted.sources[text], wanted.target)
        places[Kind(pair, wanted.alternatives > 0, details)].append((text, number))
    return places


def _line(wanted: TranslateRequest, place: Place, translation: Translation) -> bytes:
    fields = segment(wanted, place, translation)
    return to_json(dict(zip(("text", "sentence"), place, strict=True)) | fields) + b"\n"


def _timed_out() -> RequestError:
    return RequestError(504, "Cannot translate text: the time is over")


def _stopping() -> RequestError:
    return RequestError(503, "The server is stopping", CLOSE)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(value: Any, *, status: int = 200) -> Response:
    """Makes a response of a value, or of its JSON."""
    body = value if isinstance(value, bytes) else to_json(value)
    return Response(body, status, media_type="application/json")


def _static_routes(languages: Languages, config: ServingConfig) -> list[Route]:
    """Lists the routes of the page, `/` and its files, and of what stays the same."""
    files = (resources.files("t2t_jax.serving") / "static").iterdir()
    named = {_PATHS.get(one.name, f"/static/{one.name}"): one for one in files}
    content = {path: file.read_bytes() for path, file in named.items()}
    spec = json.loads(content["/spec"])
    spec["info"]["version"] = __version__
    sources, targets = (dict.fromkeys(s) for s in zip(*languages.models, strict=True))
    for name, codes in (("source", [*sources, AUTO]), ("target", [*targets])):
        spec["parameters"][name]["schema"] = {"type": "string", "enum": codes}
    pair = zip(("source", "target"), next(iter(languages.models)), strict=True)
    first = {side: {"code": one, "name": name_of_language(one)} for side, one in pair}
    settings = {
        "charLimit": config.max_characters,
        "frontendTimeout": 500,
        **dict.fromkeys(("apiKeys", "keyRequired"), bool(config.api_keys)),
        **dict.fromkeys(("suggestions", "filesTranslation"), False),
        "supportedFilesFormat": [],
        "language": first,
    }
    made = {"/spec": spec, "/languages": [*languages], "/frontend/settings": settings}
    content |= {path: to_json(value) for path, value in made.items()}
    return [_static_route(*one) for one in content.items()]


def _static_route(path: str, content: bytes) -> Route:
    # Browsers ask again at each load: a new version of the program is used at once.
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    kind = _KINDS.get(path.rpartition(".")[2], "application/json")

    async def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return Route(path, send)
