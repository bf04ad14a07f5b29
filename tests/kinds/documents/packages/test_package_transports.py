"""Repositories over https, from a real web server with git's own backend, and over ssh as far as a server's door."""

from __future__ import annotations

import base64
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from package_world import World, commit, counts, manifest, repository

from needs import missing

FILES = {"manifest.json": manifest(), "tea.md": "# Tea\n\nOolong.\n", "deep/more.md": "# More\n\nMatcha.\n"}


@dataclass
class Hub:
    """A web server of repositories, and what it was asked."""

    root: Path
    port: int = 0
    password: str = ""
    moved: str = ""
    """Where it sends everybody instead of answering."""
    authorizations: list[str] = field(default_factory=list)

    def url(self, name: str, credentials: str = "", more: str = "") -> str:
        return f"git+https://{credentials}localhost:{self.port}/{name}{more}"

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        given = request.headers.get("Authorization", "")
        self.authorizations.append(given)
        if self.moved:
            _reply(request, 302, {"Location": self.moved + request.path})
        elif self.password and given != f"Basic {base64.b64encode(self.password.encode()).decode()}":
            _reply(request, 401, {"WWW-Authenticate": 'Basic realm="hub"'})
        else:
            self._run_backend(request)

    def _run_backend(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path, _, query = request.path.partition("?")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        }
        command = ["git", "-c", "safe.directory=*", "http-backend"]
        done = subprocess.run(command, input=body, env=environment, capture_output=True, timeout=60, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode("ascii").split("\r\n"))
        _reply(request, int(headers.pop("Status", "200").split()[0]), headers, content)


def _reply(
    request: http.server.BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], content: bytes = b""
) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(content))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(content)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that nobody but this test trusts, its key in the same file."""
    if shutil.which("openssl") is None:
        missing("openssl is not installed, and makes the certificate of this test. Run `make packages`.")
    file = tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(tmp_path / "key.pem"), "-out", str(file)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    return file


@pytest.fixture
def hub(tmp_path: Path, certificate: Path) -> Iterator[Hub]:
    hub = Hub(tmp_path)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.answer(self)

        do_POST = do_GET

        def log_message(self, *given: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, address: object) -> None:
            pass  # a client that does not trust the certificate hangs up

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.mark.usefixtures("trusted")
def test_a_repository_is_synced_over_https_and_only_what_is_new_is_fetched(world: World, hub: Hub) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = hub.url("origin/.git", more="#main")
    first = world.sync(url)
    assert (first.error, counts(first)) == (None, (2, 0, 0, 0))
    assert world.found("matcha") == ["deep/more.md"]
    asked = len(hub.authorizations)
    assert counts(world.sync(url)) == (0, 0, 0, 2)
    assert len(hub.authorizations) - asked <= 2  # its refs, and nothing of its objects
    new = commit(origin, {"tea.md": "# Tea\n\nSencha.\n"})
    second = world.sync(url)
    assert (counts(second), second.commit) == ((0, 1, 0, 1), new)


@pytest.mark.usefixtures("trusted")
def test_a_password_goes_to_the_repository_and_nowhere_else(
    world: World, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.folder))
    repository(world.folder / "origin", FILES)
    hub.password = "me:s3cret"
    refused = world.sync(hub.url("origin/.git"))
    assert refused.error is not None
    assert "git could not read" in refused.error
    url = hub.url("origin/.git", "me:s3cret@")
    done = world.sync(url)
    assert (done.error, counts(done)) == (None, (2, 0, 0, 0))
    wrong = world.sync(hub.url("origin/.git", "me:wr0ng@"))
    assert wrong.error is not None
    assert "wr0ng" not in wrong.error
    assert "s3cret" not in json.dumps([done.record(), dict(world.collection(url))])
    for file in world.library.folder.rglob("*"):
        assert not file.is_file() or b"s3cret" not in file.read_bytes()
    (world.folder / ".netrc").write_text("machine localhost login me password s3cret\n", "utf-8")
    (world.folder / ".netrc").chmod(0o600)
    assert world.sync(hub.url("origin/.git")).error is None


@pytest.mark.usefixtures("trusted")
def test_a_redirect_takes_git_nowhere(world: World, hub: Hub) -> None:
    repository(world.folder / "origin", FILES)
    hub.moved = f"https://127.0.0.1:{hub.port}"
    done = world.sync(hub.url("origin/.git", "me:s3cret@"))
    assert done.error is not None
    assert "git could not read" in done.error
    assert len(hub.authorizations) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(world: World, hub: Hub) -> None:
    repository(world.folder / "origin", FILES)
    done = world.sync(hub.url("origin/.git"))
    assert done.error is not None
    assert "certificate" in done.error
    assert hub.authorizations == []


def test_what_ssh_says_is_the_reason(world: World) -> None:
    if shutil.which("ssh") is None:
        missing("ssh is not installed, and this test is about what it says.")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        done = world.sync(f"git+ssh://git@127.0.0.1:{taken.getsockname()[1]}/docs.git")
    assert done.error is not None
    assert "Connection refused" in done.error
