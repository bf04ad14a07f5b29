"""Fetch files of a package over http and https. Every redirect is checked, and no private host but the user's own."""

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
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import quote, urljoin, urlsplit

from commonplace.errors import DownloadFailed, TooLarge
from commonplace.kinds.documents.packages.source import ARCHIVE_ENDINGS, without_credentials
from commonplace.model import fingerprint
from commonplace.models.web import TIMEOUT_S, authorization, tls
from commonplace.network import require_allowed

MOST_REDIRECTS = 5
SLOWEST = 64 << 10
"""Bytes a second, once the time limit has passed: a slower answer is given up."""
_PIECE = 256 << 10
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""The network that translators map IPv4 addresses into, private ones too."""
_PRIVATE_TOO = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10", "::/96")))
"""Networks that some Pythons take for global: site-local translators and addresses, and IPv4-compatible ones."""
_RESERVED = "%/:?#[]@!$&'()*+,;=~"
_MOVED = (301, 302, 303, 307, 308)

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Validators:
    """The headers by which a server tells whether a file has changed, and the address that they are of."""

    etag: str = ""
    modified: str = ""
    """The Last-Modified header."""
    place: str = ""
    """The fingerprint of the address they are of, which may be secret after a redirect; "" is any."""

    def headers(self, address: str) -> dict[str, str]:
        """Return the headers of a conditional request; none for another address than these are of."""
        if self.place not in ("", _place(address)):
            return {}
        return {
            name: value for name, value in (("If-None-Match", self.etag), ("If-Modified-Since", self.modified)) if value
        }


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to a request."""

    address: str
    """The address after all redirects."""
    validators: Validators
    is_new: bool = True
    """False: the file has not changed since the validators that were sent, and nothing was read."""


class Web:
    """The connections of one package. `own` is the address of its source, or "" where that is on this machine."""

    def __init__(self, own: str = "", *, offline: bool = False) -> None:
        self._offline = offline
        self.own_host = (urlsplit(own).hostname or "") if own else ""
        self._own_origin = _origin(own) if own else None
        self._secret = (authorization(own) or _from_netrc(self.own_host)) if own else ""
        self._own_address = ""

    def fetch(self, url: str, into: IO[bytes], *, most: int, known: Validators = Validators()) -> Fetched:
        """Write a file's bytes to `into`, and return the answer. `known` makes the request conditional.

        Raise DownloadFailed or TooLarge for whatever goes wrong, Offline where the host may not be contacted, and
        OSError only where the disk of `into` is full.
        """
        address = url
        for _ in range(MOST_REDIRECTS + 1):
            require_allowed(urlsplit(address).hostname or "", "A package of documents", offline=self._offline)
            conditions = known.headers(address)
            reply = self._open(address, conditions)
            try:
                if reply.status in _MOVED and (target := reply.headers.get("Location")):
                    address = _http(urljoin(without_credentials(address), target))
                    continue
                validators = Validators(_header(reply, "ETag"), _header(reply, "Last-Modified"), _place(address))
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
        """Return a connection to an address that may be reached. The address that was checked is the one used."""
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
        """Return whether an address may be reached: a public one, or that of the user's own host.

        That host keeps its first address, so a name that resolves differently the second time leads nowhere.
        """
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
    """A handler that follows no redirect: `Web.fetch` checks each one before it follows it."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class _Private(OSError):
    """The host has an address that may not be reached."""


class _Plain(http.client.HTTPConnection):
    """A connection that `Web.connect` makes."""

    def __init__(self, *args: Any, web: Web, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._web = web

    def connect(self) -> None:
        self.sock = self._web.connect(self.host, self.port, TIMEOUT_S)


class _Secure(http.client.HTTPSConnection):
    """A TLS connection over one that `Web.connect` makes."""

    def __init__(self, *args: Any, web: Web, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._web = web

    def connect(self) -> None:
        self.sock = tls().wrap_socket(self._web.connect(self.host, self.port, TIMEOUT_S), server_hostname=self.host)


class _Http(urllib.request.HTTPHandler):
    """A handler that connects through `Web`, or through the user's proxy."""

    def __init__(self, web: Web) -> None:
        super().__init__()
        self._web = web

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if req.has_proxy():
            _look_up(self._web, req.full_url)
            return self.do_open(http.client.HTTPConnection, req)
        return self.do_open(functools.partial(_Plain, web=self._web), req)


