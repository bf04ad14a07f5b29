"""Tools that find: `search` and `related`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.locating import (
    collection_called,
    guess,
    inside,
    item_called,
    unknown_path,
    unknown_tags,
)
from commonplace.kinds.tables import has_tables
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.model import JSON, SCHEMES, Condition, Filter, Hit, Operator, Page
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.tools.arguments import moment
from commonplace.tools.budget import digest, fit, make_cursor, read_cursor
from commonplace.tools.schema import (
    INTEGER,
    OBJECT,
    STRING,
    STRINGS,
    answer,
    choice,
    flag,
    integer,
    many,
    maybe,
    obj,
    text,
    texts,
)
from commonplace.tools.sessions import SearchAnswer, deduped
from commonplace.tools.titles import titled
from commonplace.tools.tool import LOOKS, Call, Tool

MOST_NAMED = 1000
"""The most kinds, collections or tags a search may name."""
_FEW = 5
"""The most unknown collection names that a note reports one by one."""
_DATES = ("created_from", "created_to", "updated_from", "updated_to")


def search(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    passed, detail, filter = read_cursor(given), given["detail"], _filter(call, given)

    def run(seen: frozenset[str]) -> SearchAnswer[tuple[Page, list[dict[str, JSON]], int, int]]:
        page = call.space.search(
            given["query"],
            mode=given["mode"],
            filter=filter,
            limit=given["limit"],
            offset=passed.offset,
            shown=passed.shown,
            explain=given["explain"],
            exclude=seen,
            rerank=given["rerank"],
        )
        hits = titled(call.space, page.hits)
        shown = fit((_shown(hit, detail) for hit in hits), given["max_tokens"], _trimmed(detail))
        return SearchAnswer((page, *shown), [record["uri"] for record in shown[0]], page.found, page.skipped)

    session = call.open_session(given["session"]) if "session" in given else None  # nothing is left out unasked
    (page, records, tokens, left_out), report = deduped(
        session, run, query=given["query"], listing=digest(given), offset=passed.before
    )
    following = passed.and_then([hit.item.id for hit in page.hits[: len(records)]])
    notes = [*page.notes, *(by_words_only(call.space, page) if given["mode"] != "lexical" else ())]
    if names := set(given.get("collections", ())).difference(hit.parent for hit in page.hits):
        notes += _unknown_notes(call, [name for name in given["collections"] if name in names])
    notes += unknown_tags(call.space, given.get("tags", ()), page.hits)
    if "path" in given and not page.found:
        notes += unknown_path(call.space, filter.paths[0])
    return {
        "results": records,
        "left_out": left_out,
        "next_cursor": make_cursor(following, given) if left_out or page.more else None,
        "tokens": tokens,
        "notes": notes,
        **({"session": report.record()} if report else {}),
    }


def related(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    item = item_called(call.space, given["uri"], body=False)
    page = call.space.related(item.uri, limit=given["limit"])
    hits = titled(call.space, page.hits)
    records, tokens, left_out = fit((hit.record() for hit in hits), given["max_tokens"], "snippet")
    notes = [*page.notes, *by_words_only(call.space, page)]
    return {"results": records, "left_out": left_out, "tokens": tokens, "notes": notes}


def by_words_only(space: Space, page: Page) -> list[str]:
    """Return notes on why vectors had no part in a search, or how many passages have none yet; else nothing."""
    skipped = [stage for stage in page.stages if stage.name == "vector" and stage.status == "skipped"]
    if skipped:
        return [f"By words only: {stage.reason}." for stage in skipped]
    pending = space.upkeep.pending()
    return [pending.sentence] if pending else []


def _shown(hit: Hit, detail: str) -> dict[str, JSON]:
    record = hit.record()
    if detail == "snippets":
        return record
    del record["snippet"]
    if detail == "ids":
        return {"uri": hit.uri, "title": hit.title, "score": hit.score}
    return {**record, "passage": hit.chunk.text or hit.snippet, "lines": [hit.chunk.line_start, hit.chunk.line_end]}


def _trimmed(detail: str) -> str:
    return {"ids": "title", "snippets": "snippet", "passages": "passage"}[detail]


def places(call: Call, names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of collections, threads and conversations; names and aliases of packages add their keys."""
    if all(call.space.store.drawer(Items).find("collection", "", name, body=False) for name in names):
        return tuple(names)
    names = tuple(dict.fromkeys((*names, *_in_any_case(call.space, names))))
    from commonplace.kinds.documents.tools.document_shapes import visible  # reads declarations, which few searches need

    known = visible(call).collections
    keys = [one.key for one in known if not {*one.project_aliases, *one.global_aliases, one.name}.isdisjoint(names)]
    return tuple(dict.fromkeys((*names, *keys)))


