"""A stand-in for turbopuffer on this machine: its HTTP interface, in memory, that the real SDK talks to.

    with TurbopufferServer() as server:
        client = Turbopuffer(base_url=server.url, api_key=server.key)

It answers as the service does, goes wrong when it is told to, and remembers every request it was sent. The real service
could not be asked: the rules are those of its documentation (turbopuffer.com/docs, by page) and of its Python SDK 3.1.

    write         a namespace is made by the first request that writes rows; an id twice in a request is 400
    write         deletes by filter come first; a condition is asked of what is there, `$ref_new` is what is written,
                  and an upsert of what is not there is done whatever the condition says
    write         vectors cannot be patched; vector columns and dimensions stay; an attribute keeps its type
    write         tokens above `max_token_length` bytes (39, unless it says 1 to 254) are left out of full-text search
    query         an unknown attribute in filters, rankings or `include_attributes` is 400; kNN needs filters
    query         `Lt` and `Lte` match null; a value has the type of its attribute; a request has 16 queries at most
    fts           with `pre_tokenized_array`, rows and queries are arrays of tokens
    limits        4 KiB for a filterable value or an element of an array, 8 MiB for a value, 8,192 for a full-text query
    limits        10,000 rows of a query, 1,024 attributes, names of attributes of 128 bytes, ids of 64 bytes
    limits        16 queries of a namespace at once: each part of a request is one, a kNN two, an aggregation four;
                  what has waited 800 ms for its turn is 429, and so is a write while 2 GB are not indexed
    metadata      `approx_row_count` is approximate; `index` is up-to-date, or updating with `unindexed_bytes`
    namespaces    listing needs a key with the right to list; a page has 1,000 at most
    api-overview  errors are {"status": "error", "error": …}
    SDK           the shapes of answers, held to by its own validation, and what it tries again: 408, 409, 429, 5xx

No page says, and this is assumed: 403 for a key that may not list, 404 for a write of deletes alone where there is no
namespace, 413 above 512 MB, and that the length of a full-text query is counted in bytes.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

from support.turbopuffer_namespace import MOST_UNINDEXED, NAME, Namespace
from support.turbopuffer_ranking import BadRequest

MOST_AT_ONCE, PATIENCE_S = 16, 0.8
PERFORMANCE = {
    "approx_namespace_size": 1, "cache_hit_ratio": 1.0, "cache_temperature": "hot", "exhaustive_search_count": 0,
    "query_execution_ms": 1, "server_total_ms": 1,
}  # fmt: skip
Kind = Literal["write", "query", "delete", "metadata", "list", "schema", "warm", "poll", "any"]
Trouble = Literal["status", "delay", "drop", "drop after", "accepted", "async", "stale"]
_ROUTES = (
    ("POST", r"/v2/namespaces/([^/]+)/query", "query"),
    ("POST", r"/v2/namespaces/([^/]+)", "write"),
    ("DELETE", r"/v2/namespaces/([^/]+)", "delete"),
    ("GET", r"/v2/namespaces/([^/]+)/metadata", "metadata"),
    ("GET", r"/v1/namespaces/([^/]+)/schema", "schema"),
    ("POST", r"/v1/namespaces/([^/]+)/schema", "schema"),
    ("GET", r"/v1/namespaces/([^/]+)/hint_cache_warm", "warm"),
    ("GET", r"/v1/namespaces", "list"),
    ("GET", r"/v1/operations/([^/]+)", "poll"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with a request."""

    trouble: Trouble
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Logged:
    """A request that came in, whatever became of it."""

    kind: str
    namespace: str
    body: Any
    raw: bytes
    headers: Mapping[str, str]


