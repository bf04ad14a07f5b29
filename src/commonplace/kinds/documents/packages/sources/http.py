"""Files over HTTP for a package: only http(s), every hop looked at, and no private host but the user's own."""

from __future__ import annotations

import errno
import functools
import http.client
import ipaddress
import netrc
import socket
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from email.message import Message
from typing import IO, Any
from urllib.parse import quote, urljoin, urlsplit

from commonplace.errors import DownloadFailed, TooLarge
from commonplace.kinds.documents.packages.source import ARCHIVE_ENDINGS, without_credentials
from commonplace.lazy_dataclass import dataclass
from commonplace.model import fingerprint
from commonplace.models.web import TIMEOUT_S, authorization, tls
from commonplace.network import require_allowed

MOST_REDIRECTS = 5
SLOWEST = 64 << 10
"""Bytes a second, once the time limit has passed: what comes more slowly than that is given up."""
_PIECE = 256 << 10
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Where a translator puts the addresses of IPv4, private ones too."""
_PRIVATE_TOO = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10", "::/96")))
"""A site's own translator and a site's own addresses, and those of IPv4 in their first form: global to some Pythons."""
_RESERVED = "%/:?#[]@!$&'()*+,;=~"
_MOVED = (301, 302, 303, 307, 308)

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server said by which it can tell whether a file has changed."""

    etag: str = ""
    modified: str = ""
    place: str = ""
    """Which address it was said of, as a fingerprint: where a redirect leads may be a secret."""

    def headers(self, address: str) -> dict[str, str]:
        """What to ask an address along with; nothing where it is not the one that this was said of."""
        if self.place not in ("", _place(address)):
            return {}
        return {
            name: value for name, value in (("If-None-Match", self.etag), ("If-Modified-Since", self.modified)) if value
        }


@dataclass(frozen=True, slots=True)
class Fetched:
    address: str
    """Where it was found in the end."""
    validators: Validators
    is_new: bool = True
    """False: it is as the validators sent along say, and nothing was read."""


class Web:
    """What one package may fetch. `own` is the user's own source, or nothing where that is on this machine."""

    def __init__(self, own: str = "", *, offline: bool = False) -> None:
        self._offline = offline
        self.own_host = (urlsplit(own).hostname or "") if own else ""
        self._own_origin = _origin(own) if own else None
        self._secret = (authorization(own) or _from_netrc(self.own_host)) if own else ""
        self._own_address = ""

    def fetch(self, url: str, into: IO[bytes], *, most: int, known: Validators = Validators()) -> Fetched:
        """Write a file's bytes to `into`. DownloadFailed or TooLarge, with a sentence, for whatever goes wrong."""
        address = url
        for _ in range(MOST_REDIRECTS + 1):
            require_allowed(urlsplit(address).hostname or "", "A package of documents", offline=self._offline)
            conditions = known.headers(address)
            reply = self._open(address, conditions)
            try:
                if reply.status in _MOVED and (target := reply.headers.get("Location")):
                    address = _http(urljoin(without_credentials(address), target))
                    continue
                validators = Validators(_said(reply, "ETag"), _said(reply, "Last-Modified"), _place(address))
                if reply.status == http.client.NOT_MODIFIED and conditions:
                    return Fetched(address, known, is_new=False)
                if reply.status != http.client.OK:
                    raise DownloadFailed(f"{without_credentials(address)} answered with HTTP status {reply.status}.")
                is_archive = urlsplit(url).path.lower().endswith(ARCHIVE_ENDINGS)
                (_copy if is_archive else _copy_plain)(reply, into.write, address, most)
                return Fetched(address, validators)
            except (OSError, http.client.HTTPException) as error:
                if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):  # it is `into` that takes no more
                    raise
                raise _failed(address, error) from None
            finally:
                reply.close()
        raise DownloadFailed(f"{without_credentials(url)} redirects more than {MOST_REDIRECTS} times.")

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connection to an address that may be reached: the one that was looked at is the one that is used."""
        trouble: OSError | None = None
        for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if not self._may_reach(host, str(place[0])):
                trouble = trouble or _Private()
                continue
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(timeout)
                connection.connect(place)
            except OSError as error:
                connection.close()
                trouble = error
                continue
            if host.lower() == self.own_host and not self._own_address:
                self._own_address = str(place[0])
            return connection
        raise trouble or OSError("the name has no address")

    def _may_reach(self, host: str, address: str) -> bool:
        """A name that leads elsewhere the second time leads nowhere: the user's host keeps its first address."""
        if is_public(address):
            return True
        return host.lower() == self.own_host and self._own_address in ("", address)

    def _open(self, address: str, conditions: dict[str, str]) -> http.client.HTTPResponse:
        request = urllib.request.Request(  # noqa: S310  the scheme was just checked
            quote(without_credentials(_http(address)), safe=_RESERVED),
            headers={"User-Agent": "commonplace", "Accept-Encoding": "identity", **conditions},
        )
        if self._secret and _origin(address) == self._own_origin:
            request.add_header("Authorization", self._secret)
        opener = urllib.request.build_opener(_NoRedirects(), _Http(self), _Https(self))
        try:
            reply: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            return error  # type: ignore[return-value]  # an answer all the same: a redirect, a 304 or a refusal
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _failed(address, error) from None
        return reply


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Each hop is looked at before it is taken, so none is taken here."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class _Private(OSError):
    pass


