"""Reading files over HTTP: whole, or only the bytes asked for. Whatever goes wrong is a DownloadFailed."""

from __future__ import annotations

import base64
import http.client
import io
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import IO, TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from commonplace.errors import DownloadFailed
from commonplace.models.catalog import Progress

if TYPE_CHECKING:
    from typing_extensions import Buffer

TIMEOUT_S = 30.0
ATTEMPTS = 3
FIRST_PAUSE_S = 0.5
BLOCK = 4 << 20
"""The most one request asks for: few round trips for a large file, and little memory."""
PIECE = 128 << 10
_CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_TROUBLE = (OSError, http.client.HTTPException)


class Response(Protocol):
    """The part of `http.client.HTTPResponse` that this room uses."""

    url: str
    status: int
    headers: Message

    def read(self, amount: int | None = None, /) -> bytes: ...
    def close(self) -> None: ...


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """A follower of redirects to http(s) only: a registry must not be able to point at a local file or at ftp."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        try:
            _require_http(newurl)
        except DownloadFailed:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str, *, accept: str = "*/*", span: tuple[int, int] | None = None) -> Response:
    """Return an answer with a 2xx status.

    `span` asks for these bytes, last one included: 206 says that it was heard.
    """
    request = _request(url, accept, span)
    for attempt in range(ATTEMPTS):
        try:
            return _open_once(request)
        except (_Passing, *_TROUBLE) as error:
            if attempt == ATTEMPTS - 1:
                raise _failed(url, error) from error
            time.sleep(FIRST_PAUSE_S * 2**attempt)
    raise AssertionError("unreachable")


def read_url(url: str, *, accept: str = "*/*", most: int = 64 << 20) -> tuple[bytes, Response]:
    """Return a small file whole, and the answer it came in."""
    response = open_url(url, accept=accept)
    with closing(response, url):
        body = response.read(most + 1)
        _require_whole(url, len(body), response)
    return body, response


def pieces(response: Response, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the body in pieces. Raise DownloadFailed for a body that is cut short."""
    total = int(response.headers.get("Content-Length") or 0)
    done = 0
    with closing(response, response.url):
        while piece := response.read(PIECE):
            done += len(piece)
            yield piece
            if progress:
                progress(done, max(done, total))
        _require_whole(response.url, done, response)


class RangeFile(io.RawIOBase):
    """A remote file as a seekable one, so that `zipfile` can read a wheel of which only some members are wanted."""

    def __init__(self, url: str, size: int) -> None:
        super().__init__()
        self._url, self._size = url, size
        self._position = 0
        self._block = b""
        self._block_start = 0
        self._ahead = PIECE
        self._tail_start = max(0, size - PIECE)
        self._tail: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self._at(self._position, len(view))
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def _at(self, position: int, most: int) -> bytes:
        """Return at most `most` bytes from `position` on, from what is at hand or from one request."""
        if position >= self._size:
            return b""
        if position >= self._tail_start:
            # The directory of a zip is at its end and read in small steps back and forth: keep it.
            if self._tail is None:
                self._tail = fetch_range(self._url, self._tail_start, self._size)
            return self._tail[position - self._tail_start :][:most]
        block_end = self._block_start + len(self._block)
        if not self._block_start <= position < block_end:
            # Reading on asks for more each time, jumping starts small: little is fetched in vain, in few requests.
            self._ahead = min(2 * self._ahead, BLOCK) if position == block_end else PIECE
            self._block = fetch_range(self._url, position, min(position + self._ahead, self._tail_start))
            self._block_start = position
        start = position - self._block_start
        return self._block[start : start + most]


def fetch_range(url: str, start: int, end: int) -> bytes:
    """Return the bytes from start to end, the last one excluded. Ask again when the connection broke in the middle."""
    for attempt in range(ATTEMPTS):
        response = open_url(url, span=(start, end - 1))
        if response.status != http.client.PARTIAL_CONTENT:
            response.close()
            raise DownloadFailed(f"{shown(url)} stopped answering range requests. Try again.")
        try:
            with closing(response, url):
                body = response.read(end - start)
                _require_whole(url, len(body), response, expected=end - start)
            return body
        except DownloadFailed:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def size_of(response: Response) -> int | None:
    """Return the size of the whole file, read off the answer to a range request. None: the range was not heard."""
    if response.status != http.client.PARTIAL_CONTENT:
        return None
    size = (response.headers.get("Content-Range") or "").rpartition("/")[2]
    return int(size) if size.isdigit() else None


