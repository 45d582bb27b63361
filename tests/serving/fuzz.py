"""Mutated requests to a server with a key.

None has the key, so that all of it is read from strangers.
"""

import asyncio
import random
from collections import Counter

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
MULTIPART, JSON = "multipart/form-data; boundary=x", "application/json"
FORM = "application/x-www-form-urlencoded"


def part(name=b"q", more=b"", content=b"a"):
    return b'--x\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (
        *(name, more, content),
    )


_TYPE, _NESTED = (
    b"\r\nContent-Type: %s",
    (b"message/rfc822", b"multipart/x; boundary=y"),
)
# Content type and body, in which * stands for a part that is repeated: known attacks.
_BODIES = [
    *((MULTIPART, part(name=b"*"), one) for one in (b"=?utf-8?q?a?= ", b"a ", b"(")),
    *((MULTIPART, part(more=b"*"), one) for one in (b"; a=", b'; a="', b"\r\na: b")),
    *((MULTIPART, part(more=b"\r\n*"), one) for one in (b"a", b"a:", b" ")),
    *((MULTIPART, part(content=b"*"), one) for one in (b"\r\n--", b"\r", b"--x")),
    *((MULTIPART, part(more=_TYPE % one, content=b"*"), b"a: b\n") for one in _NESTED),
    *((MULTIPART, b"*", one) for one in (part(content=b""), b"--x\r\n", b"-")),
    *((JSON, b"*", one) for one in (b"[", b'{"a":', b"[],", b"9", b'"', b" ")),
    *((JSON, b'{"q":[*0]}', one) for one in (b"[],", b"1,", b'"",', b"{},")),
    *((JSON, b'{"q":"*"}', one) for one in (b"a", b"\\ud800", b"\xff", b"\\")),
    (JSON, b'{"api_key":' + b"[" * 400 + b"*" + b"]" * 400 + b"}", b"[],"),
    (JSON, b'{"q":*}', b"1"),
    *((FORM, b"*", one) for one in (b"%41", b"a=1&", b"&", b"=", b"%", b"+")),
    *((FORM, b"q=*", one) for one in (b"%41", b"%ff", b"a", b";", b"%", b"+")),
]


COUNT = len(_BODIES)


def hostile_body(number, size):
    """Returns the content type and a known attack of about so many bytes."""
    kind, body, repeated = _BODIES[number]
    body = body.replace(b"*", repeated * (size // len(repeated)), 1)
    return kind, body + (b"--x--\r\n" if kind == MULTIPART else b"")


def hostile_header(rng, size):
    """Returns a header that is read before the key."""
    names = ("Content-Type", "Authorization", "Origin", "Host", "X", "Content-Length")
    parts = ("(", '"', ";", "; a=", '; a="', "\\", "=?utf-8?q?a?= ", "[", "%", "\xff")
    starts = ("", "multipart/form-data; boundary=", "Bearer ", "http://[", "Basic ")
    repeated = rng.choice(parts)
    value = rng.choice(starts) + repeated * (size // len(repeated))
    return rng.choice(names), value


def mutated(rng, data):
    """Changes, drops or repeats some bytes."""
    data = bytearray(data)
    for _ in range(rng.randint(0, 4)):
        place, size = rng.randrange(len(data) + 1), rng.randint(1, 40)
        change = rng.random()
        if change < 0.4:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif change < 0.7:
            del data[place : place + size]
        else:
            data[place:place] = data[place : place + size] * rng.randint(1, 9)
    return bytes(data)


def requests(count, *, seed, most=900_000):
    """Yields requests, which close their connections."""
    rng = random.Random(seed)
    paths = ("/translate", "/translate/stream", "/detect", "/suggest", "/metrics", "/%")
    for _ in range(count):
        size = int(10 ** rng.uniform(1, 6)) % most + 1
        kind, body = hostile_body(rng.randrange(COUNT), size)
        body = mutated(rng, body)
        headers = [("Host", "127.0.0.1"), ("Content-Type", kind)]
        if rng.random() < 0.4:
            headers.append(hostile_header(rng, rng.choice((3, 300, 7_000))))
        headers += [("Content-Length", str(len(body))), ("Connection", "close")]
        query = rng.choice(("", "", "?q=a", "?" + "%41" * 99, "?api_key=a&" * 9))
        lines = [f"POST {rng.choice(paths)}{query} HTTP/1.1"]
        head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers)])
        head = head.encode("latin-1")
        yield (mutated(rng, head) if rng.random() < 0.2 else head) + b"\r\n\r\n" + body


async def answer(port, request):
    """Returns the status of the answer to a request; 0 if its connection is reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        writer.write_eof()
        found = await reader.read()
        while found.startswith(b"HTTP/1.1 100"):
            found = found.partition(b"\r\n\r\n")[2]
        return int(found[9:12] or 0)
    except OSError:
        return 0
    finally:
        writer.close()


async def fuzz(port, count, *, seed, clients=8):
    """Sends requests, several at a time; returns how many had each status."""
    found, waiting = Counter(), requests(count, seed=seed)

    async def client():
        for request in waiting:
            found[await answer(port, request)] += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return found
