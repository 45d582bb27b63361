"""The API, in the process and with a model that needs no JAX."""

import asyncio
import dataclasses
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_jax.cli.modes import serve
from t2t_jax.run.workdir import Workdir
from t2t_jax.serving.requests import without_weights
from tests.serving.fakes import FakeModel, ask, asked, fake_app, post, translation_of
from tests.serving.fuzz import FORM
from tests.waiting import wait_for

PATH = "/translate?source=en&target=de&q="
FIELDS = {"q": "hello you", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def app():
    found, worker = fake_app()
    yield found
    assert worker.close()


@pytest.fixture
def make():
    """Makes an application, its worker and its model."""
    workers = []

    def make(**limits):
        model = FakeModel()
        app, worker = fake_app({("en", "de"): model}, **limits)
        workers.append(worker)
        return app, worker, model

    yield make
    assert all(worker.close() for worker in workers)


def test_a_list_of_texts_keeps_order_and_white_space(app):
    q = ["a b. C d.\n\n  E f! ", "", "g"]
    response = post(app, "/translate", {**FIELDS, "q": q})
    assert response.json == {"translatedText": ["A B. C D.\n\n  E F! ", "", "G"]}


def multipart(**fields):
    fields = {"source": "en", "target": "de", **fields}
    head = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return "".join(head.format(*item) for item in fields.items()) + "--x--\r\n"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (FORM, "q=a+b%0D%0Ac&source=en&target=de"),
        (f"{FORM}; charset=utf-8", "q=a b\nc&source=en&target=de"),
        ("multipart/form-data; boundary=x", multipart(q="a b\r\nc")),
    ],
)
def test_forms(app, kind, body):
    headers = [("content-type", kind)]
    response = ask(app, "POST", "/translate", headers=headers, chunks=(body.encode(),))
    assert response.json == {"translatedText": "A B\nC"}


def test_alternatives_of_a_text_and_of_a_list(app):
    response = post(app, "/translate", {**FIELDS, "q": "aa. Bb.", "alternatives": 2})
    assert response.json["alternatives"] == ["AA.! BB.!", "AA.!! BB.!!"]
    response = post(app, "/translate", {**FIELDS, "q": ["a"], "alternatives": 99})
    assert response.json["alternatives"] == [["A!", "A!!", "A!!!"]]


def test_the_source_language_is_detected(app):
    q = "der Hund ist nicht hier"
    response = post(app, "/translate", {"q": q, "source": "auto", "target": "en"})
    assert response.json["detectedLanguage"] == {"confidence": 100.0, "language": "de"}
    # Only languages with a model for the target.
    response = post(app, "/translate", {"q": [q], "source": "auto", "target": "de"})
    assert response.json["detectedLanguage"][0]["language"] == "en"


def test_detection(app):
    best, other = post(app, "/detect", {"q": "the cat is not here"}).json
    assert (best["language"], other["language"]) == ("en", "de")
    assert best["confidence"] > other["confidence"] >= 0
    assert post(app, "/detect", {"q": "1 2 3"}).json[0]["confidence"] == 0


def test_details_of_sentences(app):
    fields = {**FIELDS, "q": "aa bb. Cc", "token_scores": True, "alignments": "true"}
    response = post(app, "/translate", fields)
    first, second = response.json["segments"]
    assert (first["gap"], first["source"], second["gap"]) == ("", "aa bb.", " ")
    (best,) = first["hypotheses"]
    assert best["tokens"] == ["\u2581AA", "\u2581BB.", "</s>"]
    assert best["token_log_probabilities"] == [-0.1, -0.9, -0.1]
    assert best["alignment"] == [[0, 0], [1, 1]]
    assert "attention" not in best


@pytest.mark.parametrize("kind", ["text", "html"])
def test_attention_is_a_row_of_weights_for_each_token(app, kind):
    fields = {**FIELDS, "q": "aa bb", "format": kind, "attention": True}
    (found,) = post(app, "/translate", fields).json["segments"]
    (best,) = found["hypotheses"]
    assert best["attention"] == np.eye(3).tolist()
    assert all(isinstance(x, float) for row in best["attention"] for x in row)


