"""Requests that are wrong get the right status each, and the server goes on.

Most are asked in the process; those that are not HTTP, on a socket.
"""

import asyncio
import json
import random
import socket
import time
from contextlib import suppress

import pytest

from t2t_jax.serving.requests import DETAILS
from tests.serving.fake_server import fake_server
from tests.serving.fakes import asked, fake_app
from tests.serving.fuzz import FORM, JSON, mutated
from tests.waiting import wait_for

MULTIPART = "multipart/form-data"
GOOD = {"q": "hello", "source": "en", "target": "de"}
LIMITS = {"max_body_bytes": 9_000, "max_characters": 700, "max_texts": 11}


def with_fields(**fields):
    return json.dumps({**GOOD, **fields}).encode()


_NOT_JSON = [
    *("", "{", "[]", "1", "null", '"q"', "{'q': 1}", '{"q": NaN}', "[[[[", "[" * 8_000),
    *('{"q":' * 1_500, '{"q": ' + "9" * 5_000 + "}", "{" + " " * 8_000),
    '{"q": Infinity, "source": "en", "target": "de"}',
]
_NOT_TEXT = [b"\xff\xfe{\x00}\x00", b'{"q": "\xed\xa0\x80"}', b"\x80", b"\x00" * 9]
_NO_STRINGS = [None, 7, 0.5, True, False, {}, {"a": 1}, [], [[]], ""]
_NO_CODES = ["xx", "EN", "en\n", "\0", "e" * 600, "../en", "\ud800", "<b>", ["en"]]
_NO_SWITCH = ["yes", 2, [], {}, "\u2713", 0.5]
_WRONG_VALUES = {
    "q": [*_NO_STRINGS, [None], [3], ["a", 3], [["a"]]],
    "source": [*_NO_STRINGS, *_NO_CODES],
    "target": [*_NO_STRINGS, *_NO_CODES],
    "format": ["HTML", "pdf", 3, ["text"], {"a": 1}],
    "alternatives": [-1, 101, "x", "1.5", 1.5, [1], "\u0663", True, None, "9" * 300],
    "split": ["words", 1, ["lines"]],
    **dict.fromkeys(DETAILS, _NO_SWITCH),
}
_MISSING = [{k: v for k, v in GOOD.items() if k != name} for name in GOOD]
_WRONG_FORMS = [
    *(b"q=%ff&source=en&target=de", b"q=\xff", b"a=1&" * 99, b"", b"=", b"{}")
]
_PART = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n'
_WRONG_PARTS = [b"", b"--x", _PART, _PART + b"\xff\xff\r\n--x--\r\n", b"--x\r\n" * 90]
_BOUNDARIES = ["", "; boundary=", "; boundary=y", '; boundary="', "; boundary=x\xe9"]

# Content type, body, status.
WRONG_BODIES = [
    *((JSON, text.encode(), 400) for text in _NOT_JSON),
    *((JSON, body, 400) for body in _NOT_TEXT),
    *((JSON, json.dumps(fields).encode(), 400) for fields in _MISSING),
    *(
        (JSON, with_fields(**{name: value}), 400)
        for name, values in _WRONG_VALUES.items()
        for value in values
    ),
    (JSON, with_fields(q="x" * 701), 413),
    (JSON, with_fields(q=["x" * 71] * 10), 413),
    (JSON, with_fields(q=["x"] * 12), 413),
    (JSON, b'{"q": "' + b"x" * 9_000 + b'"}', 413),
    (FORM, b"q=" + b"x" * 9_001, 413),
    *((FORM, body, 400) for body in _WRONG_FORMS),
    *((f"{MULTIPART}; boundary=x", body, 400) for body in _WRONG_PARTS),
    *((MULTIPART + end, b"--x\r\n\r\na\r\n--x--\r\n", 400) for end in _BOUNDARIES),
    *((kind, b"q=a", 415) for kind in ("text/plain", "image/png", "x", f"{JSON}x")),
    (f"{JSON}; charset=utf-16", with_fields(), 415),
    (f"{FORM}; charset=latin-1", b"q=a", 415),
]

_ODD_TEXTS = [
    *("\ud800", "a\udfffb", "\0", "\ufeff", "\u202eabc", "e" + "\u0301" * 50),
    *("\U0001f469\u200d\U0001f680", "\uffff", "\u2028x\u2029", " \n\t ", "\x85"),
    *("<script>alert(1)</script>", "'; DROP TABLE x; --", "{{7*7}}", "%s%n", "\\"),
]
# Bodies that are answered.
ODD_BODIES = [
    *(with_fields(q=text) for text in _ODD_TEXTS),
    *(with_fields(q=[text, text]) for text in _ODD_TEXTS),
    with_fields(api_key="unneeded", more=[1, {"a": None}]),
    b'{"q": "a", "q": "b", "source": "en", "target": "de"}',
]


