"""Flaws in arguments: what no JSON reader could keep as sent, found in a message's text before the SDK reads it.

The SDK drops all but the last of two members with one key, and refuses a message for a number that it cannot hold, or
for half of a surrogate pair, without saying which, if it says anything. A message like that is passed on without its
arguments and says in its `_meta` what is wrong, so that its call is answered like any other that is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from commonplace.errors import InvalidInput
from commonplace.server.calls import Failure

FLAW_META = "commonplace/flaw"
ARGUMENTS = ("params", "arguments")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_PART = re.compile(r'[\[\]{}]|"((?:[^"\\]+|\\.)*+)"?')
"""A string without an end counts to the end: searching again from each of its quotes could take hours."""


def mark_flaw(message: str, *, exact: bool = True) -> str:
    """Return a message; arguments with a flaw are replaced by its description in `_meta`.

    `exact` checks numbers and keys too, beside halves of surrogate pairs.
    """
    if has_lone_surrogate(message):
        from commonplace.kinds.tables.values import half

        flaw = half(message, "The message", within=ARGUMENTS)
        return _replace_arguments(message, flaw if exact else InvalidInput(str(flaw)))  # no details
    return _mark_inexact(message) if exact else message


def has_lone_surrogate(message: str) -> bool:
    """Return whether a message has half of a surrogate pair, escaped or as it is."""
    return bool(_SURROGATE.search(message)) and not _is_text(message)


def _is_text(message: str) -> bool:
    """Return whether all strings of a message can be encoded. True for what is not JSON: the SDK refuses it."""
    try:
        json.dumps(json.loads(message), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    except (ValueError, RecursionError):
        pass
    return True


def _mark_inexact(message: str) -> str:
    from commonplace.kinds.tables.values import parsed  # servers of other profiles never need it

    if "call" not in message:
        return message
    try:
        parsed(message, "The message", within=ARGUMENTS)
    except InvalidInput as error:
        return _replace_arguments(message, error)
    except ValueError:  # it is no JSON: the SDK says so
        return message
    return message


def mark_flaw_in_body(body: bytes) -> bytes:
    """Return a request's body with its flaw marked as `mark_flaw` does."""
    try:
        message = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    marked = mark_flaw(message)
    return body if marked is message else marked.encode("utf-8", "surrogatepass")


def _replace_arguments(message: str, error: InvalidInput) -> str:
    try:
        read: Any = json.loads(_without(message, ARGUMENTS))
        if read["method"] != "tools/call":
            return message
        params = read["params"]
        params["arguments"] = {}
        params["_meta"] = {**(params.get("_meta") or {}), FLAW_META: {"message": str(error), "details": error.details}}
    except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
        return message  # it is no call, or something else is wrong with it too
    return f"{json.dumps(read)}\n"


def _without(message: str, place: Sequence[str]) -> str:
    """Return a message with an empty container at a place, whose content may be unreadable."""
    keys: list[str] = [""]  # of the containers that a part is in, the last string of each
    start = 0
    for match in _PART.finditer(message):
        part = match.group()
        if part in "[{":
            keys.append("")
            if len(keys) == len(place) + 2 and keys[1:-1] == [*place]:
                start = match.start()
        elif part in "]}":
            keys.pop()
            if start and len(keys) == len(place) + 1:
                return f"{message[:start]}{{}}{message[match.end() :]}"
        else:
            keys[-1] = match.group(1)
    return message


def envelope_of(message: str) -> dict[str, Any] | None:
    """Return a message without its params, where it is JSON that no reader accepts; None where it is not JSON."""
    try:
        with suppress(RecursionError):
            json.loads(message, parse_int=len)  # a number may be as long as it likes
        read = json.loads(_without(message, ARGUMENTS[:1]))
    except (ValueError, RecursionError, IndexError):
        return None
    return read if isinstance(read, dict) else None


def flaw_of(meta: Any) -> Failure | None:
    """Return the failure that the `_meta` of a call carries as its flaw, or None."""
    flaw = (meta or {}).get(FLAW_META)
    if not isinstance(flaw, dict):
        return None
    details = flaw.get("details")
    return Failure(
        InvalidInput.code, str(flaw.get("message")), InvalidInput.status, details if isinstance(details, dict) else {}
    )