def test_html_is_aligned_as_text_where_the_eos_weighs_most():
    found = translation_of("a b", details=True)
    weights = np.array([[0.2, 0.1, 0.7], [0.1, 0.3, 0.6], [0, 0, 1]])
    best = dataclasses.replace(found.hypotheses[0], attention_TxS=weights)
    found = dataclasses.replace(found, hypotheses=(best,))
    (small,) = without_weights(found).hypotheses
    assert small.alignment() == best.alignment() == [(0, 0), (1, 1)]


def test_more_sentences_than_ever_have_a_place_are_refused(make):
    app, *_ = make(max_waiting=5)
    assert post(app, "/translate", {**FIELDS, "q": ["a", "b"]}).status == 200
    assert post(app, "/translate", {**FIELDS, "q": ["a", "b", "c"]}).status == 413


def test_languages_settings_spec_and_health(app):
    languages = ask(app, "GET", "/languages").json
    assert languages[0] == {"code": "en", "name": "English", "targets": ["de"]}
    settings = ask(app, "GET", "/frontend/settings").json
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    # What GNOME Dialect asks for, besides translations.
    names = ("keyRequired", "apiKeys", "suggestions")
    assert not any(settings[name] for name in names)
    assert post(app, "/suggest", {"q": "a", "s": "b"}).status == 403
    assert ask(app, "GET", "/spec").json["info"]["title"] == "LibreTranslate"
    assert ask(app, "GET", "/health").json == {"status": "ok"}


def test_the_stream_is_in_order_and_says_when_it_is_done(app):
    response = post(app, "/translate/stream", {**FIELDS, "q": ["aa. Bb.\nc", "d "]})
    lines = [json.loads(line) for line in response.body.splitlines()]
    found = [(x["text"], x["sentence"], x["gap"], x["translation"]) for x in lines[:-1]]
    rows = (0, 0, "", "AA."), (0, 1, " ", "BB."), (0, 2, "\n", "C"), (1, 0, "", "D")
    assert found == [*rows]
    assert lines[-1] == {"done": True, "ends": ["", " "]}
    assert response.headers["content-type"] == "application/x-ndjson"


def ask_at_once(made, words):
    """Asks for each word while the first is translated; returns answers and groups."""
    app, worker, model = made
    model.gate.clear()

    async def ask_all():
        asking = [asyncio.create_task(asked(app, "POST", PATH + q)) for q in words]
        while worker.queue.waiting < len(words) - 1:
            await asyncio.sleep(0.01)
        model.gate.set()
        return await asyncio.gather(*asking)

    return asyncio.run(ask_all()), model.groups


def test_one_sentence_that_fails_fails_alone(make):
    answers, groups = ask_at_once(make(), ("first", "good", "poison", "fine"))
    assert [one.status for one in answers] == [200, 200, 500, 200]
    assert answers[2].json["error"].startswith("Cannot translate text: The score")
    assert ["good", "poison", "fine"] in groups


def test_requests_of_several_clients_are_translated_together(make):
    words = [f"word{number}" for number in range(30)]
    answers, groups = ask_at_once(make(), words)
    found = [one.json["translatedText"] for one in answers]
    assert found == [word.upper() for word in words]
    assert len(groups) == 2


async def ask_behind(app, model, path, **options):
    """Asks while another sentence is translated; returns the answers to both."""
    model.gate.clear()
    first = asyncio.create_task(asked(app, "POST", f"{PATH}a"))
    while not model.groups:
        await asyncio.sleep(0.01)
    return first, await asked(app, "POST", f"{PATH}{path}", **options)


def test_a_full_queue_is_429_and_a_late_answer_504(make):
    app, worker, model = make(max_waiting=4, request_timeout=3)

    async def both():
        late = asyncio.create_task(ask_behind(app, model, "aa.+Bb."))
        while worker.queue.waiting < 2:
            await asyncio.sleep(0.01)
        full = await asked(app, "POST", f"{PATH}Cc.")
        first, _ = await late
        return full, await first

    full, late = asyncio.run(both())
    assert full.status == 429
    assert int(full.headers["retry-after"]) >= 1
    assert (late.status, set(late.json)) == (504, {"error"})
    model.gate.set()


