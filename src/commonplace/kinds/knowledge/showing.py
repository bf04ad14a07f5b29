"""Turn items into hits: the snippet with the match, its place, and the conversation a message belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.kinds.knowledge.words import Snippets
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.rows import Cue, Place
from commonplace.text.snippet import snippet

_ANCHORED = frozenset({"media", "character", "prompt"})
"""Kinds whose chunks have an anchor: a field, a time, a page."""


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """One result. `talk` is the conversation of a message."""

    item: Item
    score: float
    snippet: str | None
    loc: Mapping[str, JSON] | None
    talk: Item | None = None


class Shower:
    """A maker of hits. It reads what a page shows, and no more."""

    def __init__(self, store: Store, snippets: Snippets, length: int) -> None:
        self._store, self._snippets, self._length = store, snippets, length

    def hits(self, rows: Sequence[tuple[int, float]], fields: Sequence[str] = ()) -> list[KnowledgeHit]:
        """Return the hits of (item id, score) pairs. One whose item was deleted a moment ago is left out."""
        items = {item.id: item for item in self._store.items([item for item, _ in rows], body=True)}
        talks = talks_of(self._store, items.values())
        cut = [item.id for item in items.values() if item.chunk_count > 1 or item.kind in _ANCHORED]
        places = self._store.places(cut) if cut else {}
        openings = self._store.openings([item.key for item in items.values() if item.kind == "conversation"])
        hits = []
        for id, score in rows:
            item = items.get(id)
            if item is None:
                continue
            if item.kind == "conversation":
                text = title_snippet(item, openings.get(item.key, ""), self._length)
                hits.append(KnowledgeHit(item, score, text, title_loc(item)))
            else:
                hits.append(self._hit(item, score, places.get(id) or [], talks.get(item.parent), fields))
        return hits

    def _hit(
        self, item: Item, score: float, places: Sequence[Place], talk: Item | None, fields: Sequence[str]
    ) -> KnowledgeHit:
        match item.kind:
            case "message":
                window = self._snippets.window(item.body or "", self._length)
                return KnowledgeHit(item, score, window.text or None, message_loc(item), talk)
            case "character" | "prompt":
                text, loc = self._in_field(item, places, fields)
                return KnowledgeHit(item, score, text, loc)
            case _:
                text, loc = self._in_body(item, places)
                return KnowledgeHit(item, score, text, loc)

    def _in_body(self, item: Item, places: Sequence[Place]) -> tuple[str | None, dict[str, JSON]]:
        body = item.body or ""
        window = self._snippets.window(body, self._length)
        cues = self._store.cues(item.id) if window.at >= 0 and item.fields.get("cues") else []
        return window.text or None, loc_at(item, places or [Place(0, len(body), {})], max(0, window.at), cues)

    def _in_field(
        self, item: Item, places: Sequence[Place], fields: Sequence[str]
    ) -> tuple[str | None, dict[str, JSON]]:
        """Return a snippet and its loc from the field with most of the query's terms, the first of equals."""
        body, most, chosen = item.body or "", -1, ""
        for place in places:
            name = str(place.anchor.get("field", ""))
            if fields and name not in fields:
                continue
            terms = len({term for _, _, term in self._snippets.matches(body[place.start : place.end])})
            if terms > most:
                most, chosen = terms, name
        start, end = field_range(places, chosen) if chosen else (0, len(body))
        window = self._snippets.window(body[start:end], self._length)
        return window.text or None, {"approx_offset": start + max(0, window.at), "field": chosen or None}


def title_snippet(conversation: Item, first: str, length: int) -> str:
    """Return a conversation's title and first message as a snippet."""
    return snippet(f"{conversation.title}: {first}", [], length).text


def talks_of(store: Store, items: Iterable[Item]) -> dict[str, Item]:
    """Return the conversations of messages, by their keys."""
    keys = {item.parent for item in items if item.kind == "message"}
    ids = store.ids_of([("conversation", "", key) for key in sorted(keys)])
    return {item.key: item for item in store.items(ids)}


def message_loc(item: Item) -> dict[str, JSON]:
    """Return the loc of a message."""
    return {"conversation_id": item.parent, "message_id": item.key, "message_index": item.fields.get("index")}


def title_loc(item: Item) -> dict[str, JSON]:
    """Return the loc of a conversation as a whole."""
    return {"conversation_id": item.key, "message_id": None, "message_index": None}


def loc_at(
    item: Item, places: Sequence[Place], at: int, cues: Sequence[Cue] = (), index: int | None = None
) -> dict[str, JSON]:
    """Return the loc of a character in a body, as the item's source has it. `index`: its chunk, where known."""
    index = chunk_at(places, at) if index is None else index
    if item.kind != "media":
        return {"approx_offset": at, "chunk_index": index}
    anchor = places[index].anchor if places else {}
    loc: dict[str, JSON] = {"media_id": shown_id("media", item.key), "chunk_index": index}
    loc |= {"chunk_uuid": anchor.get("uuid"), "approx_offset": at}
    cue = next((cue for cue in cues if cue.char_start <= at < cue.char_end), None)
    if cue:
        loc |= {"start_ms": cue.start_ms, "end_ms": cue.end_ms}
    elif "page" in anchor:
        loc["page"] = anchor["page"]
    return loc


def chunk_at(places: Sequence[Place], at: int) -> int:
    """Return the first chunk that holds a character, else the last that begins before it."""
    for index, place in enumerate(places):
        if place.start <= at < place.end:
            return index
    return max((index for index, place in enumerate(places) if place.start <= at), default=0)


def field_range(places: Sequence[Place], field: str) -> tuple[int, int]:
    """Return where a field of a record begins and ends in its body."""
    own = [place for place in places if place.anchor.get("field") == field]
    return own[0].start, own[-1].end
