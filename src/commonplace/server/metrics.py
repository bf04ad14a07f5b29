"""The metrics of a server, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from commonplace.errors import CommonplaceError
from commonplace.server.service import Service
from commonplace.store.job_queue import JobQueue

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Metrics:
    """Counters of calls, and gauges that are read from the open libraries at each scrape."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter("commonplace_calls", "Tool calls.", ["tool"], registry=self._registry)
        self._errors = Counter(
            "commonplace_errors", "Tool calls that failed.", ["tool", "code"], registry=self._registry
        )
        self._seconds = Histogram(
            "commonplace_call_seconds", "How long tool calls took.", ["tool"], buckets=_SECONDS, registry=self._registry
        )

    def observe(self, tool: str, outcome: str, seconds: float) -> None:
        calls, spent = self._of(tool)
        calls.inc()
        spent.observe(seconds)
        if outcome != "ok":
            self._errors.labels(tool, outcome).inc()

    @cache  # noqa: B019  # lives as long as the server, with as many entries as there are tools
    def _of(self, tool: str) -> tuple[Counter, Histogram]:
        return self._calls.labels(tool), self._seconds.labels(tool)

    def watch(self, service: Service) -> None:
        self._registry.register(_State(service))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _State(Collector):
    """A collector of sums over the open libraries; the names of spaces are not published."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        libraries = unread = lag = pending = total = jobs = 0
        for library in self._service.libraries.opened():
            libraries += 1
            try:
                status, waiting = library.status(), library.store.drawer(JobQueue).total()
            except CommonplaceError:  # such as a file that is damaged or gone: the others are told of all the same
                if self._service.settings.store:
                    raise  # all are in one database, and each would wait for it in vain
                unread += 1
                continue
            lag += status.changes - status.indexed
            pending += status.coverage.pending
            total += status.coverage.total
            jobs += waiting
        yield GaugeMetricFamily("commonplace_open_libraries", "Libraries that are open.", libraries)
        yield GaugeMetricFamily("commonplace_unread_libraries", "Those of them that cannot be read.", unread)
        yield GaugeMetricFamily("commonplace_calls_waiting", "Calls not answered yet.", self._service.waiting)
        yield GaugeMetricFamily("commonplace_jobs_waiting", "Jobs in the queues.", jobs)
        yield GaugeMetricFamily("commonplace_index_lag_changes", "Changes no index has applied yet.", lag)
        yield GaugeMetricFamily("commonplace_chunks", "Passages in the open libraries.", total)
        yield GaugeMetricFamily("commonplace_chunks_unembedded", "Passages without a vector.", pending)
        covered = (total - pending) / total if total else 1.0
        yield GaugeMetricFamily("commonplace_embedding_coverage", "The share of passages with a vector.", covered)
