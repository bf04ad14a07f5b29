"""What can go wrong with turbopuffer, in our words. No error of its SDK leaves the wire, no key is in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.errors import CommonplaceError, Unavailable
from commonplace.index.turbopuffer.settings import BASE_URL, KEY, REGION, Service
from commonplace.settings import BadSetting

_LONGEST_SENTENCE = 300


class Refused(Unavailable):
    """The service read the request and would not do it."""

    code = "index_rejected"


class TooLarge(Refused):
    """The request has more bytes than the service takes."""


class NotAllowed(Unavailable):
    """The key may not do this."""

    code = "index_auth"


class NotReady(Exception):
    """The service took the request and has no answer yet. Never reaches a caller."""


class Missing(NotReady):
    """There is no such namespace. Never reaches a caller."""


def translated(error: Any, sdk: Any, service: Service) -> CommonplaceError | Missing:
    """Return our error for one that the SDK raised."""
    host, status = service.host, getattr(error, "status_code", None)
    if status == 404 and _said(error) is not None:
        return Missing(_sentence(error, service))
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
        return TooLarge(f"{host} takes no request as large as this one (413).")
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
        return Refused(f"{host} rejected the request: {_sentence(error, service)}")
    if isinstance(error, sdk.APIError):
        return unreadable(service)
    told = _shown(str(error), service)
    return BadSetting(f"turbopuffer's SDK cannot be set up. Check {KEY}, {REGION} and {BASE_URL}: {told}")


def unreadable(service: Service) -> Unavailable:
    """Return the error for an answer that is none of turbopuffer's."""
    return Unavailable(
        f"{service.host} answered with something that cannot be read. Check {REGION} or {BASE_URL}.",
        code="index_unavailable",
    )


def plain(error: Exception) -> Exception:
    """Return the cause without the request it belongs to, which carries the key."""
    return RuntimeError(f"{type(error).__name__}: status {getattr(error, 'status_code', 'none')}")


def _said(error: Any) -> str | None:
    """Return the service's own sentence; None where something else has answered."""
    body = getattr(error, "body", None)
    return str(body["error"]) if isinstance(body, dict) and "error" in body else None


def _sentence(error: Any, service: Service) -> str:
    return _shown(_said(error) or f"status {error.status_code}", service)


def _shown(text: str, service: Service) -> str:
    address = service.base_url.rpartition("@")[0]
    told = " ".join(text.split()).replace(service.key, "…")
    return (told.replace(address, "…") if address else told)[:_LONGEST_SENTENCE]


def _wait_of(headers: Mapping[str, str]) -> float:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return 1.0
