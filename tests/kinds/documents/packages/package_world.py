"""What tests of packages share: a library, folders and archives made on the spot, and a web server on loopback."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from commonplace.kinds.documents.packages.declarations import Declaration
from commonplace.kinds.documents.packages.package_sync import SyncOptions, SyncReport, SyncTarget, sync
from commonplace.kinds.documents.packages.source import read_source
from commonplace.library import Library
from commonplace.model import Filter
from commonplace.store.items import Items
from commonplace.store.listing import Listing


@dataclass(frozen=True)
class World:
    """A library, and a folder to put sources in."""

    library: Library
    folder: Path

    def sync(self, url: str | Path, *, force: bool = False, dry: bool = False, **more: Any) -> SyncReport:
        settings = replace(self.library.settings, **more.pop("settings", {}))
        declaration = Declaration("docs", str(url), folder=self.folder, **more)
        keeping = SyncTarget(self.library.store, self.library.folder, settings)
        return sync(keeping, declaration, SyncOptions(force=force, dry=dry))

    def bodies(self, url: str | Path) -> dict[str, str]:
        """What is stored of a source, by document id."""
        key = read_source(str(url), self.folder).key
        found = self.library.store.drawer(Listing).scan(Filter(kinds=("document",), parents=(key,)), body=True)
        return {item.key: item.body or "" for item in found}

    def collection(self, url: str | Path) -> Mapping[str, Any]:
        item = self.library.store.drawer(Items).find("collection", "", read_source(str(url), self.folder).key)
        assert item is not None
        return item.fields

    def found(self, query: str) -> list[str]:
        """The ids of the documents a search by words finds."""
        page = self.library.search(query, mode="lexical", filter=Filter(kinds=("document",)))
        return [hit.item.key for hit in page.hits]


def counts(outcome: SyncReport) -> tuple[int, int, int, int]:
    return outcome.added, outcome.updated, outcome.removed, outcome.unchanged


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def manifest(**more: Any) -> str:
    return json.dumps({"name": "guide", "version": "1.0.0", "sources": {"glob": ["**/*.md"]}, **more})


def tarball(path: Path, files: Mapping[str, str | bytes], *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in members:
            archive.addfile(member)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def git(folder: Path, *arguments: str) -> str:
    """git as a person would use it, with no configuration but ours."""
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **identity}
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, files)
    return folder


def commit(folder: Path, files: Mapping[str, str | bytes]) -> str:
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")
    return git(folder, "rev-parse", "HEAD")


Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Served:
    """A web server's pages, and the requests it had."""

    port: int = 0
    pages: dict[str, bytes | Callable[[Mapping[str, str]], Answer]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    tagged: bool = True

    def url(self, path: str, credentials: str = "") -> str:
        return f"http://{credentials}127.0.0.1:{self.port}{path}"

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        self.asked.append((path, dict(headers)))
        page = self.pages.get(path)
        if page is None:
            return 404, {}, b"no such page"
        if not isinstance(page, bytes):
            return page(headers)
        tag = f'"{sha256(page)[:16]}"'
        if self.tagged and headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        return 200, {"ETag": tag} if self.tagged else {}, page


def moved(target: str, status: int = 302) -> Callable[[Mapping[str, str]], Answer]:
    return lambda headers: (status, {"Location": target}, b"")


@contextmanager
def web_server() -> Iterator[Served]:
    served = Served()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = served.answer(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
