"""What the get tools of all sources share: from arguments to a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.kinds.knowledge.reading import Read, rendered
from commonplace.kinds.knowledge.retrieval import Mode, read_full
from commonplace.kinds.knowledge.tools.finding import READS
from commonplace.kinds.knowledge.tools.options import (
    PAGE_SIZE,
    RETRIEVAL,
    SESSION,
    Turn,
    Wished,
    check,
    turn,
    wished,
)
from commonplace.kinds.knowledge.tools.results import GET_RESPONSE, Warning, get_response, warning
from commonplace.model import JSON, Item
from commonplace.tools.schema import Schema, obj
from commonplace.tools.tool import READ_ONLY, Call, Handler, Tool

OTHERWISE: Mapping[str, Mode] = {
    "notes": "snippet",
    "media": "snippet",
    "chats": "full",
    "characters": "full",
    "prompts": "full",
}
"""How each source's own tool reads where nothing is said of it."""


def read_one(call: Call, source: str, id: str | int, given: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """An item of a source, read as the arguments say."""
    return read(turn(call, given, given.get("retrieval") or {}), source, id, given, otherwise)


def read(turned: Turn, source: str, id: str | int, given: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """The same for a call whose knobs are chosen."""
    call, retrieval = turned.call, given.get("retrieval")
    asked = wished(turned, retrieval, otherwise)
    knowledge = call.library.knowledge
    item, message = knowledge.item(source, id)
    if message is not None and asked.wish.loc is None:
        asked = Wished(replace(asked.wish, loc={"message_id": message}), asked.clamped)
    if source != "chats":
        return get_response(turned, item, knowledge.reading.read(item, asked.wish), asked)
    if asked.wish.mode == "full":
        size, moved = PAGE_SIZE.read(given.get("page_size", PAGE_SIZE.default))
        asked = Wished(asked.wish, [*asked.clamped, *(["page_size"] if moved else [])])
        return get_response(turned, item, knowledge.reading.read_page(item, given.get("page", 1), size), asked)
    return get_response(turned, item, knowledge.reading.read(item, asked.wish), asked, paging_ignored(given))


def read_rendered(turned: Turn, item: Item, asked: Wished, warnings: Sequence[Warning] = ()) -> dict[str, JSON]:
    """All of an item as text, whatever its source: what the compact shape has room for."""
    passage = read_full(rendered(turned.call.library.store, item), asked.wish)
    shown = Read(passage.content, "start", None, passage.truncated, passage.next_offset)
    return get_response(turned, item, shown, asked, warnings)


def paging_ignored(given: Mapping[str, JSON]) -> list[Warning]:
    ignored = [name for name in ("page", "page_size") if name in given]
    if not ignored:
        return []
    return [warning("ignored", f"{' and '.join(ignored)} count in mode full of the full shape only.", "chats")]


def get_tool(name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema], **more: Schema) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        input=obj(required=(id[0],), **{id[0]: id[1], **more, "retrieval": RETRIEVAL, "session": SESSION}),
        output=GET_RESPONSE,
        annotations=READ_ONLY,
        handler=handler,
        check=check,
        meta=READS,
    )
