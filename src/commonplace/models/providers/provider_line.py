"""A line to a provider: pooled connections, several attempts, limits, and errors that say what to do.

Its connections keep a caller's time (a client's own bound is of one read, and a server that trickles ends none), and a
circuit breaker leaves a failing provider alone.
"""

from __future__ import annotations

import atexit
import json
import logging
import random
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpcore2
import httpx2

from commonplace.models.hurry import hurried, time_left
from commonplace.models.providers.endpoint import PROVIDERS, ModelEndpoint
from commonplace.models.providers.replies import ProviderFailed, RequestRefused, TooLong, printable

FAILURES = 5
REST_S = 30.0
LONGEST_REST_S = 300.0
log = logging.getLogger(__name__)
MOST_BYTES = 64 << 20
"""The largest answer: a batch of vectors as JSON is a tenth of that."""
LONGEST_PAUSE_S = 30.0
SHOWN = 200
"""Characters of what a provider says that an error repeats."""
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_TOO_LONG = ("context length", "context size", "context window", "input length", "too long", "too large", "less than")


class PunctualBackend(httpcore2.SyncBackend):
    """A network backend whose reads, of a head or of a body, come within the hurry of whoever reads."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        return _Punctual(super().connect_tcp(host, port, timeout, local_address, socket_options))


class _Punctual(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = time_left()
        if left == 0:
            raise httpcore2.ReadTimeout("the answer trickles")
        return self._stream.read(max_bytes, timeout if left is None else left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Punctual(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class Breaker:
    """A circuit breaker: after some failures in a row it lets nobody through for a while, and then one who tries.

    The others wait for what that one finds. Threads may share it.
    """

    def __init__(self, failures: int = FAILURES, rest: float = REST_S) -> None:
        self._most, self._rest = failures, rest
        self._failed = 0
        self._until = 0.0
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Return the seconds until somebody may try.

        0 means that the caller may, and that others wait for what it finds.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._until:
                return self._until - now
            if self._failed >= self._most:
                self._until = now + self._rest
            return 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failed, self._until = 0, 0.0

    def failed(self) -> None:
        with self._lock:
            self._failed += 1
            if self._failed >= self._most:
                self._until = time.monotonic() + self._rest

    def rest(self, seconds: float) -> None:
        """Leave the provider alone for as long as it has asked for."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + min(seconds, LONGEST_REST_S))


class _Again(Exception):
    """An attempt that failed in a way that may pass. `wait` is what the provider asked for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class _Late(_Again):
    """The caller's hurry was over before the provider's own time was: no fault of the provider's."""


@cache
def line_to(endpoint: ModelEndpoint) -> ProviderLine:
    """Return the one line of this process to an endpoint: all who use it share its limits and know of its failures."""
    return ProviderLine(endpoint)


@cache
def _client() -> httpx2.Client:
    """Return the one pool for all. It follows no redirect, and asks neither for a proxy nor for somebody's .netrc."""
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=20.0)
    transport = httpx2.HTTPTransport(verify=ssl.create_default_context(), trust_env=False, limits=limits)
    with suppress(AttributeError):  # its own, for it takes a backend from nobody: another version may not have it
        transport._pool._network_backend = PunctualBackend()
    client = httpx2.Client(transport=transport, trust_env=False, follow_redirects=False)
    atexit.register(client.close)
    return client