class Failure(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Slots:
    """How many queries of a namespace run at once."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._freed = threading.Condition()

    @contextmanager
    def held(self, namespace: str, count: int) -> Iterator[None]:
        """Hold some slots, once they are free. Fails where that takes longer than the service lets a query wait."""
        with self._freed:
            if not self._freed.wait_for(lambda: self._taken[namespace] + count <= MOST_AT_ONCE, PATIENCE_S):
                raise Failure(429, f"more than {MOST_AT_ONCE} queries of this namespace at once")
            self._taken[namespace] += count
        try:
            yield
        finally:
            with self._freed:
                self._taken[namespace] -= count
                self._freed.notify_all()


def slots_of(body: Any) -> int:
    """Return how many slots the queries of a request take."""
    queries = body.get("queries", [body]) if isinstance(body, dict) else []
    taken = sum(4 if "aggregate_by" in one else 2 if "kNN" in (one.get("rank_by") or ()) else 1 for one in queries)
    return min(taken, MOST_AT_ONCE)


class TurbopufferServer:
    """Namespaces survive `die` and `revive`; the port stays the same."""

    def __init__(self, key: str = "tpuf_a-secret-of-tests") -> None:
        self.key = key
        self.namespaces: dict[str, Namespace] = {}
        self.log: list[Logged] = []
        self._faults: list[tuple[Kind, Fault]] = []
        self._operations: dict[str, tuple[bool, Any]] = {}
        self.may_list = True
        """Whether the key has the right to list namespaces."""
        self.most_bytes = 512_000_000
        self.refuses: Callable[[Mapping[str, Any]], bool] = lambda row: False
        """Which rows are bad, for a reason that only the service knows."""
        self._lock = threading.RLock()
        self._slots = Slots()
        self._port = 0
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.revive()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Nobody listens any more, and open connections end."""
        http, thread = self._http, self._thread
        self._http = self._thread = None
        if http is None or thread is None:
            return
        http.shutdown()
        thread.join(10)
        http.server_close()
        for connection in list(http.open):  # type: ignore[attr-defined]
            _hang_up(connection)

    def revive(self) -> None:
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._http = _Http(("127.0.0.1", self._port), Handler)
        self._port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def fail(
        self,
        kind: Kind,
        trouble: Trouble = "status",
        *,
        times: int = 1,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        seconds: float = 0.0,
        after: int = 0,
    ) -> None:
        """The next so many requests of a kind go wrong, once so many others have gone well."""
        well: list[tuple[Kind, Fault]] = [(kind, Fault("delay"))] * after
        with self._lock:
            self._faults += [*well, *([(kind, Fault(trouble, status, headers or {}, seconds))] * times)]

    def forgive(self) -> None:
        """Nothing goes wrong any more."""
        with self._lock:
            self._faults.clear()

    def rows(self) -> dict[str, dict[str, Any]]:
        """Every row of every namespace, comparable."""
        with self._lock:
            return {
                name: {
                    key: {**row, "vector": row["vector"].tolist()} if "vector" in row else dict(row)
                    for key, row in namespace.rows.items()
                }
                for name, namespace in self.namespaces.items()
            }

    def requests(self, kind: str) -> list[Logged]:
        return [logged for logged in list(self.log) if logged.kind == kind]

    def fault_for(self, kind: str) -> Fault | None:
        with self._lock:
            for place, (wanted, fault) in enumerate(self._faults):
                if wanted in ("any", kind):
                    del self._faults[place]
                    return fault
        return None

    # what is served

    def answer(self, kind: str, name: str, body: Any, asked: Mapping[str, list[str]], *, stale: bool) -> Any:
        with self._lock:
            try:
                return self._answer(kind, unquote(name), body, asked, stale=stale)
            except BadRequest as error:
                raise Failure(400, str(error)) from None

    def _answer(self, kind: str, name: str, body: Any, asked: Mapping[str, list[str]], *, stale: bool) -> Any:
        if kind == "list":
            if not self.may_list:
                raise Failure(403, "this key may not list namespaces")
            return self._listed(asked)
        if kind == "poll":
            running, result = self._operations[name]
            self._operations[name] = False, result
            return {"status": "running"} if running else {"status": "finished", "result": {"success": result}}
        if not NAME.fullmatch(name):
            raise BadRequest(f"{name!r} is no name of a namespace")
        if kind == "write":
            return self._written(name, body)
        if name not in self.namespaces:
            raise Failure(404, f"namespace {name} was not found")
        namespace = self.namespaces[name]
        if kind == "query":
            used = {"billing": {"billable_logical_bytes_queried": 1, "billable_logical_bytes_returned": 1}}
            return {**namespace.query(body, stale=stale), **used, "performance": PERFORMANCE}
        if kind == "delete":
            del self.namespaces[name]
            return {"status": "OK"}
        if kind == "metadata":
            return namespace.metadata()
        if kind == "schema":
            if body is not None:
                namespace.declare(body)
            return namespace.schema
        return {"status": "ACCEPTED", "message": ""}

    def _written(self, name: str, body: Any) -> dict[str, Any]:
        namespace = self.namespaces.get(name)
        rows = "upsert_rows" in body or "upsert_columns" in body
        if any(map(self.refuses, body.get("upsert_rows", ()))):
            raise BadRequest("a row of this request is bad")
        if namespace is None and not rows:
            raise Failure(404, f"namespace {name} was not found")
        namespace = namespace or Namespace()
        if rows and namespace.unindexed > MOST_UNINDEXED:
            raise Failure(429, "too much of this namespace is not indexed yet")
        done = namespace.write(body)
        self.namespaces[name] = namespace
        return {"status": "OK", "message": "documents committed successfully", **done}

    def _listed(self, asked: Mapping[str, list[str]]) -> dict[str, Any]:
        prefix, cursor = asked.get("prefix", [""])[0], asked.get("cursor", [""])[0]
        size = int(asked.get("page_size", ["100"])[0])
        if not 1 <= size <= 1_000:
            raise BadRequest("a page has 1 to 1,000 namespaces")
        names = [name for name in sorted(self.namespaces) if name.startswith(prefix) and name > cursor]
        more = {"next_cursor": names[size - 1]} if len(names) > size else {}
        return {"namespaces": [{"id": name} for name in names[:size]], **more}

    def later(self, result: Any) -> str:
        """Where an operation's result will be."""
        with self._lock:
            token = f"operation-{len(self._operations)}"
            self._operations[token] = True, result
        return f"/v1/operations/{token}"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *given: Any) -> None:
        self.open: set[socket.socket] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that went away


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body leave together
    server_of: TurbopufferServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        parts = urlsplit(self.path)
        found = [(m[1] if m.groups() else "", kind) for method, pattern, kind in _ROUTES
                 if method == self.command and (m := re.fullmatch(pattern, parts.path))]  # fmt: skip
        if not found:
            self._send(404, "<html>there is nothing here</html>", {"content-type": "text/html"})
            return
        name, kind = found[0]
        body = json.loads(raw) if raw else None
        self.server_of.log.append(Logged(kind, unquote(name), body, raw, dict(self.headers)))
        if self.headers.get("authorization") != f"Bearer {self.server_of.key}":
            self._send(401, {"status": "error", "error": "the API key is invalid"})
            return
        if len(raw) > self.server_of.most_bytes:
            self._send(413, {"status": "error", "error": "the request is too large"})
            return
        try:
            with self.server_of._slots.held(name, slots_of(body) if kind == "query" else 0):
                fault = self.server_of.fault_for(kind) or Fault("delay")
                self._carry_out(kind, name, body, parse_qs(parts.query), fault)
        except Failure as failure:
            self._send(failure.status, {"status": "error", "error": str(failure)})

    def _carry_out(self, kind: str, name: str, body: Any, asked: Mapping[str, list[str]], fault: Fault) -> None:
        time.sleep(fault.seconds)
        if fault.trouble == "status":
            self._send(fault.status, {"status": "error", "error": f"told to say {fault.status}"}, fault.headers)
        elif fault.trouble == "accepted":
            self._send(202, {})
        elif fault.trouble == "drop":
            self._drop()
        else:
            try:
                done = self.server_of.answer(kind, name, body, asked, stale=fault.trouble == "stale")
            except Failure as failure:
                self._send(failure.status, {"status": "error", "error": str(failure)})
                return
            if fault.trouble == "drop after":
                self._drop()
            elif fault.trouble == "async":
                headers = {"location": self.server_of.later(done), "preference-applied": "respond-async"}
                self._send(202, {}, headers)
            else:
                self._send(200, done)

    def _drop(self) -> None:
        self.close_connection = True
        _hang_up(self.connection)

    def _send(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_GET = do_POST = do_DELETE = _serve
