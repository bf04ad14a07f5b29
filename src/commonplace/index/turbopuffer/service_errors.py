"""The errors of turbopuffer as errors of ours. No error of its SDK leaves the wire, no key is in a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.index.turbopuffer.service_settings import BASE_URL, KEY, REGION, TurbopufferService
from commonplace.settings import BadSetting

_LONGEST_SENTENCE = 300


class RequestRejected(Unavailable):
    """The service rejected a request that it could read."""

    code = "index_rejected"


class RequestTooLarge(RequestRejected):
    """The request has more bytes than the service accepts."""


class NotAllowed(Unavailable):
    """The key has no permission for a request."""

    code = "index_auth"


class NotReady(Exception):
    """The service accepted a request and has no answer yet. Never reaches a caller."""


class NamespaceMissing(NotReady):
    """A namespace does not exist. Never reaches a caller."""


def translated(error: Any, sdk: Any, service: TurbopufferService) -> CommonplaceError | NamespaceMissing:
    """Return our error for one that the SDK raised."""
    host, status = service.host, getattr(error, "status_code", None)
    if status == 404 and _message(error) is not None:
        return NamespaceMissing(_sentence(error, service))
    if status in (401, 403):
        return NotAllowed(f"{host} refused the key. Set {KEY} to one that may read and write this index.")
    if status == 402:
        return Unavailable(
            f"{host} asks for a payment first (402). See to the organisation's plan: what is pending is sent then.",
            code="index_unavailable",
        )
    if status in (409, 429):
        seconds = _wait_of(error.response.headers)
        state = "is too busy for now" if status == 429 else "is still working on this index (409)"
        return Unavailable(f"{host} {state}. Try again in {seconds:g} s.", code="index_busy", retry_after=seconds)
    if status == 413:
        return RequestTooLarge(f"{host} takes no request as large as this one (413).")
    if status == 404:
        return Unavailable(
            f"{host} answered 404 to what every turbopuffer has. Check {REGION} or {BASE_URL}.",
            code="index_unreachable",
        )
    if isinstance(error, sdk.APIConnectionError):
        return Unavailable(
            f"{host} cannot be reached. Check the network and where the index is said to be.", code="index_unreachable"
        )
    if status == 408 or isinstance(error, sdk.InternalServerError):
        return Unavailable(f"{host} has a fault of its own ({status}). Try again later.", code="index_unavailable")
    if isinstance(error, sdk.APIStatusError) and 400 <= error.status_code < 500:
        return RequestRejected(f"{host} rejected the request: {_sentence(error, service)}")
    if isinstance(error, sdk.APIError):
        return unreadable(service)
    reason = _shown(str(error), service)
    return BadSetting(f"turbopuffer's SDK cannot be set up. Check {KEY}, {REGION} and {BASE_URL}: {reason}")


def unreadable(service: TurbopufferService) -> Unavailable:
    """Return the error for an answer that turbopuffer does not give."""
    return Unavailable(
        f"{service.host} answered with something that cannot be read. Check {REGION} or {BASE_URL}.",
        code="index_unavailable",
    )


def plain(error: Exception) -> Exception:
    """Return the cause of an error without its request, which carries the key."""
    return RuntimeError(f"{type(error).__name__}: status {getattr(error, 'status_code', 'none')}")


def _message(error: Any) -> str | None:
    """Return the service's own message; None if something else answered."""
    body = getattr(error, "body", None)
    return str(body["error"]) if isinstance(body, dict) and "error" in body else None


def _sentence(error: Any, service: TurbopufferService) -> str:
    return _shown(_message(error) or f"status {error.status_code}", service)


def _shown(text: str, service: TurbopufferService) -> str:
    """Return a text on one line, shortened, without the key and a password in the address."""
    login = service.base_url.rpartition("@")[0]
    line = " ".join(text.split()).replace(service.key, "…")
    return (line.replace(login, "…") if login else line)[:_LONGEST_SENTENCE]


def _wait_of(headers: Mapping[str, str]) -> float:
    """Return the seconds to wait that the headers name; 1 if they name none."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return 1.0