class _Https(urllib.request.HTTPSHandler):
    """A handler that connects through `Web` with TLS, or through the user's proxy."""

    def __init__(self, web: Web) -> None:
        super().__init__(context=tls())
        self._web = web

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        if getattr(req, "_tunnel_host", None):  # through the user's proxy, which makes the connection
            _look_up(self._web, req.full_url)
            return self.do_open(http.client.HTTPSConnection, req, context=tls())
        return self.do_open(functools.partial(_Secure, web=self._web), req)


def _look_up(web: Web, url: str) -> None:
    """Raise _Private for a private host, before a proxy connects to it. A name that only the proxy knows may pass."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == web.own_host:
        return
    try:
        addresses = socket.getaddrinfo(host, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError:
        return
    if any(not is_public(str(place[0])) for *_, place in addresses):
        raise _Private


def is_public(address: str) -> bool:
    """Return whether an IP address is global, and so is any IPv4 address that it carries."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    if ip.version == 6 and ip in _NAT64:
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if any(ip in network for network in _PRIVATE_TOO):
        return False
    return ip.is_global and not ip.is_multicast and (inner is None or inner.is_global)


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port


def _from_netrc(host: str) -> str:
    """Return the Authorization header from the user's .netrc, or "": so no address has to carry a password."""
    try:
        entry = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return authorization(f"https://{quote(entry[0], safe='')}:{quote(entry[2] or '', safe='')}@host") if entry else ""


def _http(address: str) -> str:
    """Return an address of http or https. Raise DownloadFailed for any other."""
    scheme, _, rest = address.partition(":")
    if scheme.lower() not in ("http", "https") or not rest.startswith("//"):
        raise DownloadFailed(
            f"{without_credentials(address)} is no http or https address. A package fetches nothing else."
        )
    return address


def _header(reply: http.client.HTTPResponse, name: str) -> str:
    """Return a header, or "": also for one that is folded over lines, which could not be sent back."""
    value = reply.headers.get(name) or ""
    return value if "\n" not in value else ""


def _place(address: str) -> str:
    """Return the fingerprint of an address without its credentials."""
    return fingerprint(without_credentials(address)).hex()


def _gzip() -> zlib._Decompress:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


class _Unzipping:
    """A stream that takes the bytes of a gzip file and writes the unpacked ones."""

    def __init__(self, write: Write, address: str, most: int) -> None:
        self._write, self._address, self._most, self._left = write, address, most, most
        self._packed = _gzip()

    def write(self, data: bytes) -> None:
        while data:
            if self._packed.eof:  # a file may have several gzip members
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
        """Raise DownloadFailed where the file is not complete."""
        if not self._packed.eof:
            raise DownloadFailed(f"{without_credentials(self._address)} ended too early. Try again.")


def _copy_plain(reply: http.client.HTTPResponse, write: Write, address: str, most: int) -> None:
    """Copy a file, unpacked where the server sends it gzipped although it was asked not to. Not for archives."""
    encoding = (reply.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding == "identity":
        _copy(reply, write, address, most)
        return
    if encoding not in ("gzip", "x-gzip"):
        raise DownloadFailed(
            f"{without_credentials(address)} comes packed as {encoding[:40]}. Have it served as it is, or as gzip."
        )
    unzipping = _Unzipping(write, address, most)
    _copy(reply, unzipping.write, address, most)
    unzipping.end()


def _copy(reply: http.client.HTTPResponse, write: Write, address: str, most: int) -> None:
    """Copy an answer. Raise TooLarge, or DownloadFailed where it is too slow or ends too early."""
    began, done = time.monotonic(), 0
    while piece := reply.read1(_PIECE):  # only what has come, so that a slow answer is noticed
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
    """Return the error of a request as a sentence."""
    reason = getattr(error, "reason", None) or error
    shown = without_credentials(address)
    if isinstance(reason, _Private):
        return DownloadFailed(
            f"{shown} is on a private, loopback or link-local host. A package reaches such a host only when its own "
            "source is there."
        )
    return DownloadFailed(f"{shown} could not be read ({reason}). Check the address and the network.")
