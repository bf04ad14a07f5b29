"""The prompts of the library as MCP prompts: their placeholders are the arguments."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.prompts import filled, variables
from commonplace.model import JSON, Filter, Item, fingerprint
from commonplace.store.filters import fold_value
from commonplace.tools.profile import Prompts
from commonplace.tools.tool import Call

if TYPE_CHECKING:
    from commonplace.library import Library

PAGE = 50


def page(call: Call, cursor: str | None) -> tuple[Sequence[Mapping[str, JSON]], str | None]:
    """The prompts by name, from just after the one a cursor stands for."""
    store = call.library.store
    found = store.titles("prompt", _read(cursor) if cursor else "", PAGE + 1)
    items = store.items([item for item, _ in found[:PAGE]])
    following = _written(fold_value(found[PAGE - 1][1])) if len(found) > PAGE else None
    return [_entry(item) for item in items], following


def state(library: Library) -> bytes:
    """What is different once the list is: every prompt and its version."""
    seen, after = b"", 0
    while items := library.store.scan(Filter(kinds=("prompt",)), after=after):
        after = items[-1].id
        seen = fingerprint(seen, *(f"{item.id}:{item.version}" for item in items))
    return seen


def get(call: Call, name: str, given: Mapping[str, str]) -> Mapping[str, JSON]:
    item, _ = call.library.knowledge.item("prompts", name)
    wanted = variables(item)
    unknown = [argument for argument in given if argument not in wanted]
    if unknown:
        takes = f"It takes: {', '.join(wanted)}." if wanted else "It takes none."
        raise InvalidInput(f'The prompt "{item.title}" has no argument "{unknown[0]}". {takes}', argument=unknown[0])
    missing = [argument for argument in wanted if argument not in given]
    if missing:
        raise InvalidInput(f'The prompt "{item.title}" needs "{missing[0]}".', argument=missing[0])
    parts = [item.fields.get("system_prompt", ""), item.fields.get("user_prompt", "")]
    texts = [filled(part, given) for part in parts if part] or [item.fields.get("details", "") or item.title]
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
