"""turbopuffer over its own SDK: the requests of the index, with errors of ours.

Nothing else imports the SDK, and neither its types nor its errors leave this file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.errors import Unavailable
from commonplace.index.followers import VectorQuery
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.parts import MOST_HITS, Filter, ServiceHit, Subquery
from commonplace.index.turbopuffer.service_errors import (
    NamespaceMissing,
    NotAllowed,
    NotReady,
    plain,
    translated,
    unreadable,
)
from commonplace.index.turbopuffer.service_settings import TurbopufferService
from commonplace.settings import BadSetting

if TYPE_CHECKING:
    import turbopuffer

TIMEOUT_S = 10.0
RETRIES = 4
MOST_QUERIES = 4
"""Subqueries of a request: each counts as one of the 16 queries of a namespace that the service runs at once."""
READY_S = 5.0
"""The longest that a request is repeated while the service is not ready."""
_PAUSE_S = 0.1

T = TypeVar("T")


class TurbopufferWire:
    """A connection to a service, for any number of threads, opened by the first request."""

    def __init__(self, service: TurbopufferService) -> None:
        self._service = service
        self._sdk = _sdk()
        self._opening = threading.Lock()
        self._client: turbopuffer.Turbopuffer | None = None
        self._fetched = threading.local()

    def close(self) -> None:
        """Close the connection. A later request opens it again."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # requests

    def prefetch(self, namespace: str, parts: Sequence[Subquery]) -> None:
        """Send now, in one request, what this thread is about to `query` in several. Each answer is used once."""
        answers = zip(parts, self._query(namespace, parts), strict=True)
        self._answers.update(((namespace, part), hits) for part, hits in answers)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Run the block as one search, which may contain others. Answers fetched ahead before it are dropped."""
        outer: bool = getattr(self._fetched, "asking", False)
        if not outer:
            self.forget()
            self._fetched.waiting = False
        self._fetched.asking = True
        try:
            yield
        finally:
            self._fetched.asking = outer
            self._fetched.waiting = outer and self.waiting

    @property
    def waiting(self) -> bool:
        """Return True if a request of this search has no answer yet. No more requests are sent in it then."""
        return bool(getattr(self._fetched, "waiting", False))

    def forget(self) -> None:
        """Drop the answers that were fetched ahead and not used."""
        self._answers.clear()
        self._fetched.scope = None

    def expected(self, near: VectorQuery, scope: Scope) -> Scope:
        """Return the scope of the search by meaning that follows: that of the search by words, with its own items."""
        expected = replace(scope, items=near.items, without=near.without)
        self._fetched.scope = expected
        return expected

    def scope_of(self, items: Ids | None, without: Ids | None) -> Scope:
        """Return the scope of a search by meaning: the expected one if these are the very same arrays."""
        expected: Scope | None = getattr(self._fetched, "scope", None)
        if expected is not None and expected.items is items and expected.without is without:
            return expected
        return Scope(items=items, without=without)

    @property
    def _answers(self) -> dict[tuple[str, Subquery], list[ServiceHit]]:
        """Return this thread's answers that were fetched ahead, by namespace and subquery."""
        answers: dict[tuple[str, Subquery], list[ServiceHit]] = self._fetched.__dict__.setdefault("answers", {})
        return answers

    def query(self, namespace: str, parts: Sequence[Subquery]) -> list[list[ServiceHit]]:
        """Return the hits of each subquery; those of up to `MOST_QUERIES` subqueries see one moment.

        Raise NamespaceMissing if there is no such namespace, and NotReady if there is no answer within `READY_S`.
        """
        answers = self._answers
        if answers and all((namespace, part) in answers for part in parts):
            return [answers.pop((namespace, part)) for part in parts]
        return self._query(namespace, parts)

    def _query(self, namespace: str, parts: Sequence[Subquery]) -> list[list[ServiceHit]]:
        if len(parts) > MOST_QUERIES:
            return [
                hits
                for start in range(0, len(parts), MOST_QUERIES)
                for hits in self._query(namespace, parts[start : start + MOST_QUERIES])
            ]

        def ask() -> list[list[ServiceHit]]:
            answer = (
                self._client_now()
                .namespace(namespace)
                .multi_query(
                    queries=[part.body() for part in parts],  # type: ignore[misc]
                    consistency={"level": "strong"},
                )
            )
            results = self._attribute(answer, "results") or []
            if len(results) != len(parts) or any(result.rows is None for result in results):
                raise NotReady(namespace)
            return [[_hit(row) for row in result.rows or ()] for result in results]

        if self.waiting:
            raise NotReady(namespace)
        try:
            return _until_ready(lambda: self._translated(ask))
        except NamespaceMissing:
            raise
        except NotReady:
            self._fetched.waiting = bool(getattr(self._fetched, "asking", False))
            raise

    def rows(self, namespace: str, *include: str) -> Iterator[ServiceHit]:
        """Yield every row of a namespace, in the order of their ids; none where there is no such namespace.

        An attribute in `include` that the namespace never had is left out: the service would reject the request.
        """
        after: Filter | None = None
        try:
            known_attributes = self._attributes(namespace)
        except NamespaceMissing:
            return
        attributes = tuple(name for name in include if name in known_attributes)
        while True:
            try:
                hits = self._query(namespace, [Subquery(("id", "asc"), after, MOST_HITS, attributes)])[0]
            except NamespaceMissing:
                return
            yield from hits
            if len(hits) < MOST_HITS:
                return
            after = ("id", "Gt", hits[-1].id)

    def count(self, namespace: str) -> int:
        """Return the number of rows, counted: the one in the metadata is approximate. Raise NamespaceMissing."""

        def ask() -> int:
            answer = (
                self._client_now()
                .namespace(namespace)
                .query(aggregate_by={"rows": ("Count",)}, consistency={"level": "strong"})
            )
            counts = self._attribute(answer, "aggregations") or {}
            if "rows" not in counts:
                raise NotReady(namespace)
            return int(counts["rows"])

        return _until_ready(lambda: self._translated(ask))

    def unindexed(self, namespace: str) -> int:
        """Return the number of bytes that were written and are not indexed yet; 0 if there is no such namespace."""

        try:
            index = self._metadata(namespace, "index")
        except NamespaceMissing:
            return 0
        return int(getattr(index, "unindexed_bytes", None) or 0)

    def _attributes(self, namespace: str) -> Collection[str]:
        return self._metadata(namespace, "schema_") or ()

    def _metadata(self, namespace: str, name: str) -> Any:
        return self._translated(lambda: self._attribute(self._client_now().namespace(namespace).metadata(), name))

    # writing

    def write(
        self,
        namespace: str,
        rows: Sequence[Mapping[str, Any]],
        deletes: Sequence[str],
        schema: Mapping[str, Any],
        version: int,
        *,
        vectors: bool,
    ) -> None:
        """Write rows and delete others, except rows there that are of a later version of the log.

        Durable on return. A request that was not acknowledged is sent again; raise NotReady if that fails too.
        """
        body: dict[str, Any] = {}
        if deletes:
            body = {"deletes": list(deletes), "delete_condition": ("version", "Lte", version)}
        if rows:
            body |= {"upsert_rows": list(rows), "schema": dict(schema)}
            body["upsert_condition"] = ("version", "Lte", {"$ref_new": "version"})
            if vectors:
                body["distance_metric"] = "cosine_distance"
        try:
            self._send(namespace, body)
        except NamespaceMissing as error:
            if rows:  # a write of rows creates the namespace: no turbopuffer answers this
                raise unreadable(self._service) from plain(error)

    def vacate(self, namespace: str, version: int) -> None:
        """Remove the rows of a version of the log or an earlier one; the whole namespace if it has no later rows."""
        later = Subquery(("id", "asc"), ("version", "Gt", version), 1, ())
        try:
            if "version" in self._attributes(namespace) and self._query(namespace, [later])[0]:
                self._send(namespace, {"delete_by_filter": ("version", "Lte", version)})
            else:
                self._translated(lambda: self._client_now().namespace(namespace).delete_all())
        except NamespaceMissing:
            return

    def _send(self, namespace: str, body: Mapping[str, Any]) -> None:
        def send() -> None:
            if self._attribute(self._client_now().namespace(namespace).write(**body), "status") != "OK":
                raise NotReady(namespace)

        _until_ready(lambda: self._translated(send))

    def namespaces(self, prefix: str) -> list[str] | None:
        """Return the names that begin with `prefix`; None if the key may not list them."""

        def ask() -> list[str]:
            return [listed.id for listed in self._client_now().namespaces(prefix=prefix, page_size=1_000)]

        try:
            return self._translated(ask)
        except NotAllowed:
            return None

    # the SDK

    def _client_now(self) -> turbopuffer.Turbopuffer:
        with self._opening:
            if self._client is None:
                self._client = self._sdk.Turbopuffer(
                    api_key=self._service.key,
                    base_url=self._service.address,
                    region=self._service.region,
                    timeout=TIMEOUT_S,
                    max_retries=RETRIES,
                    telemetry=False,
                )
            return self._client

    def _attribute(self, answer: Any, name: str) -> Any:
        """Return an attribute of an answer; None if it has none yet. Raise Unavailable if it is no answer at all."""
        if isinstance(answer, str | bytes):
            raise unreadable(self._service)
        return getattr(answer, name, None)

    def _translated(self, work: Callable[[], T]) -> T:
        """Return `work()`, with errors of the SDK raised as ours."""
        try:
            return work()
        except self._sdk.TurbopufferError as error:
            raise translated(error, self._sdk, self._service) from plain(error)
        except (Unavailable, NotReady):
            raise
        except ValueError as error:  # the answer is not JSON
            raise unreadable(self._service) from plain(error)


def _sdk() -> Any:
    try:
        import turbopuffer
    except ImportError:
        raise BadSetting(
            "The index is turbopuffer, and its SDK is not installed. Install commonplace-mcp[turbopuffer]."
        ) from None
    return turbopuffer


def _hit(row: Any) -> ServiceHit:
    values = row.model_extra or {}
    return ServiceHit(
        str(row.id),
        int(values.get("chunk", -1)),
        float(values.get("$dist") or 0.0),
        str(values.get("digest") or ""),
        int(values.get("version") or 0),
    )


def _until_ready(work: Callable[[], T]) -> T:
    """Return `work()`, repeated while it raises NotReady, which is raised after `READY_S` seconds."""
    deadline = time.monotonic() + READY_S
    pause = _PAUSE_S
    while True:
        try:
            return work()
        except NamespaceMissing:
            raise
        except NotReady:
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
