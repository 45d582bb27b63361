"""Load test of `--mode=serve`: many clients on loopback, each answer checked.

  python benchmarks/serve.py --workdir=runs/phrasebook --clients=200 --seconds=60

Starts a server, translates the sentences with the model itself and with
`--mode=translate`, and lets each client ask one sentence after the other. Prints
requests, answers that are lost or differ, latencies, sentences a second beside
`--mode=translate`'s, and the server's memory after a third of the time and at the end.
With `--books=1` another client, of another address, sends texts of 99 KB meanwhile:

  python benchmarks/serve.py --workdir=runs/mine --text=test.en --books=1 --pause=1
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_PROGRAM = [sys.executable, "-m", "t2t_jax.main"]
_BOOK_CHARACTERS, _BOOK_SENTENCES = 99_000, 2_000


class Load(NamedTuple):
    """What the clients saw.

    Attributes:
      seconds: of each request that was answered, of a sentence and of a book.
      outcomes: number of sentences by kind: `right`, `different`, and of requests by
        status or error.
      memory: bytes of the server after a third of the time, and at the end.
      cpu: seconds of all its threads, in between the first and the last request.
      elapsed: seconds from the first request to the last answer.
      translated: sentences in that time, those of books too.
    """

    seconds: tuple[list[float], list[float]]
    outcomes: Counter[str]
    memory: tuple[int, int]
    cpu: float
    elapsed: float
    translated: float


def main() -> int:
    """Measures, and prints a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--text", help="sentences, a line each; else embedded ones")
    parser.add_argument("--clients", type=int, help="200; beside books 1")
    parser.add_argument("--books", type=int, default=0, help="clients with long texts")
    parser.add_argument("--pause", type=float, default=0.0, help="between sentences")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm_up", type=float, default=20.0)
    parser.add_argument("--sentences", type=int, default=2_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.clients = options.clients or (1 if options.books else 200)
    texts = sentences(options.text, options.sentences)
    wanted, rate = translate_file(options.workdir, texts)
    server = subprocess.Popen(
        [
            *(*_PROGRAM, "--mode=serve", "--port=0", "--request_timeout=600"),
            f"--workdir={options.pair}={options.workdir}",
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        port = port_of(server)
        asyncio.run(until_ready(port))
        pairs = list(zip(texts, wanted, strict=True))
        asyncio.run(run_clients(port, pairs, options, seconds=options.warm_up))
        load = asyncio.run(run_clients(port, pairs, options, seconds=options.seconds))
    finally:
        server.terminate()
        code = server.wait(60)
    figures = {**summary(load), "translate_lines_per_second": rate}
    figures |= {"clients": options.clients, "books": options.books, "exit_code": code}
    print(json.dumps(figures) if options.json else table(figures))
    return int(figures["lost"] or figures["different"] or code)


def sentences(path: str | None, count: int) -> list[str]:
    """Returns different sentences, of a file or of the embedded corpus."""
    from t2t_jax.data.corpora.open import open_corpus

    if path:
        return list(dict.fromkeys(Path(path).read_text().splitlines()))[:count]
    pairs = open_corpus(f"phrasebook:test:{count}")
    return list(dict.fromkeys(pair[0] for pair in pairs))


def translate_file(workdir: str, texts: list[str]) -> tuple[list[str], float]:
    """Translates with `--mode=translate`, twice; returns lines, and lines a second."""
    command = [*_PROGRAM, "--mode=translate", f"--workdir={workdir}"]
    # The second run finds the compiled programs, and takes long enough for a rate.
    for times in (1, 8):
        done = subprocess.run(
            command,
            input="".join(f"{text}\n" for text in texts * times),
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
    # Before the summary, a progress bar shows rates of its own.
    rates = re.findall(r"([\d,.]+) lines/s", done.stderr)
    rate = float(rates[-1].replace(",", "")) if rates else 0.0
    return done.stdout.splitlines()[: len(texts)], rate


def port_of(server: subprocess.Popen[str]) -> int:
    """Waits until a server is ready."""
    for line in server.stderr or ():
        if match := re.search(r"Serving on http://\S+:(\d+)", line):
            return int(match[1])
    raise SystemExit("The server did not start.")


async def until_ready(port: int) -> None:
    """Waits until the first programs are compiled."""
    status = 0
    while status != 200:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        status, _ = await ask(reader, writer, "GET /health")
        writer.close()


async def run_clients(
    port: int, pairs: list[tuple[str, str]], options: Any, *, seconds: float
) -> Load:
    """Lets all clients ask for so many seconds."""
    load = Load(([], []), Counter(), (0, 0), 0.0, 0.0, 0.0)
    counters = ("process_cpu_seconds_total", "t2t_jax_sentences_total")
    before = [await metric(port, name) for name in counters]
    start = time.monotonic()
    end = start + seconds
    clients = [
        asyncio.create_task(client(port, pairs, options, number, end, load))
        for number in range(options.clients)
    ]
    book = [tuple(map("\n".join, zip(*_book(pairs), strict=True)))]
    books = [
        asyncio.create_task(client(port, book, options, -number, end, load))
        for number in range(1, options.books + 1)
    ]
    await asyncio.sleep(seconds / 3)
    early = await metric(port, "process_resident_memory_bytes")
    await asyncio.gather(*clients, asyncio.sleep(end - time.monotonic()))
    elapsed = time.monotonic() - start
    after = [await metric(port, name) for name in counters]
    late = await metric(port, "process_resident_memory_bytes")
    for one in books:
        one.cancel()
    cpu, translated = (b - a for a, b in zip(before, after, strict=True))
    return load._replace(
        memory=(int(early), int(late)), cpu=cpu, elapsed=elapsed, translated=translated
    )


def _book(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Repeats sentences: 99 KB, but no more than a request may have."""
    size = 0
    for pair in itertools.islice(itertools.cycle(pairs), _BOOK_SENTENCES):
        size += len(pair[0]) + 1
        if size > _BOOK_CHARACTERS:
            return
        yield pair


async def client(
    port: int,
    pairs: list[tuple[str, str]],
    options: Any,
    number: int,
    end: float,
    load: Load,
) -> None:
    """Asks one text after the other on a connection of its own; books if negative."""
    rng = random.Random(number)
    source, target = options.pair.split("-")
    # The server tells clients by their addresses.
    connect: Any = partial(asyncio.open_connection, "127.0.0.1", port)
    connect.keywords["local_addr"] = (f"127.0.0.{1 + max(0, -number)}", 0)
    reader, writer = await connect()
    while time.monotonic() < end:
        text, wanted = rng.choice(pairs)
        fields = {"q": text, "source": source, "target": target, "split": "lines"}
        start = time.perf_counter()
        try:
            status, body = await ask(
                reader, writer, "POST /translate", json.dumps(fields).encode()
            )
        except (OSError, asyncio.IncompleteReadError) as error:
            load.outcomes[type(error).__name__] += 1
            reader, writer = await connect()
            continue
        load.seconds[number < 0].append(time.perf_counter() - start)
        if status != 200:
            load.outcomes[str(status)] += 1
            continue
        found = json.loads(body)["translatedText"].split("\n")
        for one, other in zip(found, wanted.split("\n"), strict=True):
            load.outcomes["right" if one == other else "different"] += 1
        await asyncio.sleep(options.pause)
    writer.close()


async def ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: str,
    body: bytes = b"",
) -> tuple[int, bytes]:
    """Sends a request on a connection that stays open; returns status and body."""
    writer.write(
        f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].split()[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def metric(port: int, name: str) -> float:
    """Returns a metric of the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _, body = await ask(reader, writer, "GET /metrics")
    writer.close()
    found = re.search(rf"^{name} (\S+)$", body.decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def summary(load: Load) -> dict[str, Any]:
    """Computes the figures of a load."""
    ordered, books = map(sorted, load.seconds)
    if not ordered:
        raise SystemExit(f"No request was answered: {dict(load.outcomes)}.")
    right, different = load.outcomes["right"], load.outcomes["different"]
    return {
        "requests": len(ordered),
        "right": right,
        "different": different,
        "lost": load.outcomes.total() - right - different,
        "sentences_per_second": load.translated / load.elapsed,
        "book_median_seconds": statistics.median(books) if books else 0.0,
        "cpu_ms_per_sentence": 1_000 * load.cpu / load.translated,
        "p50_seconds": statistics.median(ordered),
        "p95_seconds": ordered[int(0.95 * len(ordered))],
        "p99_seconds": ordered[int(0.99 * len(ordered))],
        "max_seconds": ordered[-1],
        "memory_early_mb": load.memory[0] / 1e6,
        "memory_end_mb": load.memory[1] / 1e6,
    }


def table(figures: dict[str, Any]) -> str:
    """Formats figures as a table in Markdown."""
    rows = [f"| {name} | {value:,.6g} |" for name, value in figures.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


if __name__ == "__main__":
    raise SystemExit(main())
