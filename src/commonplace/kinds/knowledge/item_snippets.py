"""Items as hits: the window of a text that shows the query's words, its place, and the conversation of a message."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from commonplace.kinds.knowledge.drawer import Cue, Place, Records
from commonplace.kinds.knowledge.item_scores import AnalyzedQuery
from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.messages import Messages
from commonplace.text.matches import Matcher
from commonplace.text.snippet import Match, snippet
from commonplace.text.terms import Term

# windows


MOST_MATCHES = 2000
"""Matches that decide where a window is; a text with more has the query's words everywhere."""
STRETCH = 100_000
"""Characters that are searched at a time: of a long text no more than it takes to find these matches."""
_BLANK = re.compile(r"\s")
_MARGIN = 64  # around a window, so that no word at its edge is taken for another


@dataclass(frozen=True, slots=True)
class Window:
    """A snippet, and the place in the text of the match that it shows; -1 where it shows none."""

    text: str
    at: int


class Snippets:
    """A chooser of windows on texts, for one query. Words of earlier queries decide between equals."""

    def __init__(self, asked: AnalyzedQuery, recent: Sequence[Term] = ()) -> None:
        content = [term for term in asked.query.terms if term.weight >= 1 or term.match == "prefix"]
        others = [term for term in asked.query.terms if term not in content]
        self._content = Matcher(content, asked.languages)
        self._others = Matcher(others, asked.languages)
        self._sides = (
            (self._content, [asked.rarity.get(term, 1.0) for term in content]),
            (self._others, [asked.rarity.get(term, 1.0) for term in others]),
        )
        self._recent = Matcher(recent, asked.languages) if recent else None

    def matches(self, text: str) -> list[Match]:
        """Return where the query's words stand; its function words only where no other word does."""
        return _first_matches(self._content, text) or _first_matches(self._others, text)

    def best(self, texts: Sequence[str]) -> int | None:
        """Return the index of the text with most of the query's words, rare ones first; None where none has any.

        Rare is what few of these texts have, and few passages of the library. Of equals it is the first.
        """
        for matcher, rarity in self._sides:
            terms_of_texts = [{term for _, _, term in matcher.find(text)} for text in texts]
            spread = Counter(chain.from_iterable(terms_of_texts))
            if spread:
                weights = {term: rarity[term] * math.log((len(texts) + 1) / spread[term]) for term in spread}
                worth = [sum(sorted(weights[term] for term in terms)) for terms in terms_of_texts]
                return worth.index(max(worth))
        return None

    def stretch(self, text: str, room: int) -> tuple[int, int]:
        """Return where the rarest words stand together within `room` characters; the first of equals."""
        for matcher, rarity in self._sides:
            if matches := _first_matches(matcher, text):
                terms = [term for _, _, term in matches]
                together = _stretches(matches, room)
                worth = [sum(rarity[term] for term in set(terms[first:last])) for _, first, last in together]
                _, first, last = together[worth.index(max(worth))]
                return matches[first][0], max(end for _, end, _ in matches[first:last])
        return 0, 0

    def window(self, text: str, length: int) -> Window:
        """Return the best window of at most `length` characters."""
        matches = self.matches(text)
        if self._recent is not None and matches:
            matches = self._preferred(text, matches, length)
        shown = snippet(text, matches, length)
        at = next((start for start, _, _ in matches if start >= shown.start), -1)
        return Window(shown.text, at if at < shown.end else -1)

    def _preferred(self, text: str, matches: Sequence[Match], length: int) -> list[Match]:
        """Return the matches of the window with most distinct words, of equals the one with most of earlier queries."""
        room = max(1, length - 2)
        stretches = list(_stretches(matches, room))
        most = max(count for count, _, _ in stretches)
        best, chosen = -1, (0, len(matches))
        for count, first, last in stretches:
            if count < most:
                continue
            middle = (matches[first][0] + matches[last - 1][1]) // 2
            low, high = middle - room // 2, middle + room // 2
            worth = self._recent_words(text, low, high)
            if worth > best:
                best, chosen = worth, (first, last)
        return list(matches[chosen[0] : chosen[1]])

    def _recent_words(self, text: str, low: int, high: int) -> int:
        """Return how many distinct words of earlier queries stand in a part of a text."""
        before = max(0, low - _MARGIN)
        matches = self._recent.find(text[before : max(0, high + _MARGIN)]) if self._recent else []
        return len({term for start, end, term in matches if low <= before + start and before + end <= high})


def _first_matches(matcher: Matcher, text: str) -> list[Match]:
    """Return the first places where a word of a query stands, at most `MOST_MATCHES`."""
    matches, start = list[Match](), 0
    while start < len(text) and len(matches) < MOST_MATCHES:
        blank = _BLANK.search(text, start + STRETCH)
        end = blank.end() if blank else len(text)
        matches += [(start + low, start + high, term) for low, high, term in matcher.find(text[start:end])]
        start = end
    return matches[:MOST_MATCHES]


def _stretches(matches: Sequence[Match], room: int) -> list[tuple[int, int, int]]:
    """Return for every match how many distinct words stand within reach, and the first and last match there."""
    stretches = []
    last = 0
    for first, (start, _, _) in enumerate(matches):
        last = max(last, first + 1)
        while last < len(matches) and matches[last][1] - start <= room:
            last += 1
        stretches.append((len({term for _, _, term in matches[first:last]}), first, last))
    return stretches


# hits


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
        items = {item.id: item for item in self._store.drawer(Items).get([item for item, _ in rows], body=True)}
        talks = talks_of(self._store, items.values())
        cut = [item.id for item in items.values() if item.chunk_count > 1 or item.kind in _ANCHORED]
        places = self._store.drawer(Records).places(cut) if cut else {}
        keys = [item.key for item in items.values() if item.kind == "conversation"]
        openings = self._store.drawer(Messages).openings(keys) if keys else {}
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
        cues = self._store.drawer(Records).cues(item.id) if window.at >= 0 and item.fields.get("cues") else []
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
    ids = store.drawer(Listing).ids_of([("conversation", "", key) for key in sorted(keys)])
    return {item.key: item for item in store.drawer(Items).get(ids)}


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