def _in_any_case(space: Space, names: Sequence[str]) -> list[str]:
    """Return the collections that have these names in another case, where nothing has the exact name."""
    called = {name: collection_called(space, name) for name in names}
    others = {name: key for name, key in called.items() if key is not None and key != name}
    known = set[str]().union(*map(space.store.drawer(Listing).parents, SCHEMES)) if others else set()
    return [key for name, key in others.items() if name not in known]


def _unknown_notes(call: Call, names: Sequence[str]) -> list[str]:
    """Return notes on names that nothing is stored under, the first ones with suggestions."""
    unknown = _unknown(call, names)
    notes = [_unknown_note(call, name) for name in unknown[:_FEW]]
    rest = [f"Nothing is kept under others of these names either: {len(unknown) - _FEW}."]
    return notes + rest if len(unknown) > _FEW else notes


def _unknown_note(call: Call, name: str) -> str:
    store = call.space.store
    keys = [item.key for item in store.drawer(Items).get(store.drawer(LastingNames).named("conversation", name))]
    if has_tables(store):
        keys += [table.id for table in store.drawer(TableDrawer).tables() if table.name == name]
    if not keys:
        there = set[str]().union(*map(store.drawer(Listing).parents, SCHEMES))
        return f'No collection, thread or conversation is called "{name}".{guess(name, sorted(there))}'
    known_as = " or ".join(f'"{key}"' for key in keys[:_FEW])
    return f'"{name}" is a title. What is in it goes by {known_as} in collections.'


def _unknown(call: Call, names: Sequence[str]) -> list[str]:
    store = call.space.store
    names = [name for name in dict.fromkeys(names) if not store.drawer(Items).find("collection", "", name, body=False)]
    there = set[str]().union(*map(store.drawer(Listing).parents, SCHEMES)) if names else set()
    return [name for name in names if name not in there and len(places(call, [name])) == 1]


def _filter(call: Call, given: Mapping[str, JSON]) -> Filter:
    for name in ("kinds", "collections", "tags"):
        if (named := len(given.get(name, ()))) > MOST_NAMED:
            raise InvalidInput(f"{name} must have at most {MOST_NAMED} entries, not {named}.", argument=name)
    for kind in given.get("kinds", ()):
        if kind not in SCHEMES:
            sentence = f'There is no kind "{kind}".{guess(kind, list(SCHEMES))} The kinds are {", ".join(SCHEMES)}.'
            raise InvalidInput(sentence, argument="kinds")
    dates = {name: moment(name, given[name], end=name.endswith("_to")) for name in _DATES if name in given}
    for low, high in (_DATES[:2], _DATES[2:]):
        if low in dates and high in dates and dates[low] > dates[high]:
            raise InvalidInput(f"{low} {given[low]} is after {high} {given[high]}. Swap them.", argument=low)
    return Filter(
        kinds=tuple(given.get("kinds", ())),
        parents=places(call, given.get("collections", ())),
        tags=tuple(given.get("tags", ())),
        paths=(inside(given["path"]),) if "path" in given else (),
        where=tuple(_condition(entry) for entry in given.get("where", ())),
        created_from=dates.get("created_from"),
        created_to=dates.get("created_to"),
        updated_from=dates.get("updated_from"),
        updated_to=dates.get("updated_to"),
    )