class ProviderLine:
    """A line to one endpoint. Safe to use from several threads; as many ask at once as the endpoint allows."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        self._slots = threading.BoundedSemaphore(endpoint.concurrency)
        self._health, self._haste = Breaker(), Breaker(failures=3)
        self.problem = ""
        """Why it did not answer the last time; "" where it did, or was never asked."""

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON that a POST is answered with. Raise ProviderFailed, whose sentence says what to do."""
        endpoint = self.endpoint
        seconds_left = time_left()
        patience = (endpoint.timeout + LONGEST_PAUSE_S) * endpoint.attempts if seconds_left is None else seconds_left
        deadline = time.monotonic() + patience
        self._require_well(hurried=seconds_left is not None and seconds_left < endpoint.timeout)
        if not self._slots.acquire(timeout=max(0.0, patience)):
            raise self._failed("is still busy with earlier requests. Try again, or raise the concurrency")
        try:
            answer = self._attempts(path, body, deadline)
        except ProviderFailed as failed:
            self.problem = "" if isinstance(failed, TooLong) else str(failed)
            raise
        finally:
            self._slots.release()
        self.problem = ""
        return answer

    def _attempts(self, path: str, body: Mapping[str, Any], deadline: float) -> Any:
        reason = "was given no time to answer"
        for attempt in range(self.endpoint.attempts):
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                break
            try:
                answer = self._once(path, body, seconds_left)
            except (RequestRefused, TooLong):
                self._health.succeeded()  # it answers, if only to say no
                raise
            except _Late as late:
                self._haste.failed()
                raise self._failed(f"{late}") from None
            except _Again as again:
                self._health.failed()
                reason = str(again)
                wait = max(again.wait, self._pause(attempt))
                log.debug("%s %s (attempt %d)", self._label, reason, attempt + 1)
                if again.wait > max(0.0, min(LONGEST_PAUSE_S, deadline - time.monotonic())):
                    self._health.rest(again.wait)
                    raise self._failed(f"{reason} and asks to be left alone for {again.wait:.0f} s") from None
                if attempt + 1 == self.endpoint.attempts or time.monotonic() + wait >= deadline:
                    break
                time.sleep(wait)
            else:
                self._health.succeeded()
                self._haste.succeeded()
                return answer
        raise self._failed(f"{reason}. {self._advice}")

    def _once(self, path: str, body: Mapping[str, Any], seconds_left: float) -> Any:
        endpoint = self.endpoint
        seconds = min(endpoint.timeout, seconds_left)
        try:
            status, headers, data = self._post(path, body, seconds)
        except httpx2.TimeoutException:
            late = _Late if seconds_left < endpoint.timeout else _Again
            raise late(f"did not answer within {seconds:.1f} s") from None
        except httpx2.ConnectError:
            raise _Again("cannot be reached") from None
        except httpx2.HTTPError:
            raise _Again("broke the connection off") from None
        if status != 200 and self._is_too_long(status, data):
            raise TooLong(f"{self._label} finds a text too long for {endpoint.model}{self._said(data)}.")
        if status in _PASSING:
            raise _Again(f"answered with {status}", _retry_after(headers))
        if status != 200:
            raise self._refused(status, data)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise _Again("sent an answer that cannot be read") from None

    def _post(self, path: str, body: Mapping[str, Any], seconds: float) -> tuple[int, httpx2.Headers, bytes]:
        """Return status, headers and body, whole and in time: a server that only trickles is late, too."""
        endpoint = self.endpoint
        pieces, size = list[bytes](), 0
        query = {"api-version": endpoint.version} if endpoint.version else None
        exchange = _client().stream(
            "POST", f"{endpoint.url}{path}", json=body, params=query, headers=self._headers(), timeout=seconds
        )
        with hurried(seconds), exchange as reply:
            for piece in reply.iter_bytes():
                size += len(piece)
                if size > MOST_BYTES:
                    raise self._failed(f"sent more than {MOST_BYTES >> 20} MiB. Ask for less at once")
                pieces.append(piece)
        return reply.status_code, reply.headers, b"".join(pieces)

    def _headers(self) -> dict[str, str]:
        endpoint = self.endpoint
        headers = {"accept": "application/json"}
        if endpoint.provider == "anthropic":
            headers["anthropic-version"] = "2023-06-01"
        if endpoint.organization:
            headers["openai-organization"] = endpoint.organization
        if endpoint.key:
            name = {"azure": "api-key", "anthropic": "x-api-key"}.get(endpoint.provider, "authorization")
            headers[name] = f"Bearer {endpoint.key}" if name == "authorization" else endpoint.key
        return headers

    # sentences

    @property
    def _label(self) -> str:
        return f"{self.endpoint.provider} at {self.endpoint.host}"

    @property
    def _advice(self) -> str:
        return f"Start it, or set {self.endpoint.setting} to where it is"

    def _failed(self, what: str) -> ProviderFailed:
        return ProviderFailed(f"{self._label} {what}.")

    def _require_well(self, *, hurried: bool) -> None:
        wait = (self._haste.wait() if hurried else 0.0) or self._health.wait()
        if wait:
            raise self._failed(f"failed several times and is left alone for another {wait:.0f} s. {self._advice}")

    def _refused(self, status: int, data: bytes) -> RequestRefused:
        return RequestRefused(f"{self._label} {self._why_refused(status, data)}.", status)

    def _why_refused(self, status: int, data: bytes) -> str:
        endpoint, detail = self.endpoint, self._said(data)
        if status in (401, 403):
            variable = PROVIDERS[endpoint.provider].key_variable
            advice = f"Set {variable}, or put" if variable else "Put"
            return f'refuses the key ({status}). {advice} "{endpoint.host}" = "the key" into the file of keys'
        if 300 <= status < 400:
            return f"redirects ({status}), which is not followed. Set {endpoint.setting} to where it leads"
        if status == 404:
            hint = f"Run `ollama pull {endpoint.model}`" if endpoint.provider == "ollama" else "Check its name"
            return f"does not have the model {endpoint.model}{detail}. {hint}, and {endpoint.setting}"
        return f"did not accept the request for {endpoint.model} ({status}){detail}"

    def _is_too_long(self, status: int, data: bytes) -> bool:
        """Return whether a refusal is about the length of a text. llama.cpp makes an error of its own (500) of that."""
        detail = self._said(data).lower()
        return status in (400, 413, 422, 500) and any(word in detail for word in _TOO_LONG)

    def _said(self, data: bytes) -> str:
        """Return what the provider says of an error, in brackets, without the key should it repeat that."""
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        error = body.get("error", body.get("message", body.get("detail"))) if isinstance(body, dict) else None
        text = error.get("message") if isinstance(error, dict) else error
        if not isinstance(text, str) or not text.strip():
            return ""
        words = " ".join(text.split())
        if self.endpoint.key:
            words = words.replace(self.endpoint.key, "…")
        return f" ({printable(words[:SHOWN]).rstrip('. ')})"

    def _pause(self, attempt: int) -> float:
        """Return seconds: longer each time, and never the same for two who wait: 50 to 100 % of base · 2^attempt."""
        spread = random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
        return min(LONGEST_PAUSE_S, spread * self.endpoint.pause * float(2**attempt))


def _retry_after(headers: httpx2.Headers) -> float:
    """Return the seconds that a Retry-After asks for, written as a number or as a date; 0 where there is none."""
    value = headers.get("retry-after", "").strip()
    try:
        return min(max(0.0, float(value)), 86_400.0)
    except ValueError:
        pass
    try:
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - time.time()), 86_400.0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