def test_what_a_client_that_is_gone_waited_for_is_not_translated(make):
    app, worker, model = make()

    async def leave():
        first, gone = await ask_behind(app, model, "bb.+Cc.", gone=0.05)
        waiting = worker.queue.waiting
        model.gate.set()
        return gone, waiting, await first

    gone, waiting, first = asyncio.run(leave())
    assert (gone.status, waiting, first.status) == (0, 0, 200)
    assert model.groups == [["a"]]


LONG = "dog " * 1_250


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"q": LONG, "attention": True}, 4000),
        ({"q": LONG, "alignments": True}, 4000),
        ({"q": ["a." * 999] * 3, "alternatives": 1}, 4000),
        ({"q": LONG[:2_000], "token_scores": True}, 1000),
        ({"q": f"<p>{LONG}", "format": "html", "alternatives": 1}, 4000),
    ],
)
def test_details_of_long_texts_are_refused_with_the_limit(app, fields, limit):
    response = post(app, "/translate", {**FIELDS, **fields})
    assert response.status == 400
    assert f"up to {limit} characters" in response.json["error"]


def test_long_html_is_translated_without_attention(make):
    app, _, model = make()
    fields = {"q": f"<b>dog</b> {LONG}", "format": "html"}
    response = post(app, "/translate", {**FIELDS, **fields})
    assert response.json["translatedText"].startswith("<b>DOG</b> DOG")
    assert model.detailed == [False]


def test_the_time_of_a_request_includes_its_answer(make, monkeypatch):
    app, *_ = make(request_timeout=0.3)
    released = threading.Event()
    monkeypatch.setattr(
        "t2t_jax.serving.app.translate_response", lambda *_: released.wait(60)
    )
    assert post(app, "/translate", FIELDS).status == 504
    released.set()


def test_a_server_is_healthy_when_the_first_programs_are_compiled(make):
    app, worker, model = make()
    model.gate.clear()
    worker.warm_up()
    response = ask(app, "GET", "/health")
    assert (response.status, response.json) == (503, {"status": "loading"})
    model.gate.set()
    wait_for(lambda: ask(app, "GET", "/health").status != 503)
    assert ask(app, "GET", "/health").json == {"status": "ok"}
    worker.close()  # a server that stops
    for response in (ask(app, "GET", "/health"), post(app, "/translate", FIELDS)):
        assert response.status == 503


def test_a_worker_that_died_answers_with_errors(make, monkeypatch):
    app, worker, _ = make()
    monkeypatch.setattr(worker, "_translate", lambda taken: 1 / 0)
    assert post(app, "/translate", FIELDS).status == 500
    assert ask(app, "GET", "/health").status == 503


@pytest.mark.parametrize(
    ("key", "in_header", "status"),
    [
        *(("", False, 401), ("wrong", False, 403), ("wrong", True, 403)),
        *(("right", False, 200), ("right", True, 200), ("ri\u00dfht", False, 403)),
    ],
)
def test_keys(make, key, in_header, status):
    app, *_ = make(api_keys=frozenset({"right", "other"}))
    headers = [("authorization", f"Bearer {key}")] if in_header else []
    fields = FIELDS if in_header or not key else {**FIELDS, "api_key": key}
    response = post(app, "/translate", fields, headers=headers)
    assert response.status == status
    if status != 200:
        assert set(response.json) == {"error"}
    assert ask(app, "GET", "/languages").status == 200
    assert ask(app, "GET", "/metrics").status == 401
    assert ask(app, "GET", "/frontend/settings").json["keyRequired"]


def test_a_key_in_the_header_is_checked_before_the_body_is_read(make):
    app, *_ = make(api_keys=frozenset({"right"}))
    headers = [("authorization", "Bearer wrong")]
    read = [b"", 60.0, b""]  # whoever reads it waits a minute
    response = ask(app, "POST", "/translate", headers=headers, chunks=read)
    assert response.status == 403
    for key in (["right"], {"a": 1}, 7, True):
        assert post(app, "/translate", {**FIELDS, "api_key": key}).status == 403


