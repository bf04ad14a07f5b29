"""Read items: find the anchor, cut the passage, and add what belongs to the kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from commonplace.errors import InvalidInput
from commonplace.index.followers import WordIndex
from commonplace.kinds.knowledge.cards_and_prompts import character_content, prompt_content
from commonplace.kinds.knowledge.drawer import Place, Records
from commonplace.kinds.knowledge.item_scores import ask
from commonplace.kinds.knowledge.item_snippets import Snippets, chunk_at, field_range, loc_at, message_loc, title_loc
from commonplace.kinds.knowledge.kinds import uri_for
from commonplace.kinds.knowledge.retrieval import (
    Anchor,
    AnchorBy,
    MessageLine,
    ReadPassage,
    Wish,
    cut,
    out_of_range,
    read_body,
    read_lines,
    read_snippet,
)
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.messages import Messages
from commonplace.text.snippet import Match

_MINE = {
    "note": ("approx_offset", "chunk_index"),
    "document": ("approx_offset", "chunk_index"),
    "media": ("media_id", "chunk_index", "chunk_uuid", "approx_offset", "start_ms", "end_ms", "page"),
    "conversation": ("conversation_id", "message_id", "message_index"),
    "character": ("approx_offset", "field"),
    "prompt": ("approx_offset", "field"),
}
"""The members that a loc of each kind may have."""


@dataclass(frozen=True, slots=True)
class Read:
    """The content read of an item, and where it was read."""

    content: str | dict[str, JSON]
    anchor_by: AnchorBy
    loc: Mapping[str, JSON] | None
    truncated: bool = False
    next_offset: int | None = None
    attachments: Sequence[Mapping[str, JSON]] | None = None

    @property
    def length(self) -> int:
        """Return the characters that tokens are counted of."""
        if isinstance(self.content, str):
            return len(self.content)
        return len(json.dumps(self.content, ensure_ascii=False, separators=(",", ":")))


class ItemReader:
    """A reader of one library's items."""

    def __init__(self, store: Store, lexical: WordIndex) -> None:
        self._store, self._lexical = store, lexical

    def read(self, item: Item, wish: Wish) -> Read:
        """Read an item that was fetched with its body.

        Conversations use `read_page` instead of mode `full`. Raise InvalidInput for a loc that is not the item's.
        """
        _check_loc(item, wish.loc or {})
        if item.kind == "conversation":
            return self._conversation(item, wish)
        return self._body(item, wish)

    def read_page(self, item: Item, page: int, size: int) -> Read:
        """Return one page of a conversation's messages, from 1."""
        ids = self._store.drawer(Messages).of(item.key)
        total = len(ids)
        messages = self._store.drawer(Items).get(ids[(page - 1) * size : page * size], body=True)
        pages = -(-total // size)
        content = {"title": item.title, "page": page, "page_size": size, "pages": pages, "total_messages": total}
        attachments = [{**_message_record(message), "content": message.body} for message in messages]
        return Read(content, "start", title_loc(item), page < pages, attachments=attachments)

    # bodies

    def _body(self, item: Item, wish: Wish) -> Read:
        body = item.body or ""
        stored = self._store.drawer(Records).places([item.id]).get(item.id) or [Place(0, len(body), {})]
        chunks = cut(body, wish.chunk_chars, wish.overlap_chars) if wish.chunk_chars else stored
        anchor, matches = self._anchor(item, wish, stored, chunks or stored)
        attachments = self._attachments(item)
        at = (
            anchor.at if anchor.at is not None else chunks[anchor.index].start if chunks and anchor.by != "start" else 0
        )
        loc = self._loc(item, stored, at, anchor.index if chunks is stored else None)
        if wish.mode == "full" and item.kind in ("character", "prompt"):
            content = character_content(item) if item.kind == "character" else prompt_content(item)
            return Read(content, anchor.by, loc, attachments=attachments)
        passage = read_body(body, chunks, anchor, wish, matches)
        return Read(passage.content, anchor.by, loc, passage.truncated, passage.next_offset, attachments)

    def _anchor(
        self, item: Item, wish: Wish, stored: Sequence[Place], chunks: Sequence[Place]
    ) -> tuple[Anchor, Sequence[Match]]:
        """Return where to read, by the loc, else by a query, else at the start; and the query's matches."""
        place = self._place_of(item, wish.loc or {}, stored)
        if place is not None:
            index, at = place
            if chunks is not stored:
                index = chunk_at(chunks, at if at is not None else stored[index].start)
            return Anchor(index, at, "loc"), ()
        body = item.body or ""
        for by, query in _queries(wish):
            snippets = self._snippets(query)
            if wish.mode in ("chunk", "chunk_with_siblings"):
                anchor = _best_chunk(body, chunks, snippets, by, wish)
                if anchor is not None:
                    return anchor, ()
            elif matches := snippets.matches(body):
                window = snippets.window(body, wish.snippet_length)
                at = window.at if window.at >= 0 else matches[0][0]
                return Anchor(chunk_at(chunks, at), at, by), matches
        return Anchor(0, None, "start"), ()

    def _snippets(self, query: str) -> Snippets:
        return self._lexical.ask(lambda reader: Snippets(ask(query, reader)))

    def _place_of(self, item: Item, loc: Mapping[str, JSON], stored: Sequence[Place]) -> tuple[int, int | None] | None:
        """Return the chunk a loc names and the character in it; None where it names neither. Raise InvalidInput."""
        at = loc.get("approx_offset")
        if loc.get("field") is not None:
            names = [str(place.anchor.get("field")) for place in stored]
            if loc["field"] not in names:
                shown = ", ".join(dict.fromkeys(names))
                raise InvalidInput(
                    f'retrieval.loc.field "{loc["field"]}" is not there. The fields are {shown}.',
                    argument="retrieval.loc.field",
                )
            low, high = field_range(stored, str(loc["field"]))
            at = at if at is not None and low <= at < high else low
        if loc.get("chunk_index") is not None:
            index = int(loc["chunk_index"])
            if index >= len(stored):
                raise out_of_range("chunk_index", index, len(stored))
        elif loc.get("chunk_uuid") is not None:
            uuids = [place.anchor.get("uuid") for place in stored]
            if loc["chunk_uuid"] not in uuids:
                raise InvalidInput(
                    f'retrieval.loc.chunk_uuid "{loc["chunk_uuid"]}" is none of this item\'s {len(stored)} chunks.',
                    argument="retrieval.loc.chunk_uuid",
                )
            index = uuids.index(loc["chunk_uuid"])
        elif at is not None:
            index = chunk_at(stored, at)
        elif loc.get("start_ms") is not None:
            cues = self._store.drawer(Records).cues(item.id)
            cue = next((cue for cue in cues if cue.end_ms > loc["start_ms"]), cues[-1] if cues else None)
            if cue is None:
                return None
            return chunk_at(stored, cue.char_start), cue.char_start
        else:
            return None
        inside = at is not None and stored[index].start <= at < stored[index].end
        return index, int(at) if inside and at is not None else None

    def _loc(self, item: Item, stored: Sequence[Place], at: int, index: int | None) -> dict[str, JSON]:
        if item.kind in ("character", "prompt"):
            index = chunk_at(stored, at) if index is None else index
            return {"approx_offset": at, "field": stored[index].anchor.get("field")}
        cues = self._store.drawer(Records).cues(item.id) if item.fields.get("cues") else []
        return loc_at(item, stored, at, cues, index)

    def _attachments(self, item: Item) -> list[Mapping[str, JSON]] | None:
        if item.kind == "media" and item.fields.get("cues"):
            duration = item.fields.get("duration_ms")
            return [{"type": "transcript", "cues": item.fields["cues"], "duration_ms": duration}]
        avatar = item.fields.get("avatar") if item.kind == "character" else None
        if not avatar:
            return None
        place = f"{uri_for('characters', item.key)}/avatar"
        return [{"type": "image", "mime_type": avatar["mime_type"], "bytes": avatar["bytes"], "uri": place}]

    # conversations

    def _conversation(self, item: Item, wish: Wish) -> Read:
        ids = self._store.drawer(Messages).of(item.key)

        @cache
        def message(index: int) -> Item:
            return self._store.drawer(Items).get([ids[index]], body=True)[0]

        if not ids:
            return Read("", "start", title_loc(item), attachments=[])
        anchor, matches = self._message_anchor(ids, wish)
        passage = self._said(ids, message, anchor, matches, wish)
        attachments = [_message_record(message(index)) for index in passage.chunks]
        loc = message_loc(message(anchor.index))
        return Read(passage.content, anchor.by, loc, passage.truncated, attachments=attachments)

    def _said(
        self, ids: Sequence[int], message: Callable[[int], Item], anchor: Anchor, matches: Sequence[Match], wish: Wish
    ) -> ReadPassage:
        if wish.mode == "snippet":
            body = message(anchor.index).body or ""
            passage = read_snippet(body, Anchor(0, anchor.at or 0, anchor.by), (), matches, wish.snippet_length)
            return ReadPassage(passage.content, passage.truncated, chunks=range(anchor.index, anchor.index + 1))

        def line(index: int) -> MessageLine:
            said = message(index)
            return MessageLine(said.fields.get("sender", ""), said.body or "")

        return read_lines(len(ids), line, anchor, wish)

    def _message_anchor(self, ids: Sequence[int], wish: Wish) -> tuple[Anchor, Sequence[Match]]:
        """Return the message to read and, where a query chose it, its matches. Raise InvalidInput."""
        loc = wish.loc or {}
        if loc.get("message_id") is not None:
            keys = [item.key for item in self._store.drawer(Items).get(ids)]
            if str(loc["message_id"]) not in keys:
                raise InvalidInput(
                    f'There is no message "{loc["message_id"]}" in this conversation. '
                    f"message_index may be 0 to {len(ids) - 1} instead.",
                    argument="retrieval.loc.message_id",
                )
            return Anchor(keys.index(str(loc["message_id"])), None, "loc"), ()
        if loc.get("message_index") is not None:
            if int(loc["message_index"]) >= len(ids):
                raise out_of_range("message_index", loc["message_index"], len(ids))
            return Anchor(int(loc["message_index"]), None, "loc"), ()
        queries = _queries(wish)
        bodies = [item.body or "" for item in self._store.drawer(Items).get(ids, body=True)] if queries else []
        for by, query in queries:
            snippets = self._snippets(query)
            best = snippets.best(bodies)
            if best is not None:
                at, until = snippets.stretch(bodies[best], wish.budget.chars)
                return Anchor(best, at, by, until), snippets.matches(bodies[best])
        return Anchor(0, None, "start"), ()


def _queries(wish: Wish) -> list[tuple[AnchorBy, str]]:
    """Return the queries that may choose where to read: the call's own, then the session's, newest first."""
    queries: list[tuple[AnchorBy, str]] = [("query", wish.query)] if wish.query else []
    return queries + [("session", query) for query in wish.recent]


def _best_chunk(body: str, chunks: Sequence[Place], snippets: Snippets, by: AnchorBy, wish: Wish) -> Anchor | None:
    """Return the chunk with most of a query's words, at where they stand together; None without any."""
    best = snippets.best([body[place.start : place.end] for place in chunks])
    if best is None:
        return None
    chunk = chunks[best]
    low, high = snippets.stretch(body[chunk.start : chunk.end], wish.budget.chars)
    return Anchor(best, chunk.start + low, by, chunk.start + high)


def _message_record(message: Item) -> dict[str, JSON]:
    fields = message.fields
    return {
        "type": "message",
        "message_id": message.key,
        "message_index": fields.get("index"),
        "sender": fields.get("sender"),
        "role": fields.get("role"),
        "timestamp": fields.get("timestamp"),
        "chars": len(message.body or ""),
    }


def rendered(store: Store, item: Item) -> str:
    """Return the full text of an item as Markdown: conversations message by message, others their body."""
    return "\n\n".join(spoken(store, item)) if item.kind == "conversation" else item.body or ""


def spoken(store: Store, conversation: Item) -> list[str]:
    """Return the title and the messages of a conversation as Markdown."""
    messages = store.drawer(Items).get(store.drawer(Messages).of(conversation.key), body=True)
    texts = [f"**{message.fields.get('sender', '')}:** {message.body or ''}" for message in messages]
    return [f"# {conversation.title}", *texts]


def _check_loc(item: Item, loc: Mapping[str, JSON]) -> None:
    """Raise InvalidInput where a loc is of another item."""
    mine = _MINE[item.kind]
    for name in loc:
        if name not in mine:
            raise InvalidInput(
                f'retrieval.loc has "{name}", which no {item.kind} has: it is the loc of another item. '
                f"A {item.kind} has: {', '.join(mine)}.",
                argument="retrieval.loc",
            )
    for name in ("media_id", "conversation_id"):
        owner_id = loc.get(name)
        if owner_id is not None and str(owner_id) != item.key:
            raise InvalidInput(
                f'retrieval.loc is of {name} "{owner_id}", and this is "{item.key}". Pass the loc of its own result.',
                argument="retrieval.loc",
            )