class _Plain(http.client.HTTPConnection):
    def __init__(self, *given: Any, web: Web, **named: Any) -> None:
        super().__init__(*given, **named)
        self._web = web

    def connect(self) -> None:
        self.sock = self._web.connect(self.host, self.port, TIMEOUT_S)


class _Secure(http.client.HTTPSConnection):
    def __init__(self, *given: Any, web: Web, **named: Any) -> None:
        super().__init__(*given, **named)
        self._web = web

    def connect(self) -> None:
        self.sock = tls().wrap_socket(self._web.connect(self.host, self.port, TIMEOUT_S), server_hostname=self.host)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, web: Web) -> None:
        super().__init__()
        self._web = web

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if req.has_proxy():
            _look_up(self._web, req.full_url)
            return self.do_open(http.client.HTTPConnection, req)
        return self.do_open(functools.partial(_Plain, web=self._web), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, web: Web) -> None:
        super().__init__(context=tls())
        self._web = web

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if getattr(req, "_tunnel_host", None):  # through the user's proxy, which makes the connection
            _look_up(self._web, req.full_url)
            return self.do_open(http.client.HTTPSConnection, req, context=tls())
        return self.do_open(functools.partial(_Secure, web=self._web), req)


def _look_up(web: Web, url: str) -> None:
    """Where a proxy makes the connection, the name is looked at as far as this machine knows it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == web.own_host:
        return
    try:
        found = socket.getaddrinfo(host, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError:
        return
    if any(not is_public(str(place[0])) for *_, place in found):
        raise _Private


def is_public(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    if found.version == 6 and found in _NAT64:
        inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    if any(found in network for network in _PRIVATE_TOO):
        return False
    return found.is_global and not found.is_multicast and (inner is None or inner.is_global)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def _from_netrc(host: str) -> str:
    """What the user keeps for a host where curl and git look too, so that no address has to carry a password."""
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return authorization(f"https://{quote(found[0], safe='')}:{quote(found[2] or '', safe='')}@host") if found else ""


def _http(address: str) -> str:
    scheme, _, rest = address.partition(":")
    if scheme.lower() not in ("http", "https") or not rest.startswith("//"):
        raise DownloadFailed(
            f"{without_credentials(address)} is no http or https address. A package fetches nothing else."
        )
    return address


def _said(reply: http.client.HTTPResponse, name: str) -> str:
    """A header, unless it is folded over lines, which none that could be sent back is."""
    value = reply.headers.get(name) or ""
    return value if "\n" not in value else ""


def _place(address: str) -> str:
    return fingerprint(without_credentials(address)).hex()


def _gzip() -> zlib._Decompress:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


class _Unzipping:
    """Takes the bytes of a gzip file and writes those that are packed in it."""

    def __init__(self, write: Write, address: str, most: int) -> None:
        self._write, self._address, self._most, self._left = write, address, most, most
        self._packed = _gzip()

    def write(self, data: bytes) -> None:
        while data:
            if self._packed.eof:  # there may be several, one after the other
                self._packed = _gzip()
            try:
                plain = self._packed.decompress(data, self._left + 1)
            except zlib.error:
                raise DownloadFailed(f"{without_credentials(self._address)} is said to be gzip and is not.") from None
            self._left -= len(plain)
            if self._left < 0:
                raise _too_large(self._address, self._most)
            self._write(plain)
            data = self._packed.unused_data

    def end(self) -> None:
        if not self._packed.eof:
            raise DownloadFailed(f"{without_credentials(self._address)} ended too early. Try again.")


def _copy_plain(reply: http.client.HTTPResponse, write: Write, address: str, most: int) -> None:
    """The file itself, where a server sends it packed whatever it is asked for. An archive is what it is."""
    packing = (reply.headers.get("Content-Encoding") or "identity").strip().lower()
    if packing == "identity":
        _copy(reply, write, address, most)
        return
    if packing not in ("gzip", "x-gzip"):
        raise DownloadFailed(
            f"{without_credentials(address)} comes packed as {packing[:40]}. Have it served as it is, or as gzip."
        )
    unzipping = _Unzipping(write, address, most)
    _copy(reply, unzipping.write, address, most)
    unzipping.end()


def _copy(reply: http.client.HTTPResponse, write: Write, address: str, most: int) -> None:
    began, done = time.monotonic(), 0
    while piece := reply.read1(_PIECE):  # what has come, so that a trickle is seen as one
        done += len(piece)
        if done > most:
            raise _too_large(address, most)
        if time.monotonic() - began > TIMEOUT_S + done / SLOWEST:
            raise DownloadFailed(
                f"{without_credentials(address)} answers too slowly: {done} bytes in {TIMEOUT_S:.0f} s."
            )
        write(piece)
    declared = reply.headers.get("Content-Length") or ""
    if declared.isdigit() and int(declared) != done:
        raise DownloadFailed(f"{without_credentials(address)} ended after {done} of {declared} bytes. Try again.")


def _too_large(address: str, most: int) -> TooLarge:
    return TooLarge(f"{without_credentials(address)} has more than {most / (1 << 20):.0f} MiB, which are the most.")


def _failed(address: str, error: Exception) -> DownloadFailed:
    reason = getattr(error, "reason", None) or error
    shown = without_credentials(address)
    if isinstance(reason, _Private):
        return DownloadFailed(
            f"{shown} is on a private, loopback or link-local host. A package reaches such a host only when its own "
            "source is there."
        )
    return DownloadFailed(f"{shown} could not be read ({reason}). Check the address and the network.")