def test_hosts_and_origins(make):
    origin = "https://good.example"
    hosts = frozenset({"localhost", "::1"})
    app, *_ = make(allowed_hosts=hosts, cors_origins=frozenset({origin}))

    def status(host, origin=None, method="POST"):
        headers = [("host", host), *([("origin", origin)] if origin else [])]
        headers.append(("access-control-request-method", "POST"))
        return ask(app, method, f"{PATH}a", headers=headers)

    assert status("localhost:5000").status == status("[::1]:5000").status == 200
    assert status("evil.example").status == status("").status == 421
    assert status("localhost.evil.example:5000").status == 421
    assert status("localhost:5000", "http://localhost:5000").status == 200
    assert status("localhost:5000", "http://evil.example").status == 403
    assert status("localhost:1.evil.example").status == status("[::1").status == 421
    for wrong in ("null", "http://[", "http://[::1", "http://[x]", "[", "://", "\xff"):
        assert status("localhost:5000", wrong).status == 403
        assert status("localhost:5000", wrong, "GET").status == 405
    for method, code in (("POST", 200), ("OPTIONS", 200), ("PUT", 405)):
        good = status("localhost:5000", origin, method)
        assert good.status == code
        assert good.headers["access-control-allow-origin"] == origin
    bad = status("localhost:5000", "http://evil.example", "OPTIONS")
    assert "access-control-allow-origin" not in bad.headers


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/nowhere"), ("GET", "/translate"), ("POST", "/translate")],
)
def test_headers_of_every_response(app, method, path):
    headers = ask(app, method, path).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= {*policy.split("; ")}
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_the_page_has_no_inline_code_and_loads_only_its_own_files(app):
    page = ask(app, "GET", "/")
    text = page.body.decode()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert not any(part in text for part in ("style=", "onclick", "://"))
    names = [part.split('"')[0] for part in text.split("static/")[1:]]
    assert len(names) >= 4
    for name in (*names, "client.js", "words.js", "panels.js"):
        file = ask(app, "GET", f"/static/{name}")
        assert file.status == 200
        kinds = {"js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
        kinds["css"] = "text/css; charset=utf-8"
        assert file.headers["content-type"] == kinds[name.rpartition(".")[2]]
        assert b"innerHTML" not in file.body
        tag = [("if-none-match", file.headers["etag"])]
        assert ask(app, "GET", f"/static/{name}", headers=tag).status == 304


def test_metrics_count_and_hold_no_paths_of_strangers(app):
    post(app, "/translate", FIELDS)
    ask(app, "GET", "/secret-path")
    text = ask(app, "GET", "/metrics").body.decode()
    assert "secret-path" not in text
    assert 't2t_jax_requests_total{path="other",status="404"}' in text
    assert 't2t_jax_translate_seconds_bucket{le="+Inf"}' in text


def test_texts_are_logged_only_if_asked(caplog):
    for log_text in (False, True):
        app, worker = fake_app(log_text=log_text)
        post(app, "/translate", {**FIELDS, "q": "my secret"})
        post(app, "/translate", {**FIELDS, "q": ["poison", "my secret"]})
        worker.close()
        assert ("my secret" in caplog.text) is log_text


class Code(str):
    """A code that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Code.compared += 1
        return str.__eq__(self, other)


def test_the_pairs_of_a_model_of_many_languages_are_not_gone_through(monkeypatch):
    codes = [Code(f"x{number:03}_Latn") for number in range(202)]
    pairs = [(one, to) for one in codes for to in codes if one is not to]
    monkeypatch.setattr(
        serve, "_named_workdirs", lambda part: [(pair, part) for pair in pairs]
    )
    options = SimpleNamespace(workdir=Workdir(Path("model")))
    assert len(serve._workdirs(options)) == 40_602
    app, worker = fake_app(dict.fromkeys(pairs, FakeModel()))
    listed = ask(app, "GET", "/languages").json
    assert [len(one["targets"]) for one in listed] == [201] * 202
    assert Code.compared < 10 * len(pairs)
    Code.compared = 0
    assert ask(app, "GET", "/languages").json == listed
    assert len(post(app, "/detect", {"q": "the cat is not here"}).json) == 202
    other = post(app, "/translate", {**FIELDS, "target": "x007_Latin"}).json
    assert "supported: x007_Latn, x000_Latn" in other["error"]
    assert "and 190 more" in other["error"]
    assert Code.compared < 10 * len(codes)
    assert worker.close()
