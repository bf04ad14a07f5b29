"""A server that speaks as Ollama, OpenAI, Azure, Anthropic and the reranking servers do, and misbehaves when told to.

Its vectors are those of the model that ships with the package, so what it serves can be searched with.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from commonplace.models import STATIC, open_embedder
from commonplace.settings import Settings

Make = Callable[..., Settings]
"""Settings with some of them given."""


@dataclass
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Site:
    """What the server is to do, and what it was asked. `plan` holds one misbehaviour per request to come."""

    url: str = ""
    model: str = "static"
    says: str = "lex: boil oolong\nvec: how hot should water be\nhyde: Water of ninety degrees."
    longest: int = 0
    """Characters of a text that the model reads at once; 0 is no bound."""
    dims: int = 256
    plan: deque[Callable[[Handler], None]] = field(default_factory=deque)
    always: Callable[[Handler], None] | None = None
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    gate: threading.Lock = field(default_factory=threading.Lock)
    connections: list[socket.socket] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def texts(self) -> int:
        """How many texts were embedded so far, those of the introduction left out."""
        sizes = (len(asked.body["input"]) for asked in self.asked if "input" in asked.body)
        return sum(size for size in sizes if size != 24)


_EMBEDDER = open_embedder(STATIC, Path("nowhere"))


class Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.site.connections.append(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of it is of interest."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        site = self.site
        with site.gate:
            site.asked.append(Asked(self.path, headers, body))
            site.at_once += 1
            site.most_at_once = max(site.at_once, site.most_at_once)
            behave = site.plan.popleft() if site.plan else site.always
        try:
            if behave is not None:
                behave(self)
            else:
                self.answer(*self._answer(body))
        finally:
            with site.gate:
                site.at_once -= 1

    def answer(self, status: int, found: Any, headers: dict[str, str] | None = None) -> None:
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        path = self.path.partition("?")[0]
        if path.startswith("/openai/deployments/"):
            path = "/v1/" + path.split("/", 4)[4]
        elif path not in ("/rerank",) and body.get("model") != self.site.model:
            return 404, {"error": f"model '{body.get('model')}' not found, try pulling it first"}
        return {
            "/api/embed": self._ollama_vectors,
            "/v1/embeddings": self._openai_vectors,
            "/api/chat": lambda body: (200, {"message": {"role": "assistant", "content": self.site.says}}),
            "/v1/chat/completions": lambda body: (200, {"choices": [{"message": {"content": self.site.says}}]}),
            "/v1/messages": lambda body: (200, {"content": [{"type": "text", "text": self.site.says}]}),
            "/v2/rerank": lambda body: self._judged(body["query"], body["documents"], "relevance_score"),
            "/v1/rerank": lambda body: self._judged(body["query"], body["documents"], "relevance_score"),
            "/rerank": lambda body: self._judged(body["query"], body["texts"], "score"),
        }[path](body)

    def _ollama_vectors(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self._too_long(body["input"]):
            return 400, {"error": "the input length exceeds the context length"}
        return 200, {"embeddings": self._vectors(body["input"])}

    def _openai_vectors(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self._too_long(body["input"]):
            return 400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}
        if "dimensions" in body and body["dimensions"] > 256:
            return 400, {"error": {"message": "this model does not change its dimensions"}}
        vectors = self._vectors(body["input"], body.get("dimensions"))
        data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        return 200, {"data": data[::-1]}

    def _too_long(self, texts: list[str]) -> bool:
        return bool(self.site.longest) and any(len(text) > self.site.longest for text in texts)

    def _vectors(self, texts: list[str], dims: int | None = None) -> list[list[float]]:
        found: list[list[float]] = _EMBEDDER.embed_passages(texts).tolist()
        return [vector[: dims or self.site.dims] for vector in found]

    def _judged(self, query: str, passages: list[str], name: str) -> tuple[int, Any]:
        words = set(query.lower().split())
        scores = [len(words & set(passage.lower().split())) / max(len(words), 1) for passage in passages]
        ranked = sorted(enumerate(scores), key=lambda pair: -pair[1])
        results = [{"index": place, name: score} for place, score in ranked]
        return 200, results if name == "score" else {"results": results}


# misbehaviour


def status(code: int, found: Any = None, **headers: str) -> Callable[[Handler], None]:
    """An answer with this status. Underscores in names of headers are dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.answer(code, found if found is not None else {"error": "no"}, named)


def says(found: Any) -> Callable[[Handler], None]:
    """An answer with this content."""
    return lambda handler: handler.answer(200, found)


def truncated(handler: Handler) -> None:
    """JSON that stops in the middle, as a whole answer."""
    handler.answer(200, b'{"embeddings": [[0.1, 0.2')


def cut_off(handler: Handler) -> None:
    """Less than was announced, then the end of the connection."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"embeddings"')
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """The connection is reset without an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def silent(handler: Handler) -> None:
    """No answer until the test lets it go."""
    handler.site.released.wait(30)
    handler.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many of these tests are about."""


@contextmanager
def serving(site: Site | None = None) -> Iterator[Site]:
    """The server in a thread, until the block ends."""
    found = site or Site()
    handler = type("Bound", (Handler,), {"site": found})
    server = _Server(("127.0.0.1", 0), handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        found.released.set()
        server.shutdown()
        thread.join(20)
        for connection in found.connections:
            with suppress(OSError):  # it has ended already
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()
