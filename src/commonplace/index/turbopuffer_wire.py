"""turbopuffer over its own SDK: the requests this engine makes, and what can go wrong with them in our words.

Nothing else imports the SDK, and neither its types nor its errors leave this file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.errors import Unavailable
from commonplace.index.base import Near
from commonplace.index.scope import Ids, Scope
from commonplace.index.turbopuffer_settings import KEY, Service
from commonplace.lazy_dataclass import dataclass
from commonplace.settings import BadSetting

if TYPE_CHECKING:
    import turbopuffer

TIMEOUT_S = 10.0
RETRIES = 4
MOST_HITS = 10_000
MOST_QUERIES = 16
READY_S = 5.0
"""How long an index that says it is not ready is asked again."""
_PAUSE_S = 0.1
_LONGEST_SENTENCE = 300

Filter = tuple[Any, ...]
"""As the service reads it: ("kind", "In", (…)), ("And", (…))."""
T = TypeVar("T")


class Refused(Unavailable):
    """The service read the request and would not do it."""

    code = "index_rejected"


class NotReady(Exception):
    """The service took the request and has no answer yet. Never reaches a caller."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A row of an answer."""

    id: str
    chunk: int
    distance: float
    """BM25: the score, higher is better. Vectors: lower is better."""


@dataclass(frozen=True, slots=True)
class Part:
    """One query of a request: how to rank, what may answer, and how many are wanted."""

    rank_by: tuple[Any, ...]
    filter: Filter | None
    limit: int

    def body(self) -> dict[str, Any]:
        asked = {"rank_by": self.rank_by, "top_k": self.limit, "include_attributes": ["chunk"]}
        return asked if self.filter is None else {**asked, "filters": self.filter}


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """All of some conditions, side by side; None where there are none."""
    parts = [part for each in filters for part in (each[1] if each[0] == "And" else (each,))]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else ("And", tuple(parts))


def one_of(name: str, values: Sequence[Any]) -> Filter:
    """An attribute that is one of some values."""
    return (name, "Eq", values[0]) if len(values) == 1 else (name, "In", tuple(values))


def any_of(filters: Sequence[Filter]) -> Filter:
    return filters[0] if len(filters) == 1 else ("Or", tuple(filters))


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
        """The hits of each part, all from one moment; none where there is no such namespace.

        Raises NotReady when there is still no answer after some seconds.
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
            results = getattr(found, "results", None) or []
            if len(results) != len(parts) or any(result.rows is None for result in results):
                raise NotReady(namespace)
            return [[_hit(row) for row in result.rows or ()] for result in results]

        if self.waiting:
            raise NotReady(namespace)
        try:
            return _until_ready(lambda: self._translated(ask, missing=lambda: [[] for _ in parts]))
        except NotReady:
            self._fetched.waiting = bool(getattr(self._fetched, "asking", False))
            raise

    def ids(self, namespace: str) -> Iterator[str]:
        """The id of every row of a namespace, in their order."""
        after: Filter | None = None
        while hits := self._query(namespace, [Part(("id", "asc"), after, MOST_HITS)])[0]:
            yield from (hit.id for hit in hits)
            if len(hits) < MOST_HITS:
                return
            after = ("id", "Gt", hits[-1].id)

    def write(
        self,
        namespace: str,
        rows: Sequence[Mapping[str, Any]],
        deletes: Sequence[str],
        schema: Mapping[str, Any],
        *,
        vectors: bool,
    ) -> None:
        """Durable when it returns. A request that was not acknowledged is sent again; NotReady when that fails too."""
        body: dict[str, Any] = {"deletes": list(deletes)} if deletes else {}
        if rows:
            body |= {"upsert_rows": list(rows), "schema": dict(schema)}
            if vectors:
                body["distance_metric"] = "cosine_distance"

        def send() -> None:
            answer = self._client_now().namespace(namespace).write(**body)
            if getattr(answer, "status", None) != "OK":
                raise NotReady(namespace)

        _until_ready(lambda: self._translated(send, missing=lambda: None))

    def delete_all(self, namespace: str) -> None:
        self._translated(lambda: self._client_now().namespace(namespace).delete_all(), missing=lambda: None)

    def count(self, namespace: str) -> int:
        """How many rows there are, as far as the service knows."""

        def ask() -> int:
            return int(self._client_now().namespace(namespace).metadata().approx_row_count or 0)

        return self._translated(ask, missing=lambda: 0)

    def namespaces(self, prefix: str) -> list[str]:
        def ask() -> list[str]:
            return [found.id for found in self._client_now().namespaces(prefix=prefix)]

        return self._translated(ask, missing=list)

    # the SDK

    def _client_now(self) -> turbopuffer.Turbopuffer:
        with self._opening:
            if self._client is None:
                self._client = self._sdk.Turbopuffer(
                    api_key=self._service.key,
                    base_url=self._service.base_url,
                    timeout=TIMEOUT_S,
                    max_retries=RETRIES,
                    telemetry=False,
                )
            return self._client

    def _translated(self, work: Callable[[], T], *, missing: Callable[[], T]) -> T:
        """Do it. What the SDK raises becomes ours; a namespace that is not there is an empty one."""
        sdk, host = self._sdk, self._service.host
        try:
            return work()
        except sdk.NotFoundError:
            return missing()
        except (sdk.AuthenticationError, sdk.PermissionDeniedError) as error:
            raise Unavailable(
                f"{host} refused the key. Set {KEY} to one that may read and write this index.", code="index_auth"
            ) from _plain(error)
        except sdk.RateLimitError as error:
            seconds = _wait_of(error.response.headers)
            raise Unavailable(
                f"{host} is too busy for now. Try again in {seconds:g} s.", code="index_busy", retry_after=seconds
            ) from _plain(error)
        except sdk.APIConnectionError as error:
            raise Unavailable(
                f"{host} cannot be reached. Check the network and where the index is said to be.",
                code="index_unreachable",
            ) from _plain(error)
        except sdk.InternalServerError as error:
            raise Unavailable(
                f"{host} has a fault of its own ({error.status_code}). Try again later.", code="index_unavailable"
            ) from _plain(error)
        except sdk.APIStatusError as error:
            raise Refused(f"{host} rejected the request: {self._sentence(error)}") from _plain(error)
        except sdk.APIError as error:
            raise Unavailable(
                f"{host} answered with something that cannot be read.", code="index_unavailable"
            ) from _plain(error)

    def _sentence(self, error: Any) -> str:
        body = error.body
        said = body.get("error") if isinstance(body, dict) else None
        text = " ".join(str(said or f"status {error.status_code}").split())
        return text.replace(self._service.key, "…")[:_LONGEST_SENTENCE]


def _sdk() -> Any:
    try:
        import turbopuffer
    except ImportError:
        raise BadSetting(
            "The index is turbopuffer, and its SDK is not installed. Install commonplace-mcp[turbopuffer]."
        ) from None
    return turbopuffer


def _plain(error: Exception) -> Exception:
    """The cause without the request it belongs to, which carries the key."""
    return RuntimeError(f"{type(error).__name__}: status {getattr(error, 'status_code', 'none')}")


def _wait_of(headers: Mapping[str, str]) -> float:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return 1.0


def _hit(row: Any) -> Hit:
    values = row.model_extra or {}
    return Hit(str(row.id), int(values.get("chunk", -1)), float(values.get("$dist") or 0.0))


def _until_ready(work: Callable[[], T]) -> T:
    deadline = time.monotonic() + READY_S
    pause = _PAUSE_S
    while True:
        try:
            return work()
        except NotReady:
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