def _requests():
    """Yields method, path, content type, body and statuses that are right."""
    for kind, body, status in WRONG_BODIES:
        yield "POST", "/translate", kind, body, {status}
        yield "POST", "/translate/stream", kind, body, {status}
    for body in ODD_BODIES:
        yield "POST", "/translate", JSON, body, {200}
    rng, good = random.Random(7), with_fields(q="The cat \u00e4\u00f6 \u732b sleeps.")
    for _ in range(200):
        yield "POST", "/translate", JSON, mutated(rng, good), {200, 400}
    for method in ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "FOO"):
        yield method, "/translate", JSON, b"", {405}
        yield method, "/detect", JSON, b"", {405}
    for path in ("/x", "/static/../config.py", "/static/", "/static/%2e%2e", "//"):
        yield "GET", path, JSON, b"", {404}


async def _ask_all(app):
    """Asks everything; returns each status with its request."""
    found = []
    for one in _requests():
        method, path, kind, body, _ = one
        headers = [("content-type", kind)]
        response = await asked(app, method, path, headers=headers, chunks=(body,))
        found.append((response.status, one))
        if response.status >= 400 and method != "HEAD":
            assert set(response.json) == {"error"}
    return found


def test_500_wrong_requests_get_the_right_status():
    app, worker = fake_app(read_timeout=5, **LIMITS)
    found = asyncio.run(_ask_all(app))
    assert len(found) >= 500
    assert [one for one in found if one[0] not in one[1][-1]] == []
    good = asyncio.run(asked(app, "POST", "/translate?q=still+a&source=en&target=de"))
    assert good.json == {"translatedText": "STILL A"}
    worker.close()


def test_bodies_that_are_slow_endless_or_lost():
    hasty, patient = (
        fake_app(read_timeout=seconds, max_body_bytes=1_000) for seconds in (0.2, 60)
    )
    kind = [("content-type", FORM)]

    def status(*chunks, headers=(), app=patient[0]):
        ask = asked(app, "POST", "/translate", headers=[*kind, *headers], chunks=chunks)
        return asyncio.run(ask).status

    assert status(b"q=hello", 0.5, b"&source=en", app=hasty[0]) == 408
    drops = [part for _ in range(30) for part in (b"x", 0.02)]
    assert status(*drops, app=hasty[0]) == 408
    assert status(*[b"x" * 900] * 4) == 413
    assert status(*[b"x" * 900] * 90) == 413
    assert status(b"q=a", headers=[("content-length", "99999999999")]) == 413
    assert status(b"q=hel", None) == 0
    framings = [("content-length", "3"), ("transfer-encoding", "chunked")]
    assert status(b"q=a", headers=framings) == 400
    for name in ("host", "origin", "authorization", "content-length"):
        assert status(b"q=a", headers=[(name, "3"), (name, "4")]) == 400
    assert status(b"q=a&source=en&target=de") == 200
    for _, worker in (hasty, patient):
        worker.close()


@pytest.fixture(scope="module")
def port():
    limits = {"read_timeout": 1.0, "max_connections": 40, "max_body_bytes": 20_000}
    with fake_server("0", limits) as (_, found):
        yield found


