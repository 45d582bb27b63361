"""Counts requests and sentences, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from t2t_jax.serving.worker import TranslationWorker
from t2t_jax.version import __version__

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds; the upper ends of the buckets of the histogram."""


class Metrics(Collector):
    """Counts the requests of a server, in a registry of its own.

    Attributes:
      in_progress: requests that are being answered.
    """

    def __init__(self, worker: TranslationWorker) -> None:
        self.in_progress = 0
        self._worker = worker
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "t2t_jax_requests", "Answered.", ("path", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "t2t_jax_translate_seconds",
            "Of requests to /translate.",
            buckets=_BOUNDS,
            registry=self._registry,
        )
        info = Info("t2t_jax", "Version.", registry=self._registry)
        info.info({"version": __version__})
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        if path == "/translate":
            self._seconds.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yields what the worker and its queue count themselves."""
        counts, queue = self._worker.counts, self._worker.queue
        for name in ("sentences", "tokens", "groups", "failures"):
            yield CounterMetricFamily(f"t2t_jax_{name}", "So far.", counts[name])
        for name, value in (
            ("waiting_sentences", queue.waiting),
            ("queue_capacity", queue.capacity),
            ("requests_in_progress", self.in_progress),
        ):
            yield GaugeMetricFamily(f"t2t_jax_{name}", "At present.", value)

    def text(self) -> bytes:
        """Returns all metrics as Prometheus reads them."""
        return generate_latest(self._registry)
