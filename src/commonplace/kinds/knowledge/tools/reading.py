"""Shared by the get tools of all sources: from arguments to a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.kinds.knowledge import Knowledge
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
"""The mode of each source's own get tool for a call without a retrieval object."""


def read_one(call: Call, source: str, id: str | int, args: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """Return an item of a source, read as the arguments say."""
    return read(turn(call, args, args.get("retrieval") or {}), source, id, args, otherwise)


def read(call_turn: Turn, source: str, id: str | int, args: Mapping[str, JSON], otherwise: Mode) -> dict[str, JSON]:
    """Return an item of a source for a call whose knobs are chosen already."""
    call, retrieval = call_turn.call, args.get("retrieval")
    reading = wished(call_turn, retrieval, otherwise)
    knowledge = call.space.part(Knowledge)
    item, message = knowledge.item(source, id)
    if message is not None and reading.wish.loc is None:
        reading = Wished(replace(reading.wish, loc={"message_id": message}), reading.clamped)
    if source != "chats":
        return get_response(call_turn, item, knowledge.reading.read(item, reading.wish), reading)
    if reading.wish.mode == "full":
        size, moved = PAGE_SIZE.read(args.get("page_size", PAGE_SIZE.default))
        reading = Wished(reading.wish, [*reading.clamped, *(["page_size"] if moved else [])])
        return get_response(call_turn, item, knowledge.reading.read_page(item, args.get("page", 1), size), reading)
    return get_response(call_turn, item, knowledge.reading.read(item, reading.wish), reading, paging_ignored(args))


def read_rendered(call_turn: Turn, item: Item, asked: Wished, warnings: Sequence[Warning] = ()) -> dict[str, JSON]:
    """Return all of an item as text, whatever its source: the compact shape has room for nothing else."""
    passage = read_full(rendered(call_turn.call.space.store, item), asked.wish)
    shown = Read(passage.content, "start", None, passage.truncated, passage.next_offset)
    return get_response(call_turn, item, shown, asked, warnings)


def paging_ignored(args: Mapping[str, JSON]) -> list[Warning]:
    """Return a warning where page arguments have no effect."""
    ignored = [name for name in ("page", "page_size") if name in args]
    if not ignored:
        return []
    return [warning("ignored", f"{' and '.join(ignored)} count in mode full of the full shape only.", "chats")]


def get_tool(name: str, title: str, description: str, handler: Handler, id: tuple[str, Schema], **more: Schema) -> Tool:
    """Return a get tool with the arguments that all have."""
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