def _condition(entry: Mapping[str, JSON]) -> Condition:
    operator, value = entry.get("operator", "eq"), entry.get("value")
    place = f"where, on {entry['key']}"
    if operator in ("in", "not_in"):
        if not isinstance(value, list) or not value or not all(isinstance(v, str | int | float | bool) for v in value):
            raise InvalidInput(f"{place}: {operator} takes a non-empty list of strings, numbers or booleans.")
    elif operator in ("exists", "not_exists", "is_null", "is_not_null"):
        if value is not None and value is not True:
            raise InvalidInput(f"{place}: {operator} takes no value.")
    elif operator in ("contains", "starts_with", "ends_with"):
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"{place}: {operator} takes a non-empty string.")
    elif operator in ("gt", "gte", "lt", "lte"):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InvalidInput(f"{place}: {operator} takes a number or a string.")
    elif not isinstance(value, str | int | float | bool):
        raise InvalidInput(f"{place}: {operator} takes a string, a number or a boolean; use is_null or exists.")
    return Condition(tuple(entry["key"].split(".")), operator, value, bool(entry.get("case_sensitive", False)))


_CONDITION = obj(
    required=("key",),
    key=text("The name in the metadata; dots go into objects.", minLength=1),
    operator={"type": "string", "enum": list(get_args(Operator)), "description": "eq if left out."},
    value={"description": "What to compare with."},
    case_sensitive=flag("Compare letters exactly."),
)

_RESULT = answer(
    required=("uri", "title", "score"),
    uri=STRING,
    title=STRING,
    score={"type": "number"},
    line=INTEGER,
    headings=STRINGS,
    snippet=STRING,
    passage=STRING,
)

SEARCH = Tool(
    name="search",
    title="Search",
    description=(
        "Search what the user keeps: notes, documents, code, chats, memories, tables. Use it whenever the answer may "
        'be there. Ask in plain words; "quotes" require a phrase, -word excludes. Returns the best passage of each '
        "item with its uri, line and a score from 0 to 1: above 0.8 is very likely about it, below 0.2 hardly ever. "
        "notes say what was guessed. Read on with fetch; continue with next_cursor."
    ),
    input=obj(
        required=("query",),
        query=text("What to look for.", minLength=1, maxLength=10_000),
        limit=integer("Most results.", default=10, least=1, most=100),
        mode=choice("auto: words, and meaning where vectors exist.", "auto", "lexical", "semantic", "hybrid"),
        detail=choice("How much of each result.", "snippets", "ids", "passages"),
        kinds=texts("Any of document, note, media, message, character, prompt, memory, table."),
        collections=texts("Collections, threads or conversations."),
        tags=texts("With any of these tags."),
        path=text("Folder or glob of documents: vault/ops, ops/archive/**.", maxLength=1000),
        where={
            "type": "array",
            "items": _CONDITION,
            "maxItems": 100,
            "description": 'All must hold of the metadata: {"key":"rating","operator":"gte","value":7}. '
            f"Operators: {' '.join(get_args(Operator))}.",
        },
        created_from=text("Created since then, as 2026-05-01."),
        created_to=text("Created until then."),
        updated_from=text("Changed since then."),
        updated_to=text("Changed until then."),
        max_tokens=integer("Token budget.", default=4000, least=200, most=100_000),
        cursor=text("The last next_cursor."),
        session=text("Any name, or `new`: skips results it returned before."),
        rerank=flag("Rank the best once more; slower."),
        explain=flag("Include keyword and vector scores."),
    ),
    output=answer(
        required=("results", "left_out"),
        results=many(_RESULT),
        left_out=INTEGER,
        next_cursor=maybe(STRING),
        tokens=INTEGER,
        notes=STRINGS,
        session=OBJECT,
    ),
    annotations=LOOKS,
    handler=search,
)

RELATED = Tool(
    name="related",
    title="Related",
    description="Find items similar to one you have: pass the uri of a result. Answers like search.",
    input=obj(
        required=("uri",),
        uri=text("Its address or its path's end.", minLength=1),
        limit=integer("Most results.", default=10, least=1, most=100),
        max_tokens=integer("Token budget.", default=4000, least=200, most=100_000),
    ),
    output=answer(required=("results",), results=many(OBJECT), left_out=INTEGER, tokens=INTEGER),
    annotations=LOOKS,
    handler=related,
)
