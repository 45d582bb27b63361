"""A model that needs no JAX: its translations are the sentences in capitals."""

import asyncio
import json
import threading
import time
from types import SimpleNamespace

import numpy as np

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.text.translation import Hypothesis, Translation
from t2t_jax.errors import DataError
from t2t_jax.serving.app import make_app
from t2t_jax.serving.config import ServingConfig
from t2t_jax.serving.languages import Languages
from t2t_jax.serving.worker import TranslationWorker
from tests.decoding.words import Untagged


def translation_of(line, ranks=1, *, details=False):
    """Each word attends to its own; the last one is improbable."""
    tokens = (*(f"\u2581{word}" for word in line.upper().split()), "</s>")
    sources = (*(f"\u2581{word}" for word in line.split()), "</s>")
    logs = (*(-0.1,) * (len(tokens) - 2), -0.9, -0.1)[-len(tokens) :]
    hypotheses = tuple(
        Hypothesis(
            text=line.upper() + "!" * rank,
            score=-1.0 - rank,
            log_probability=-2.0 - rank,
            num_tokens=len(tokens),
            ended=True,
            tokens=tokens,
            token_log_probabilities=logs if details else (),
            attention_TxS=np.eye(len(tokens), dtype=np.float32) if details else None,
        )
        for rank in range(ranks)
    )
    return Translation(hypotheses=hypotheses, source_tokens=sources)


class FakeModel:
    """Counts the groups that are translated together.

    Attributes:
      gate: groups wait until it is set.
      seconds: that a group takes.
    """

    def __init__(self, *, seconds=0.0):
        self.decoding = DecodingConfig(max_source_length=64)
        self.known_words = None
        self.vocabularies = VocabularyPair(Untagged(), Untagged())
        self.seconds = seconds
        self.gate = threading.Event()
        self.gate.set()
        self.groups = []
        self.detailed = []

    def translator(self, *, n_best, token_scores, **options):
        self.detailed.append(token_scores)
        return FakeTranslator(self, n_best, token_scores)


class FakeTranslator:
    def __init__(self, model, n_best, details):
        self.model, self.n_best, self.details = model, n_best, details

    def with_row_growth(self, row_growth):
        return self

    def translations(self, lines, **_):
        found = dict(self.iter_translations(lines))
        return [found[number] for number in range(len(lines))]

    def iter_translations(self, lines, **_):
        self.model.groups.append(list(lines))
        self.model.gate.wait(120)
        time.sleep(self.model.seconds)
        if "poison" in lines:
            raise DataError("The score of line 1 must be finite. Use another.")
        # Not in the order of the lines.
        for number, line in reversed(list(enumerate(lines))):
            yield number, translation_of(line, self.n_best, details=self.details)


def fake_app(models=None, **limits):
    """Returns an application, and its worker."""
    models = models or {("en", "de"): FakeModel(), ("de", "en"): FakeModel()}
    config = ServingConfig(**limits)
    worker = TranslationWorker(Languages(models), capacity=config.max_waiting)
    return make_app(models, config, worker=worker), worker


async def asked(app, method, path, *, headers=None, chunks=(b"",), client="c", gone=60):
    """Asks an application as a server does.

    Args:
      chunks: of the body; a float is a pause in seconds, None a lost connection.
      gone: seconds after the body, until the client closes the connection.

    Returns:
      With `status`, `headers`, `body`, and `json` of the body, None if it is not JSON.
    """
    path, _, query = path.partition("?")
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1"},
        **{"method": method, "path": path, "raw_path": path.encode()},
        **{"query_string": query.encode(), "root_path": "", "scheme": "http"},
        "headers": [(n.encode(), v.encode("latin-1")) for n, v in (headers or ())],
        **{"client": (client, 5), "server": ("127.0.0.1", 5000), "state": {}},
    }
    waiting, sent = list(chunks), []

    async def receive():
        while waiting and isinstance(waiting[0], float):
            await asyncio.sleep(waiting.pop(0))
        if not waiting:
            await asyncio.sleep(gone)
            return {"type": "http.disconnect"}
        chunk = waiting.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0] if sent else {"status": 0, "headers": ()}
    body = b"".join(message.get("body", b"") for message in sent)
    found = None
    if dict(start["headers"]).get(b"content-type") == b"application/json" and body:
        found = json.loads(body)
    return SimpleNamespace(
        status=start["status"],
        headers={n.decode(): v.decode() for n, v in start["headers"]},
        body=body,
        json=found,
    )


def ask(app, method, path, **options):
    return asyncio.run(asked(app, method, path, **options))


def post(app, path, fields, **options):
    """Posts JSON."""
    headers = [("content-type", "application/json"), *options.pop("headers", ())]
    body = json.dumps(fields).encode()
    return ask(app, "POST", path, headers=headers, chunks=(body,), **options)