@contextmanager
def closing(response: Response, url: str) -> Iterator[None]:
    """Let reads inside this block fail as a DownloadFailed, and give the connection back."""
    try:
        yield
    except _TROUBLE as error:
        raise _failed(url, error) from error
    finally:
        response.close()


def shown(url: str) -> str:
    """Return the address without the user name and password that a private registry's may carry."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise DownloadFailed(f"A registry or file address cannot be read ({error}). Correct it.") from error
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


class _Passing(Exception):
    """A status that may be different in a moment."""


def _open_once(request: urllib.request.Request) -> Response:
    try:
        response: Response = _opener().open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in _PASSING:
            raise _Passing(f"HTTP status {error.code}") from error
        raise _refused(request.full_url, error.code) from error
    return response


def _opener() -> urllib.request.OpenerDirector:
    handlers = [_SafeRedirects(), urllib.request.HTTPSHandler(context=tls())]
    return urllib.request.build_opener(*handlers)


def certificates() -> str | None:
    """Return the file or folder of certificates that the user trusts instead of the system's, or None."""
    return next((value for name in _CA_VARIABLES if (value := os.environ.get(name))), None)


def tls() -> ssl.SSLContext:
    """Return a context with the system's certificates, or those that pip, requests or OpenSSL was told to use."""
    path = certificates()
    try:
        if path and os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise DownloadFailed(
            f"The certificate file {path} cannot be read ({error}). Correct {', '.join(_CA_VARIABLES)}."
        ) from error


def _request(url: str, accept: str, span: tuple[int, int] | None) -> urllib.request.Request:
    _require_http(url)
    request = urllib.request.Request(shown(url))  # noqa: S310  the scheme was just checked
    request.add_header("User-Agent", "commonplace")
    request.add_header("Accept", accept)
    request.add_header("Accept-Encoding", "identity")
    if span:
        request.add_header("Range", f"bytes={span[0]}-{span[1]}")
    if secret := authorization(url):
        # Unredirected: the password is for this registry, not for the host it may send us on to.
        request.add_unredirected_header("Authorization", secret)
    return request


def authorization(url: str) -> str:
    """Return the header that carries the user name and password of an address; "" where it has none."""
    parts = urlsplit(url)
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _require_http(url: str) -> None:
    address = shown(url)
    if urlsplit(address).scheme not in ("http", "https"):
        raise DownloadFailed(f"{address} is not an http or https address. Set COMMONPLACE_REGISTRY to one that is.")


def _require_whole(url: str, got: int, response: Response, expected: int | None = None) -> None:
    declared = response.headers.get("Content-Length")
    want = expected if expected is not None else int(declared) if declared and declared.isdigit() else got
    if got != want:
        raise DownloadFailed(f"{shown(url)} ended after {got} of {want} bytes. Try again; check the network or proxy.")


def _refused(url: str, status: int) -> DownloadFailed:
    advice = {
        302: "The redirect leads nowhere: set COMMONPLACE_REGISTRY to another registry.",
        401: "It wants a user name and password: put them in the registry's address.",
        403: "It refuses this client: check the registry's address and password.",
        404: "It does not have this file: set COMMONPLACE_REGISTRY to a registry that does.",
    }.get(status, "Check the address, or set COMMONPLACE_REGISTRY to another registry.")
    return DownloadFailed(f"{shown(url)} answered with HTTP status {status}. {advice}")


def _failed(url: str, error: Exception) -> DownloadFailed:
    reason = getattr(error, "reason", None) or error
    return DownloadFailed(
        f"{shown(url)} could not be read ({reason}). Check the network, the proxy settings and COMMONPLACE_REGISTRY, "
        "then try again."
    )