def exchange(port, *parts, seconds=60, pause=0.0):
    """Sends bytes on a connection of its own; returns what came until it was closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        found = b""
        try:
            with suppress(ConnectionError):  # closed before all was sent
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)
            while more := connection.recv(1 << 16):
                found += more
        except (ConnectionError, TimeoutError) as error:
            found += f"<{type(error).__name__}>".encode()
        return found


HOST = b"Host: 127.0.0.1\r\n"
CLOSE = HOST + b"Connection: close\r\n"
BODY = b"q=hello&source=en&target=de"


def post_bytes(*headers, body=BODY):
    lines = [b"POST /translate HTTP/1.1", b"Content-Type: " + FORM.encode(), *headers]
    return b"\r\n".join(lines) + b"\r\n" + CLOSE + b"\r\n" + body


LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
ON_SOCKETS = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
    (b"\x00" * 50 + b"\r\n\r\n", 400),
    (b"GET /\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),  # no host
    (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
    *(
        (b"GET / HTTP/1.1\r\n" + HOST + line + b"\r\n", 400)
        for line in (HOST, b"A: b\x00c\r\n", b"A : b\r\n")
    ),
    (b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(9_000)), 400),
    (post_bytes(LENGTH), 200),
    (post_bytes(CHUNKED, body=b"1b\r\n" + BODY + b"\r\n0\r\n\r\n"), 200),
    (post_bytes(LENGTH, CHUNKED, body=b"1b\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    (post_bytes(LENGTH, b"Content-Length: 3"), 400),
    *((post_bytes(b"Content-Length: " + n), 400) for n in (b"-1", b"+5", b"0x10")),
    (post_bytes(b"Content-Length: 99999999999999999999"), 413),
    *(
        (post_bytes(CHUNKED, body=size + b"\r\nhello\r\n0\r\n\r\n"), 400)
        for size in (b"zz", b"-5")
    ),
    (post_bytes(b"Content-Length: 25000", body=b"x" * 25_000), 413),
    (post_bytes(LENGTH, b"Expect: 100-continue"), 100),
    (b"GET / HTTP/1.1\r\n" + CLOSE + b"Upgrade: websocket\r\n\r\n", 200),
    (b"OPTIONS * HTTP/1.1\r\n" + CLOSE + b"\r\n", 404),
]


def test_what_is_not_quite_http(port):
    found = [(int(exchange(port, one)[9:12] or 0), one) for one, _ in ON_SOCKETS]
    assert found == [(status, one) for one, status in ON_SOCKETS]
    # Either is an answer to an encoding that is not known.
    unknown = post_bytes(b"Transfer-Encoding: xchunked")
    assert int(exchange(port, unknown)[9:12]) in (400, 501)


def is_timeout(answer):
    # What is sent to a closed connection can make the system drop the answer.
    return b" 408 " in answer or answer == b"<ConnectionResetError>"


def test_slow_headers_slow_bodies_and_idle_connections_are_closed(port):
    start = time.monotonic()
    assert exchange(port)[9:12] == b"408"
    # Each letter arrives in time, and all of them do not.
    letters = [bytes([letter]) for letter in b"GET / HTTP/1.1\r\nA: bcdefghijklmn"]
    assert is_timeout(exchange(port, *letters, pause=0.06))
    slow_body = (post_bytes(b"Content-Length: 99", body=b""), *[b"x"] * 30)
    assert is_timeout(exchange(port, *slow_body, pause=0.05))
    assert time.monotonic() - start < 60  # of no end


def test_chunks_that_cost_more_than_they_hold_are_refused(port):
    # A million chunks of a byte kept the event loop busy for seconds.
    for size, wanted in ((40_000, b" 400 "), (1_000, b" 200 ")):
        body = b"q=" + b"a" * size + b"&source=en&target=de"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        answer = exchange(port, post_bytes(CHUNKED, body=chunks))
        assert wanted in answer[:20] or (wanted == b" 400 " and b"Reset" in answer)


def test_a_client_that_has_sent_its_last_is_answered(port):
    """Its connection is half closed before it is answered, or while."""
    for version, interim in ((b"1.1", b"100"), (b"1.0", b"200")):
        request = post_bytes(LENGTH).replace(b"HTTP/1.1", b"HTTP/" + version)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        assert answer[9:12] in (interim, b"200")
        assert answer.endswith(b'{"translatedText":"HELLO"}')


def test_a_client_that_has_left_is_not_waited_for():
    """Its sentences leave the queue, although the end of its request looks the same."""
    with fake_server("20", {}) as (_, port):
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(post_bytes(LENGTH))
        wait_for_answer(port, "/metrics", b"t2t_jax_requests_in_progress 1.0\n")


def wait_for_answer(port, path, *wanted):
    """Asks until an answer holds what is wanted: connections take time to close."""
    request = b"GET %s HTTP/1.1\r\n" % path.encode() + CLOSE + b"\r\n"

    def is_there():
        answer = exchange(port, request)
        return all(one in answer for one in wanted)

    wait_for(is_there, seconds=30)


def test_too_many_connections_are_refused_and_others_stay(port):
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    wait_for_answer(port, "/health", b" 503 ")
    for connection in held:
        connection.close()
    wait_for_answer(port, "/health", b" 200 ")


def test_lost_connections_leave_nothing_behind(port):
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(post_bytes(LENGTH)[: random.randint(1, 120)])
    wanted = (b"t2t_jax_waiting_sentences 0.0\n", b"t2t_jax_requests_in_progress 1.0\n")
    wait_for_answer(port, "/metrics", *wanted)
