"""Arguments that no reader could keep as they were sent, found in a message's own text before the SDK has read it.

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
"""A string without an end is one to the end: looked for again from each of its quotes, it would take hours."""


def told(message: str, *, exact: bool = True) -> str:
    """A message as it is, unless it calls a tool with such arguments. `exact`: whether numbers and keys matter."""
    if has_half(message):
        from commonplace.kinds.tables.values import half

        flaw = half(message, "The message", within=ARGUMENTS)
        return _telling(message, flaw if exact else InvalidInput(str(flaw)))  # other errors have members of their own
    return _told_exactly(message) if exact else message


def has_half(message: str) -> bool:
    """Whether it holds half of a surrogate pair, written out or as it is."""
    return bool(_SURROGATE.search(message)) and not _is_text(message)


def _is_text(message: str) -> bool:
    """Whether all that it says can be written; what is no JSON is the SDK's to refuse."""
    try:
        json.dumps(json.loads(message), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    except (ValueError, RecursionError):
        pass
    return True


def _told_exactly(message: str) -> str:
    from commonplace.kinds.tables.values import parsed  # servers of other profiles never need it

    if "call" not in message:
        return message
    try:
        parsed(message, "The message", within=ARGUMENTS)
    except InvalidInput as error:
        return _telling(message, error)
    except ValueError:  # it is no JSON: the SDK says so
        return message
    return message


def told_body(body: bytes) -> bytes:
    """The same of a request's body."""
    try:
        message = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    found = told(message)
    return body if found is message else found.encode("utf-8", "surrogatepass")


def _telling(message: str, error: InvalidInput) -> str:
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
    """A message with nothing in the container at a place, which may be what nobody can read."""
    keys: list[str] = [""]  # of the containers that a part is in, the last string of each
    start = 0
    for found in _PART.finditer(message):
        part = found.group()
        if part in "[{":
            keys.append("")
            if len(keys) == len(place) + 2 and keys[1:-1] == [*place]:
                start = found.start()
        elif part in "]}":
            keys.pop()
            if start and len(keys) == len(place) + 1:
                return f"{message[:start]}{{}}{message[found.end() :]}"
        else:
            keys[-1] = found.group(1)
    return message


def unread(message: str) -> dict[str, Any] | None:
    """What a message is beside its params, where it is JSON and yet no reader takes it; None where it is not JSON."""
    try:
        with suppress(RecursionError):
            json.loads(message, parse_int=len)  # a number may be as long as it likes
        read = json.loads(_without(message, ARGUMENTS[:1]))
    except (ValueError, RecursionError, IndexError):
        return None
    return read if isinstance(read, dict) else None


def flaw_of(meta: Any) -> Failure | None:
    """What is wrong with the arguments of a call, as its `_meta` says."""
    found = (meta or {}).get(FLAW_META)
    if not isinstance(found, dict):
        return None
    details = found.get("details")
    told_more = details if isinstance(details, dict) else {}
    return Failure(InvalidInput.code, str(found.get("message")), InvalidInput.status, told_more)
