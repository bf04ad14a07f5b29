"""The first page: what the library has, or what a search of it finds; and hits as one types."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.locating import inside
from commonplace.kinds.knowledge.drawer import Records
from commonplace.library import Library
from commonplace.model import JSON, SCHEMES, Condition, Filter, Hit, Item, Mode, Operator, Page
from commonplace.profiles.commonplace.browsing import collection_names
from commonplace.profiles.commonplace.search_tools import by_words_only
from commonplace.search.request import Parsed, parse
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import Moment
from commonplace.tools.arguments import moment
from commonplace.tools.budget import make_cursor, read_cursor
from commonplace.tools.titles import beginnings, titled
from commonplace.web.frame import Sheet
from commonplace.web.paths import item_path, with_query
from commonplace.web.visits import Visit
from commonplace.web.wording import counted, likelihood, number_of, several

HITS, LIVE_HITS, RECENT = 20, 8, 8
FEWEST_LETTERS = 3
"""The letters of a query from which on meaning is looked for as one types."""
_MOST_COUNTED = 60
"""The items that facets are counted over."""
_MOST_FACETS = 8
_KINDS = ("document", "note", "memory", "conversation", "media", "character", "prompt")
"""The kinds among which recent items are looked for."""
_FILTERS = ("kind", "in", "path", "tag", "where", "from", "to")
_OPERATORS: dict[str, Operator] = {
    ">=": "gte",
    "<=": "lte",
    "!=": "ne",
    "=": "eq",
    ">": "gt",
    "<": "lt",
    "~": "contains",
}
_MODES = {"auto": "Words and meaning", "lexical": "Words only", "semantic": "Meaning only"}
_SPANS = (("This week", 7), ("This month", 31), ("This year", 366))


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """A search as the address of the page has it."""

    text: str
    mode: Mode
    filters: dict[str, list[str]]
    cursor: str

    def path(self, **changes: JSON) -> str:
        """Return the address of this search with changes, from its first page."""
        mode = None if self.mode == "auto" else self.mode
        return with_query("/", **{"q": self.text, "mode": mode, **self.filters, **changes})

    @property
    def arguments(self) -> dict[str, JSON]:
        """Return what a cursor belongs to."""
        own = {"q": self.text, "mode": self.mode, **self.filters}
        return {**own, "cursor": self.cursor} if self.cursor else own


def search(library: Library, visit: Visit) -> Sheet:
    """Return the results of a search, or without one what is here."""
    asked = _asked(visit)
    if not asked.text and not asked.filters:
        return _home(library)
    if not asked.text.strip():
        return _filtered(library, asked)
    passed, started = read_cursor(asked.arguments), time.perf_counter()
    page = library.search(
        asked.text,
        mode=asked.mode,
        filter=_filter(asked),
        limit=HITS,
        offset=passed.offset,
        shown=passed.shown,
        explain=True,
    )
    hits, parsed = titled(library, page.hits), parse(asked.text)
    names = collection_names(library, library.store.drawer(Listing).parents("document"))
    results = [_result(hit, parsed, names, asked.text) for hit in hits]
    notes = [*page.notes, *(by_words_only(library, page) if asked.mode == "auto" else ())]
    following = passed.and_then([hit.item.id for hit in page.hits])
    record: dict[str, JSON] = {
        "query": asked.text,
        "mode": asked.mode,
        "found": page.found,
        "more": page.more,
        "said": _said(page, hits, parsed, (time.perf_counter() - started) * 1000),
        "read": _read(parsed),
        "notes": notes,
        "filters": _active(asked, names),
        "facets": _facets(library, page, asked, names),
        "results": results,
        "first": passed.before + 1,
        "next": asked.path(cursor=make_cursor(following, asked.arguments)) if page.more else None,
    }
    return Sheet("search.html", asked.text or "Search", record, "search", beside={"kept": asked.filters})


def live(library: Library, visit: Visit) -> Sheet:
    """Return the first hits of a query that is still being typed."""
    text = visit.query.get("q", "").strip()
    if not text:
        return Sheet("live.html", "", {"query": "", "results": []})
    letters = sum(map(str.isalnum, text))
    mode: Mode = "lexical" if letters < FEWEST_LETTERS else "auto"
    page = library.search(text, mode=mode, limit=LIVE_HITS, snippet_length=120)
    names = collection_names(library, library.store.drawer(Listing).parents("document"))
    results = [_brief(hit, names, text) for hit in titled(library, page.hits)]
    return Sheet("live.html", text, {"query": text, "results": results, "all": with_query("/", q=text)})


def _asked(visit: Visit) -> AskedSearch:
    query = visit.query
    mode: Any = query.get("mode") or "auto"
    if mode not in get_args(Mode):
        raise InvalidInput(f"mode is one of {', '.join(get_args(Mode))}, not {mode!r}.")
    filters = {name: [value for value in query.getlist(name) if value.strip()] for name in _FILTERS}
    kept = {name: values for name, values in filters.items() if values}
    return AskedSearch(query.get("q", ""), mode, kept, query.get("cursor", ""))


def _filter(asked: AskedSearch) -> Filter:
    given = asked.filters
    for kind in given.get("kind", ()):
        if kind not in SCHEMES:
            raise InvalidInput(f"There is no kind {kind!r}. The kinds are {', '.join(SCHEMES)}.")
    since, until = given.get("from", [""])[0], given.get("to", [""])[0]
    return Filter(
        kinds=tuple(given.get("kind", ())),
        parents=tuple(given.get("in", ())),
        tags=tuple(given.get("tag", ())),
        paths=tuple(map(inside, given.get("path", ()))),
        where=tuple(map(_condition, given.get("where", ()))),
        updated_from=moment("from", since) if since else None,
        updated_to=moment("to", until, end=True) if until else None,
    )


def _condition(text: str) -> Condition:
    """Return the condition that a text such as `rating>=4` writes."""
    sign = next((sign for sign in _OPERATORS if sign in text), "")
    name, _, value = text.partition(sign) if sign else ("", "", "")
    if not name.strip():
        raise InvalidInput(f"where is written as name=value, rating>=4 or title~tea, not {text!r}.")
    return Condition(tuple(name.strip().split(".")), _OPERATORS[sign], _value(value.strip()))


def _value(text: str) -> JSON:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _filtered(library: Library, asked: AskedSearch) -> Sheet:
    """Return what a filter lets through, newest first, where nothing is asked."""
    number, _, created = asked.cursor.partition("-")
    if asked.cursor and not (number + created).isdigit():
        raise InvalidInput("This page of the list cannot be found. Begin with the first.")
    after = Moment(int(number), int(created)) if asked.cursor else None
    moments = library.store.drawer(Listing).newest(_filter(asked), limit=HITS + 1, after=after)
    shown = moments[:HITS]
    names = collection_names(library, library.store.drawer(Listing).parents("document"))
    items = {item.id: item for item in library.store.drawer(Items).get([moment.item_id for moment in shown])}
    ordered = [items[moment.item_id] for moment in shown if moment.item_id in items]
    more = len(moments) > len(shown)
    cursor = f"{shown[-1].item_id}-{shown[-1].created_at}" if more else ""
    record: dict[str, JSON] = {
        "filters": _active(asked, names),
        "items": _listed(library, ordered, names),
        "next": asked.path(cursor=cursor) if more else None,
    }
    return Sheet("filtered.html", "Narrowed", record, "search")


# results


def _result(hit: Hit, parsed: Parsed, names: dict[str, str], text: str) -> dict[str, JSON]:
    item = hit.item
    return {
        **_brief(hit, names, text),
        "kind": hit.kind,
        "headings": [heading for heading in hit.headings if heading != hit.title],
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
        "is_code": item.kind == "document" and item.format not in ("markdown", "text", "rst", "org", "html"),
        "likelihood": likelihood(hit.score),
        "why": _why(hit, parsed),
        "words": list((hit.explain or {}).get("words", ())),
        "tags": [{"name": tag, "path": with_query("/", q=text, tag=tag)} for tag in item.tags[:_MOST_FACETS]],
        "updated_at": item.updated_at.isoformat(),
    }


def _brief(hit: Hit, names: dict[str, str], text: str) -> dict[str, JSON]:
    return {
        "uri": hit.uri,
        "path": item_path(hit.uri, line=hit.line, q=text),
        "title": hit.title or hit.uri,
        "place": _place(hit.item, names),
        "line": hit.line,
        "score": hit.score,
    }


def _place(item: Item, names: dict[str, str]) -> str:
    """Return where an item is, for people: its collection and path, its thread, or its kind."""
    if item.kind == "document":
        return f"{names.get(item.parent, item.parent)}/{item.key}"
    kind = several(item.kind)[:-1] if item.kind not in ("memory", "media") else item.kind.capitalize()
    return f"{kind} · {item.parent}" if item.parent and item.kind in ("memory", "note", "table") else kind


def _why(hit: Hit, parsed: Parsed) -> str:
    """Return by which way a hit was found, after its words, which come with it."""
    told = hit.explain or {}
    near = (told.get("vector") or 0.0) > 0
    if told.get("words"):
        return "close in meaning" if near else ""
    return "close in meaning; none of the words stands in it" if parsed.words else "close in meaning"


def _said(page: Page, hits: Sequence[Hit], parsed: Parsed, ms: float) -> str:
    """Return how many there are, how they were found, and how many have every word."""
    ran = {stage.name for stage in page.stages if stage.status == "ran"}
    ways = [way for name, way in (("lexical", "by words"), ("vector", "by meaning")) if name in ran]
    number = f"At least {page.found:,}" if page.more else f"{page.found:,}" if page.found else "Nothing"
    sentences = [f"{number} found {' and '.join(ways)}, {max(1, round(ms))} ms.".replace("  ", " ")]
    words = len(set(parsed.words.casefold().split()))
    whole = sum(len((hit.explain or {}).get("words", ())) >= words for hit in hits) if 1 < words <= 8 else 0
    if whole:
        all_words = "Both words stand" if words == 2 else f"All {words} words stand"
        sentences.append(f"{all_words} in {whole} of the {len(hits)} shown.")
    return " ".join(sentences)


def _read(parsed: Parsed) -> str:
    """Return how a question with signs in it was read, "" for one that is nothing but words."""
    parts = [f"with the phrase “{phrase}”" for phrase in parsed.phrases]
    parts += [f"with a word that begins with “{prefix}”" for prefix in parsed.prefixes]
    parts += [f"without “{word}”" for word in parsed.excluded]
    return f"Read as: {', '.join(parts)}." if parts else ""


# narrowing


def _active(asked: AskedSearch, names: dict[str, str]) -> list[dict[str, str]]:
    """Return the filters that are set, each with the address of the search without it."""
    active = []
    for name, values in asked.filters.items():
        for value in values:
            rest = [other for other in values if other != value]
            shown = several(value) if name == "kind" else names.get(value, value)
            label = {"from": f"since {value}", "to": f"until {value}"}.get(name, shown)
            active.append({"name": name, "value": value, "label": label, "without": asked.path(**{name: rest})})
    return active


def _facets(library: Library, page: Page, asked: AskedSearch, names: dict[str, str]) -> list[dict[str, JSON]]:
    """Return what the results can be narrowed to, counted over the best of them."""
    items = library.store.drawer(Items).get(page.items[:_MOST_COUNTED])
    given, now = asked.filters, datetime.now(UTC)
    kinds = Counter(item.kind for item in items)
    parents = Counter(item.parent for item in items if item.kind in ("document", "memory") and item.parent)
    tags = Counter(tag for item in items for tag in item.tags)
    facets = [
        _facet("Kind", "kind", _common(kinds), asked, {kind: several(kind) for kind in kinds}),
        _facet("In", "in", _common(parents), asked, names),
        _facet("Tags", "tag", _common(tags), asked, {}),
    ]
    spans = [(title, now - timedelta(days=days)) for title, days in _SPANS]
    dates = {
        title: (since.date().isoformat(), sum(item.updated_at >= since for item in items)) for title, since in spans
    }
    entries = [
        {"label": title, "count": count, "path": asked.path(**{"from": [since]}), "on": given.get("from") == [since]}
        for title, (since, count) in dates.items()
        if 0 < count < len(items) or given.get("from") == [since]
    ]
    facets.append({"title": "When", "entries": entries})
    modes = [
        {"label": label, "path": asked.path(mode=mode), "on": asked.mode == mode} for mode, label in _MODES.items()
    ]
    facets.append({"title": "By", "entries": [{**entry, "count": None} for entry in modes]})
    return [facet for facet in facets if _narrows(facet, len(items))]


def _narrows(facet: dict[str, JSON], total: int) -> bool:
    """Return whether a facet leaves anything out, or is in use."""
    return any(entry["on"] or entry["count"] is None or entry["count"] < total for entry in facet["entries"])


def _common(counts: Counter[str]) -> list[tuple[str, int]]:
    return counts.most_common(_MOST_FACETS)


def _facet(
    title: str, name: str, counts: Iterable[tuple[str, int]], asked: AskedSearch, labels: dict[str, str]
) -> dict[str, JSON]:
    chosen = asked.filters.get(name, [])
    entries = [
        {
            "label": labels.get(value, value),
            "count": count,
            "path": asked.path(**{name: [] if value in chosen else [value]}),
            "on": value in chosen,
        }
        for value, count in counts
    ]
    return {"title": title, "entries": entries}


# without a question


def _home(library: Library) -> Sheet:
    """Return what a library has, and what changed last."""
    status = library.status()
    names = collection_names(library, status.collections)
    folders = {folder.name for folder in library.folders.all()}
    record: dict[str, JSON] = {
        "items": status.items,
        "counts": [number_of(kind, count) for kind, count in status.items.items() if count],
        "collections": [
            {
                "name": names[key],
                "count": count,
                "path": with_query("/sources/one", name=key) if key in folders else with_query("/", **{"in": key}),
            }
            for key, count in status.collections.items()
        ],
        "recent": _recent(library, status.items, names),
        "health": _health(status.index_trouble, status.pending.sentence if status.pending else "", status.chunks),
        "is_level": not status.index_trouble and not status.pending,
    }
    return Sheet("home.html", "Commonplace", record, "search")


def _health(trouble: str, pending: str, passages: int) -> str:
    """Return how ready the library is, in one line."""
    if trouble or pending:
        return trouble or pending
    return f"Everything is indexed and found by words and meaning: {counted(passages, 'passage')}."


def _recent(library: Library, counts: dict[str, int], names: dict[str, str]) -> list[dict[str, JSON]]:
    """Return the items that were changed last, of any kind."""
    store = library.store
    ids = [item_id for kind in _KINDS if counts.get(kind) for item_id in store.drawer(Records).latest(kind, RECENT)]
    latest = sorted(store.drawer(Items).get(ids), key=lambda item: item.updated_at, reverse=True)[:RECENT]
    return _listed(library, latest, names)


def _listed(library: Library, items: Sequence[Item], names: dict[str, str]) -> list[dict[str, JSON]]:
    titles = beginnings(library, items)
    return [
        {
            "uri": item.uri,
            "path": item_path(item.uri),
            "title": item.title or titles.get(item.id, item.key),
            "place": _place(item, names),
            "updated_at": item.updated_at.isoformat(),
        }
        for item in items
    ]
