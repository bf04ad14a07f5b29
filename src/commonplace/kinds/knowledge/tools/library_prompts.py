"""The prompts of the library as MCP prompts, with their placeholders as arguments."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge import Knowledge
from commonplace.kinds.knowledge.prompts import filled, variables
from commonplace.model import JSON, Filter, Item, fingerprint
from commonplace.store.filters import fold_value
from commonplace.tools.profile import Prompts
from commonplace.tools.tool import Call

if TYPE_CHECKING:
    from commonplace.space import Space

PAGE = 50


def page(call: Call, cursor: str | None) -> tuple[Sequence[Mapping[str, JSON]], str | None]:
    """Return the prompts by name, from after a cursor, and the next cursor. Raise InvalidInput for a wrong cursor."""
    store = call.space.store
    titles = store.titles("prompt", _read(cursor) if cursor else "", PAGE + 1)
    items = store.items([item for item, _ in titles[:PAGE]])
    next_cursor = _written(fold_value(titles[PAGE - 1][1])) if len(titles) > PAGE else None
    return [_entry(item) for item in items], next_cursor


def state(space: Space) -> bytes:
    """Return a value that differs once the list of prompts does: a digest of every prompt and its version."""
    digest, after = b"", 0
    while items := space.store.scan(Filter(kinds=("prompt",)), after=after):
        after = items[-1].id
        digest = fingerprint(digest, *(f"{item.id}:{item.version}" for item in items))
    return digest


def get(call: Call, name: str, args: Mapping[str, str]) -> Mapping[str, JSON]:
    """Return the messages of a prompt, filled in. Raise InvalidInput for an unknown or missing argument."""
    item, _ = call.space.part(Knowledge).item("prompts", name)
    names = variables(item)
    unknown = [argument for argument in args if argument not in names]
    if unknown:
        takes = f"It takes: {', '.join(names)}." if names else "It takes none."
        raise InvalidInput(f'The prompt "{item.title}" has no argument "{unknown[0]}". {takes}', argument=unknown[0])
    missing = [argument for argument in names if argument not in args]
    if missing:
        raise InvalidInput(f'The prompt "{item.title}" needs "{missing[0]}".', argument=missing[0])
    parts = [item.fields.get("system_prompt", ""), item.fields.get("user_prompt", "")]
    texts = [filled(part, args) for part in parts if part] or [item.fields.get("details", "") or item.title]
    messages = [{"role": "user", "content": {"type": "text", "text": text}} for text in texts]
    return {"description": item.fields.get("details", ""), "messages": messages}


def _entry(item: Item) -> dict[str, JSON]:
    arguments = [{"name": name, "required": True} for name in variables(item)]
    shown: dict[str, JSON] = {"name": item.title, "description": item.fields.get("details", "")}
    return {**shown, "arguments": arguments} if arguments else shown


def _written(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidInput(
            "That cursor is not of this list. List the prompts without one.", argument="cursor"
        ) from None


PROMPTS = Prompts(page, get)
