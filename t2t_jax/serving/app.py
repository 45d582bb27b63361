"""The ASGI application: LibreTranslate's HTTP API, extensions, and a page."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from t2t_jax.serving import metrics, page
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.guard import (
    App,
    ClientGoneError,
    Guard,
    bearer_key,
    headers_of,
    read_body,
    require_key,
)
from t2t_jax.serving.languages import Languages
from t2t_jax.serving.queue import Job, Kind, QueueFullError
from t2t_jax.serving.requests import (
    RequestError,
    TranslateRequest,
    parse_body,
    read_text,
    read_translate_request,
)
from t2t_jax.serving.responses import (
    error_body,
    segment,
    to_json,
    translate_response,
    without_weights,
)
from t2t_jax.serving.worker import TranslationWorker

if TYPE_CHECKING:
    from t2t_jax.decoding.text.translation import Translation
    from t2t_jax.inference.model import TranslationModel

P = ParamSpec("P")
T = TypeVar("T")

Place: TypeAlias = tuple[int, int]
"""The numbers of a text and of a sentence in it."""

_THREADS = 4
_LOGGER = logging.getLogger(__name__)


def make_app(
    models: Mapping[tuple[str, str], TranslationModel],
    config: ServingConfig | None = None,
    *,
    worker: TranslationWorker | None = None,
) -> App:
    """Makes an ASGI application that translates with these models.

    It can be mounted in another application; one thread translates for all requests.

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
    counted = metrics.Metrics(worker)
    api = _Api(languages, config, worker, counted)

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(worker.close)

    routes = api.routes()
    # Without Starlette's own application, whose errors are not JSON.
    router = Router(routes, lifespan=lifespan, redirect_slashes=False)
    paths = {route.path for route in routes}
    app: App = Guard(router, config, counted, paths=paths)
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
    """The endpoints."""

    def __init__(
        self,
        languages: Languages,
        config: ServingConfig,
        worker: TranslationWorker,
        counted: metrics.Metrics,
    ):
        self._languages, self._config = languages, config
        self._worker, self._metrics = worker, counted
        # Few, as each can delay the event loop by the time of a thread switch.
        self._threads = ThreadPoolExecutor(_THREADS, "requests")

    def routes(self) -> list[Route]:
        """Lists the endpoints."""
        return [
            *page.routes(),
            Route("/translate", self.translate, methods=["POST"]),
            Route("/translate/stream", self.translate_stream, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/frontend/settings", self.settings),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/translate_file", self.refuse, methods=["POST"]),
            Route("/suggest", self.refuse, methods=["POST"]),
        ]

    async def translate(self, request: Request) -> Response:
        """Translates texts, and answers when all are translated."""
        client, wanted = await self._read(request)
        task = asyncio.create_task(self._translate_all(wanted, client))
        gone = asyncio.create_task(_disconnected(request))
        try:
            await asyncio.wait(
                {task, gone},
                timeout=self._config.request_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return _json(task.result())
            raise ClientGoneError if gone.done() else _late()
        finally:
            task.cancel()
            gone.cancel()
            # Until what was not translated yet has left the queue.
            await asyncio.gather(task, gone, return_exceptions=True)

    async def translate_stream(self, request: Request) -> Response:
        """Translates texts, and sends each sentence as soon as it is translated."""
        client, wanted = await self._read(request)
        if wanted.is_html:
            raise RequestError(
                400, "Invalid request: format=html is not for /translate/stream"
            )
        results = self._results(wanted, client)
        # Before the response begins, so that an error has its own status.
        first = await anext(results, None)
        return StreamingResponse(
            self._lines(wanted, first, results), media_type="application/x-ndjson"
        )

    async def detect(self, request: Request) -> Response:
        """Lists the languages that a text may be in."""
        text = read_text(await self._fields(request), self._config)
        return _json(await self._in_thread(self._languages.detect, text))

    async def languages(self, request: Request) -> Response:
        """Lists the languages."""
        return _json([language._asdict() for language in self._languages])

    async def settings(self, request: Request) -> Response:
        """Returns what a user interface needs."""
        source, target = next(iter(self._languages.models))
        named = {
            one.code: {"code": one.code, "name": one.name} for one in self._languages
        }
        has_keys = bool(self._config.api_keys)
        return _json(
            {
                "charLimit": self._config.max_characters,
                "frontendTimeout": 500,
                "apiKeys": has_keys,
                "keyRequired": has_keys,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {"source": named[source], "target": named[target]},
            }
        )

    async def health(self, request: Request) -> Response:
        """Returns whether requests are answered."""
        if not self._worker.is_alive:
            return _json(error_body("The server is stopping"), status=503)
        if not self._worker.is_ready:
            return _json({"status": "loading"}, status=503)
        return _json({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Returns metrics in the text format of Prometheus."""
        require_key(bearer_key(headers_of(request.scope)), self._config)
        return Response(
            self._metrics.text(), headers={"content-type": metrics.CONTENT_TYPE}
        )

    async def refuse(self, request: Request) -> Response:
        """Refuses files and suggestions, as LibreTranslate does without them."""
        raise RequestError(403, "This is disabled on this server.")

    async def _fields(self, request: Request) -> dict[str, Any]:
        headers = headers_of(request.scope)
        key: object = bearer_key(headers)
        if key is not None:  # before the body, which only clients with a key may send
            require_key(key, self._config)
        body = await read_body(headers, request.receive, self._config)
        content_type = headers.get("content-type", "")
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
        found: list[dict[int, Translation]] = [{} for _ in wanted.texts]
        async with aclosing(self._results(wanted, client)) as results:
            async for (text, number), translation in results:
                found[text][number] = (
                    without_weights(translation) if wanted.is_html else translation
                )
        translations = [[one[n] for n in range(len(one))] for one in found]
        self._log(wanted, translations)
        return await self._in_thread(translate_response, wanted, translations)

    async def _results(
        self, wanted: TranslateRequest, client: str
    ) -> AsyncGenerator[tuple[Place, Translation]]:
        """Yields translations as they are found, with their places.

        Raises:
          RequestError: the queue is full, time is over, or a sentence failed.
        """
        loop = asyncio.get_running_loop()
        found: asyncio.Queue[tuple[Place, Any]] = asyncio.Queue()

        def deliver(where: list[Place], number: int, result: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(found.put_nowait, (where[number], result))

        jobs = self._jobs(wanted, client, deliver)
        deadline = loop.time() + self._config.request_timeout
        left = sum(len(job.sentences) for job in jobs)
        try:
            self._submit(jobs)
            while left:
                try:
                    async with asyncio.timeout_at(deadline):
                        await asyncio.sleep(0)  # where results wait already
                        place, result = await found.get()
                except TimeoutError:
                    raise _late() from None
                if isinstance(result, BaseException):
                    raise _failure(result)
                left -= 1
                yield place, result
        finally:
            for job in jobs:
                self._worker.queue.cancel(job)

    def _jobs(
        self,
        wanted: TranslateRequest,
        client: str,
        deliver: Callable[[list[Place], int, Any], None],
    ) -> list[Job]:
        """Makes a job for the sentences of each kind."""
        has_details = bool(wanted.details - {"segments"})
        places: dict[Kind, list[Place]] = {}
        for text, layout in enumerate(wanted.texts):
            for number in range(len(layout.sentences)):
                kind = Kind(
                    (wanted.sources[text], wanted.target),
                    several=wanted.alternatives > 0,
                    # Markup follows the words, for which it takes attention weights.
                    details=has_details or number in layout.marked,
                )
                places.setdefault(kind, []).append((text, number))
        jobs = []
        for kind, where in places.items():
            sentences = [wanted.texts[t].sentences[n].text for t, n in where]
            jobs.append(Job(client, kind, sentences, partial(deliver, where)))
        return jobs

    def _submit(self, jobs: list[Job]) -> None:
        try:
            self._worker.submit(*jobs)
        except QueueFullError:
            if not self._worker.is_alive:
                raise RequestError(
                    503, "The server is stopping", {"connection": "close"}
                ) from None
            seconds = math.ceil(self._worker.seconds_waiting)
            raise RequestError(
                429,
                "Slowdown: too many texts are waiting",
                {"retry-after": str(min(max(1, seconds), 60))},
            ) from None

    async def _lines(
        self,
        wanted: TranslateRequest,
        first: tuple[Place, Translation] | None,
        results: AsyncGenerator[tuple[Place, Translation]],
    ) -> AsyncIterator[bytes]:
        """Yields lines of JSON: a sentence each, in order, and at last `done`."""
        order = [
            (text, number)
            for text, layout in enumerate(wanted.texts)
            for number in range(len(layout.sentences))
        ]
        found = dict([first] if first else [])
        end: dict[str, Any] = {"done": True}
        if wanted.detected:
            end["detectedLanguage"] = list(wanted.detected)
        end["ends"] = [layout.end for layout in wanted.texts]
        try:
            for place in order:
                while place not in found:
                    other, translation = await anext(results)
                    found[other] = translation
                yield await self._in_thread(_line, wanted, place, found.pop(place))
        except RequestError as error:
            end = dict(error_body(error.message, status=int(error.status)))
        finally:
            await results.aclose()
        yield to_json(end) + b"\n"

    async def _in_thread(
        self, function: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Runs what takes a while, so that other requests are answered meanwhile."""
        loop = asyncio.get_running_loop()
        call = partial(function, *args, **options)
        return await loop.run_in_executor(self._threads, call)

    def _log(
        self, wanted: TranslateRequest, translations: list[list[Translation]]
    ) -> None:
        if self._config.log_text:
            for layout, found in zip(wanted.texts, translations, strict=True):
                for one, translation in zip(layout.sentences, found, strict=True):
                    _LOGGER.warning("%s -> %s", one.text, translation.text)


def _line(wanted: TranslateRequest, place: Place, translation: Translation) -> bytes:
    text, number = place
    sentence = wanted.texts[text].sentences[number]
    fields = segment(sentence.gap, sentence.text, translation, wanted)
    return to_json({"text": text, "sentence": number, **fields}) + b"\n"


def _late() -> RequestError:
    return RequestError(504, "Cannot translate text: the time is over")


def _failure(error: BaseException) -> RequestError:
    lines = str(error).splitlines() or [type(error).__name__]
    return RequestError(500, f"Cannot translate text: {lines[0][:200]}")


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(value: Any, *, status: int = 200) -> Response:
    """Makes a response of a value, or of its JSON."""
    body = value if isinstance(value, bytes) else to_json(value)
    return Response(body, status, media_type="application/json")
