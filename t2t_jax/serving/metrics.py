"""Counts requests and sentences, in the text format of Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from t2t_jax.serving.worker import TranslationWorker
from t2t_jax.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds; the upper ends of the buckets of the histogram."""

_PAGE_BYTES = 4096


class Metrics:
    """Counts the requests of a server.

    Attributes:
      in_progress: requests that are being answered.
    """

    def __init__(self) -> None:
        self.in_progress = 0
        self._started = time.time()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[int] = Counter()
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self._requests[path, status] += 1
        if path == "/translate":
            self._buckets[bisect_left(_BOUNDS, seconds)] += 1
            self._seconds += seconds

    def text(self, worker: TranslationWorker) -> str:
        """Returns all metrics as Prometheus reads them."""
        return "".join(f"{line}\n" for line in self._lines(worker))

    def _lines(self, worker: TranslationWorker) -> Iterator[str]:
        name = "t2t_jax_requests_total"
        yield from _head(name, "counter", "Requests answered.")
        for (path, status), count in sorted(self._requests.items()):
            yield f'{name}{{path="{path}",status="{status}"}} {count}'
        yield from self._histogram()
        counts = worker.counts
        yield from _counter("sentences", "Sentences translated.", counts["sentences"])
        yield from _counter("tokens", "Target tokens generated.", counts["tokens"])
        yield from _counter("groups", "Groups translated together.", counts["batches"])
        yield from _counter(
            "failures", "Sentences that could not be translated.", counts["failures"]
        )
        yield from _gauge("waiting_sentences", "In the queue.", worker.queue.waiting)
        yield from _gauge("queue_capacity", "Of sentences.", worker.queue.capacity)
        yield from _gauge("requests_in_progress", "Requests.", self.in_progress)
        yield from _gauge("start_time_seconds", "Unix time.", self._started)
        if memory := _resident_bytes():
            yield from _gauge("resident_memory_bytes", "Of the process.", memory)
        yield from _head("t2t_jax_cpu_seconds_total", "counter", "Of the process.")
        yield f"t2t_jax_cpu_seconds_total {time.process_time():.3f}"
        yield from _head("t2t_jax_info", "gauge", "Version.")
        yield f't2t_jax_info{{version="{__version__}"}} 1'

    def _histogram(self) -> Iterator[str]:
        name = "t2t_jax_translate_seconds"
        yield from _head(name, "histogram", "Seconds of requests to /translate.")
        total = 0
        for number, bound in enumerate((*map(str, _BOUNDS), "+Inf")):
            total += self._buckets[number]
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._seconds:.6f}"
        yield f"{name}_count {total}"


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _counter(name: str, about: str, value: int) -> Iterator[str]:
    yield from _head(f"t2t_jax_{name}_total", "counter", about)
    yield f"t2t_jax_{name}_total {value}"


def _gauge(name: str, about: str, value: float) -> Iterator[str]:
    yield from _head(f"t2t_jax_{name}", "gauge", about)
    yield f"t2t_jax_{name} {value:.0f}"


def _resident_bytes() -> int:
    """Returns the memory of this process; 0 where it is not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * _PAGE_BYTES
