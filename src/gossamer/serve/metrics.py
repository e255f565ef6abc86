"""Figures for Prometheus: requests and times by model, what waits and what runs, and the process itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from gossamer.serve.protocol import IndexEntry

if TYPE_CHECKING:
    from prometheus_client.core import Metric

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STATES = ("LOADING", "READY", "UNLOADING", "UNAVAILABLE")


class Source(Protocol):
    """What is asked when the figures are read: a repository."""

    def index(self) -> list[IndexEntry]:
        """The versions of models and their states."""

    def queue_lengths(self) -> Iterable[tuple[str, str, int]]:
        """Name and version of models that run, and how many requests wait."""


class Metrics:
    """The figures of one server, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        model, registry = ("model", "version"), self.registry
        self._requests = Counter(
            "gossamer_requests",
            "Requests for inference that have been answered; status is OK, or the name of gRPC's status code.",
            (*model, "protocol", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "gossamer_request_seconds",
            "From a request's arrival until its answer is written.",
            model,
            buckets=SECONDS,
            registry=registry,
        )
        self._queue_seconds = Histogram(
            "gossamer_queue_seconds", "How long requests waited for a run.", model, buckets=SECONDS, registry=registry
        )
        self._compute_seconds = Histogram(
            "gossamer_compute_seconds", "How long runs took.", model, buckets=SECONDS, registry=registry
        )
        self._rows = Histogram("gossamer_batch_requests", "Requests of a run.", model, buckets=ROWS, registry=registry)
        self._in_flight = Gauge("gossamer_requests_in_flight", "Requests being answered.", registry=registry)
        self.connections = Gauge("gossamer_http_connections", "Connections that are open.", registry=registry)
        self._series: dict[tuple[str, ...], Any] = {}

    def arrived(self) -> None:
        """A request for inference is here."""
        self._in_flight.inc()

    def answered(self, protocol: str, model: str, version: str, status: str, seconds: float) -> None:
        """It has been answered, over ``http`` or ``grpc``. ``model`` and ``version`` are "" where there is no such
        model: clients do not make up time series."""
        self._in_flight.dec()
        self._of(self._requests, model, version, protocol, status).inc()
        if status == "OK":
            self._of(self._seconds, model, version).observe(seconds)

    def ran(self, model: str, version: str, waited: Iterable[float], seconds: float) -> None:
        """A model has run for requests that had waited so many seconds each."""
        queue, count = self._of(self._queue_seconds, model, version), 0
        for value in waited:
            queue.observe(value)
            count += 1
        self._of(self._compute_seconds, model, version).observe(seconds)
        self._of(self._rows, model, version).observe(count)

    def by_model(self) -> dict[tuple[str, str], dict[str, float]]:
        """Counts and sums of what is measured for each model and version, by the names of the samples."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        for histogram in (self._seconds, self._queue_seconds, self._compute_seconds):
            for metric in histogram.collect():
                for sample in metric.samples:
                    if sample.name.endswith(("_count", "_sum")):
                        key = sample.labels["model"], sample.labels["version"]
                        found.setdefault(key, {})[sample.name] = sample.value
        return found

    def watch(self, source: Source) -> None:
        """Have models and queues of a repository among the figures."""
        self.registry.register(_Models(source))

    def text(self, accept: str) -> tuple[bytes, str]:
        """All figures as text, and its content type, as a scraper accepts it."""
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _of(self, metric: Any, *labels: str) -> Any:
        key = (metric._name, *labels)
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = metric.labels(*labels)
        return found


class _Models:
    def __init__(self, source: Source) -> None:
        self.source = source

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        labels = ("model", "version")
        states = GaugeMetricFamily(
            "gossamer_model_state", "1 for the state in which a version of a model is.", labels=(*labels, "state")
        )
        for entry in self.source.index():
            for state in STATES:
                states.add_metric((entry.name, entry.version, state), float(entry.state == state))
        yield states
        waiting = GaugeMetricFamily("gossamer_queue_length", "Requests that wait for a run.", labels=labels)
        for name, version, length in self.source.queue_lengths():
            waiting.add_metric((name, version), length)
        yield waiting
