"""turbopuffer over its own SDK: the requests this engine makes, and what can go wrong with them in our words.

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
from commonplace.index.base import Near
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer.errors import Missing, NotAllowed, NotReady, plain, translated, unreadable
from commonplace.index.turbopuffer.parts import MOST_HITS, Filter, Hit, Part
from commonplace.index.turbopuffer.settings import Service
from commonplace.settings import BadSetting

if TYPE_CHECKING:
    import turbopuffer

TIMEOUT_S = 10.0
RETRIES = 4
MOST_QUERIES = 4
"""Parts of a request: each counts as one of the 16 queries of a namespace that the service runs at once."""
READY_S = 5.0
"""How long an index that says it is not ready is asked again."""
_PAUSE_S = 0.1

T = TypeVar("T")


class Wire:
    """One service, for any number of threads. Connects when it is first asked."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sdk = _sdk()
        self._opening = threading.Lock()
        self._client: turbopuffer.Turbopuffer | None = None
        self._fetched = threading.local()

    def close(self) -> None:
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # requests

    def prefetch(self, namespace: str, parts: Sequence[Part]) -> None:
        """Ask now, in one request, what this thread is about to `query` in several. Each answer is used once."""
        answers = zip(parts, self._query(namespace, parts), strict=True)
        self._answers.update(((namespace, part), hits) for part, hits in answers)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """One search, which may hold others: what was fetched ahead before it is not used in it."""
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
        """Whether something that was asked in this search has no answer yet. Nothing more is asked in it then."""
        return bool(getattr(self._fetched, "waiting", False))

    def forget(self) -> None:
        """What was fetched ahead and not asked for is old news."""
        self._answers.clear()
        self._fetched.scope = None

    def expected(self, near: Near, scope: Scope) -> Scope:
        """The scope of a search by meaning that is about to come, which may answer no more than one by words does."""
        expected = replace(scope, items=near.items, without=near.without)
        self._fetched.scope = expected
        return expected

    def scope_of(self, items: Ids | None, without: Ids | None) -> Scope:
        """The scope of a search by meaning: that which was expected, where these are the very same items."""
        known: Scope | None = getattr(self._fetched, "scope", None)
        if known is not None and known.items is items and known.without is without:
            return known
        return Scope(items=items, without=without)

    @property
    def _answers(self) -> dict[tuple[str, Part], list[Hit]]:
        """This thread's."""
        found: dict[tuple[str, Part], list[Hit]] = self._fetched.__dict__.setdefault("answers", {})
        return found

    def query(self, namespace: str, parts: Sequence[Part]) -> list[list[Hit]]:
        """The hits of each part; those of up to `MOST_QUERIES` parts are from one moment.

        Raises Missing where there is no such namespace, and NotReady when there is still no answer after some seconds.
        """
        known = self._answers
        if known and all((namespace, part) in known for part in parts):
            return [known.pop((namespace, part)) for part in parts]
        return self._query(namespace, parts)

    def _query(self, namespace: str, parts: Sequence[Part]) -> list[list[Hit]]:
        if len(parts) > MOST_QUERIES:
            return [
                hits
                for start in range(0, len(parts), MOST_QUERIES)
                for hits in self._query(namespace, parts[start : start + MOST_QUERIES])
            ]

        def ask() -> list[list[Hit]]:
            found = (
                self._client_now()
                .namespace(namespace)
                .multi_query(
                    queries=[part.body() for part in parts],  # type: ignore[misc]
                    consistency={"level": "strong"},
                )
            )
            results = self._told(found, "results") or []
            if len(results) != len(parts) or any(result.rows is None for result in results):
                raise NotReady(namespace)
            return [[_hit(row) for row in result.rows or ()] for result in results]

        if self.waiting:
            raise NotReady(namespace)
        try:
            return _until_ready(lambda: self._translated(ask))
        except Missing:
            raise
        except NotReady:
            self._fetched.waiting = bool(getattr(self._fetched, "asking", False))
            raise

    def rows(self, namespace: str, *include: str) -> Iterator[Hit]:
        """Yield every row of a namespace, in the order of their ids; none where there is no such namespace.

        Of `include`, an attribute that the namespace has never had is left out: the service refuses to tell it.
        """
        after: Filter | None = None
        try:
            known = self._attributes(namespace)
        except Missing:
            return
        told = tuple(name for name in include if name in known)
        while True:
            try:
                hits = self._query(namespace, [Part(("id", "asc"), after, MOST_HITS, told)])[0]
            except Missing:
                return
            yield from hits
            if len(hits) < MOST_HITS:
                return
            after = ("id", "Gt", hits[-1].id)

    def count(self, namespace: str) -> int:
        """Return how many rows there are. Its own count of them is approximate, so they are counted. Raises Missing."""

        def ask() -> int:
            found = (
                self._client_now()
                .namespace(namespace)
                .query(aggregate_by={"rows": ("Count",)}, consistency={"level": "strong"})
            )
            counts = self._told(found, "aggregations") or {}
            if "rows" not in counts:
                raise NotReady(namespace)
            return int(counts["rows"])

        return _until_ready(lambda: self._translated(ask))

    def unindexed(self, namespace: str) -> int:
        """Return how many bytes were written and are not indexed yet; 0 where there is no such namespace."""

        try:
            index = self._metadata(namespace, "index")
        except Missing:
            return 0
        return int(getattr(index, "unindexed_bytes", None) or 0)

    def _attributes(self, namespace: str) -> Collection[str]:
        return self._metadata(namespace, "schema_") or ()

    def _metadata(self, namespace: str, name: str) -> Any:
        return self._translated(lambda: self._told(self._client_now().namespace(namespace).metadata(), name))

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
        """Write rows, and delete others, unless what is there is of a later version of the log than these are.

        Durable when it returns. A request that was not acknowledged is sent again; NotReady when that fails too.
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
        except Missing as error:
            if rows:  # a write of rows makes the namespace: whoever says this is no turbopuffer
                raise unreadable(self._service) from plain(error)

    def vacate(self, namespace: str, version: int) -> None:
        """Remove what is of a version of the log or an earlier one: the namespace, where nothing later is there."""
        later = Part(("id", "asc"), ("version", "Gt", version), 1, ())
        try:
            if "version" in self._attributes(namespace) and self._query(namespace, [later])[0]:
                self._send(namespace, {"delete_by_filter": ("version", "Lte", version)})
            else:
                self._translated(lambda: self._client_now().namespace(namespace).delete_all())
        except Missing:
            return

    def _send(self, namespace: str, body: Mapping[str, Any]) -> None:
        def send() -> None:
            if self._told(self._client_now().namespace(namespace).write(**body), "status") != "OK":
                raise NotReady(namespace)

        _until_ready(lambda: self._translated(send))

    def namespaces(self, prefix: str) -> list[str] | None:
        """Return the names that begin so; None where the key may not list them."""

        def ask() -> list[str]:
            return [found.id for found in self._client_now().namespaces(prefix=prefix, page_size=1_000)]

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

    def _told(self, answer: Any, name: str) -> Any:
        """Return what an answer tells; None where it does not yet. Raises Unavailable for what is no answer at all."""
        if isinstance(answer, str | bytes):
            raise unreadable(self._service)
        return getattr(answer, name, None)

    def _translated(self, work: Callable[[], T]) -> T:
        """Do it. What the SDK raises becomes ours."""
        try:
            return work()
        except self._sdk.TurbopufferError as error:
            raise translated(error, self._sdk, self._service) from plain(error)
        except (Unavailable, NotReady):
            raise
        except ValueError as error:  # what should be JSON and is not
            raise unreadable(self._service) from plain(error)


def _sdk() -> Any:
    try:
        import turbopuffer
    except ImportError:
        raise BadSetting(
            "The index is turbopuffer, and its SDK is not installed. Install commonplace-mcp[turbopuffer]."
        ) from None
    return turbopuffer


def _hit(row: Any) -> Hit:
    values = row.model_extra or {}
    return Hit(
        str(row.id),
        int(values.get("chunk", -1)),
        float(values.get("$dist") or 0.0),
        str(values.get("digest") or ""),
        int(values.get("version") or 0),
    )


def _until_ready(work: Callable[[], T]) -> T:
    deadline = time.monotonic() + READY_S
    pause = _PAUSE_S
    while True:
        try:
            return work()
        except Missing:
            raise
        except NotReady:
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
