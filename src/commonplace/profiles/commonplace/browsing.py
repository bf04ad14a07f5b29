"""Browsing: what is there, level by level, from kinds to headings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.folder_collections import packages
from commonplace.kinds.documents.folders.library_folders import Folders
from commonplace.kinds.documents.locating import (
    CHUNK,
    TAGS,
    Located,
    collection_called,
    find,
    folder_called,
    headings_of,
    level,
    locate,
    no_collection,
    no_folder,
    suggested,
    unknown_tags,
)
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.model import JSON, SCHEMES, Filter, Item
from commonplace.profiles.commonplace.fetching import standing_of
from commonplace.profiles.commonplace.search_tools import places
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.nearest import or_of
from commonplace.text.outline import Heading
from commonplace.tools.budget import Passed, make_cursor, read_cursor
from commonplace.tools.schema import (
    INTEGER,
    OBJECT,
    STRING,
    answer,
    integer,
    many,
    maybe,
    obj,
    text,
)
from commonplace.tools.titles import beginnings, conversations
from commonplace.tools.tool import LOOKS, Call, Tool

if TYPE_CHECKING:
    from commonplace.kinds.documents.folders.library_folders import FolderState
    from commonplace.space import Space


def browse(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    place = given["at"]
    call.space.sweep()
    if not place.strip("/"):
        counts = call.space.status().items
        counts |= {TAGS: len(tags)} if (tags := call.space.store.drawer(Listing).tags()) else {}
        return _entries([{"at": kind, "name": kind, "count": number} for kind, number in counts.items()])
    if place == TAGS or place.startswith(f"{TAGS}/"):
        return _tagged(call.space, place.partition("/")[2], given)
    if "/" not in place.partition("://")[0] and "://" in place:  # a thread may be called by an address, too
        return _inside(call, locate(call.space, place), given)
    kind, slash, parent = place.partition("/")
    if kind not in SCHEMES:
        return _of_no_kind(call, place, given)
    parents = call.space.store.drawer(Listing).parents(kind)
    if not slash and (len(parents) > 1 or (parents and "" not in parents)):
        page = _paged([{"at": f"{kind}/{key}", "name": key, "count": count} for key, count in parents.items()], given)
        names = _names(call.space, kind, [entry["name"] for entry in page["entries"]])
        for entry in page["entries"]:
            entry["name"] = names.get(entry["name"]) or entry["name"]
        return page
    if kind == "document" and parent:
        return _folder(call, parent, given)
    parent = parent if parent in parents else parent.rstrip("/")
    return _items(call.space, Filter(kinds=(kind,), parents=(parent,)), given)


def _tagged(space: Space, tag: str, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the tags, or the items that have one."""
    if not tag:
        counts = space.store.drawer(Listing).tags().items()
        return _paged([{"at": f"{TAGS}/{tag}", "name": tag, "count": count} for tag, count in counts], given)
    if unknown := unknown_tags(space, [tag]):
        raise NotFound(f'{unknown[0]} Browse "{TAGS}" to see which there are.')
    return _items(space, Filter(tags=(tag,)), given)


def _folder(call: Call, place: str, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the folders, then the documents, of a collection or of a folder in it, each by name."""
    store, parents = call.space.store, call.space.store.drawer(Listing).parents("document")
    name, folder = _collection(call, place.strip("/"), parents)
    keys = places(call, [name])
    paths = {path: key for key in keys for path in store.drawer(CollectionFiles).versions(key)}
    folder = folder_called(folder, paths)
    folders, own = level(paths, folder)
    if folder and not (folders or own):
        raise NotFound(no_folder(folder, name, paths))
    start = read_cursor(given).offset
    end = start + given["limit"]
    entries: list[dict[str, Any]] = [
        {"at": f"document/{name}/{path}", "name": f"{path.rpartition('/')[2]}/", "count": count}
        for path, count in folders.items()
    ][start:end]
    shown = own[max(0, start - len(folders)) : max(0, end - len(folders))]
    ids = store.drawer(Listing).ids_of([("document", paths[path], path) for path in shown])
    entries += _listed(call.space, sorted(store.drawer(Items).get(ids), key=lambda item: item.key))
    return _entries(entries, make_cursor(Passed(end), given) if end < len(folders) + len(own) else None)


def _collection(call: Call, place: str, filled: Mapping[str, int]) -> tuple[str, str]:
    """Return the collection that a place begins with, and the folder in it: names may have slashes, as folders do."""
    names = [*accumulate(place.split("/"), "{}/{}".format)][::-1]
    for name in names:
        if _is_there(call.space, places(call, [name]), filled):
            called = None if name in filled else collection_called(call.space, name)
            spelled = called if called and called.casefold() == name.casefold() else name
            return spelled, place[len(name) :].strip("/")
    for name in names:
        if collection := collection_called(call.space, name):
            return collection, place[len(name) :].strip("/")
    raise no_collection(call.space, place, 'Browse "document" to see which there are.')


def _inside(call: Call, located: Located, given: Mapping[str, JSON]) -> dict[str, JSON]:
    item = located.item
    if item.kind == "conversation":  # which has no text of its own
        return _items(call.space, Filter(kinds=("message",), parents=(item.key,)), given)
    return _paged(_headings(call.space, located), given)


def _of_no_kind(call: Call, place: str, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the entries of a collection or a document that was named without its kind. Raise InvalidInput."""
    if collection := collection_called(call.space, place.strip("/")):
        return browse(call, {**given, "at": f"document/{collection}"})
    located = find(call.space, place)
    if located is not None:
        return _inside(call, located, given)
    near = suggested(call.space, place)
    raise InvalidInput(
        f'There is no kind "{place.partition("/")[0]}". '
        + (f"Did you mean {or_of(near)}?" if near else 'Browse "" to see what is here.')
    )


def _is_there(space: Space, collections: Sequence[str], filled: Mapping[str, int]) -> bool:
    """Return whether any of these is a collection: a declared one may have no documents, others have no record."""
    if not filled.keys().isdisjoint(collections):
        return True
    return bool(space.store.drawer(Listing).ids_of([("collection", "", key) for key in collections]))


def _names(space: Space, kind: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the names that people know collections, conversations and tables by; other keys are names already."""
    if kind == "document":
        return collection_names(space, space.store.drawer(Listing).parents(kind))
    if kind == "message":
        return conversations(space, keys)
    return {table.id: table.name for table in space.store.drawer(TableDrawer).tables()} if kind == "table" else {}


def collection_names(space: Space, keys: Iterable[str]) -> dict[str, str]:
    """Return the names of collections by key: a package has its manifest's name, unless another has the same."""
    titles = packages(space.store)
    names = {key: titles.get(key, key) for key in keys}
    many = Counter(names.values())
    return {key: name if many[name] == 1 else key for key, name in names.items()}


def _headings(space: Space, located: Located) -> list[dict[str, Any]]:
    item = located.item
    return [
        {"at": f"{item.uri}{_part(heading)}", "name": heading.title, "level": heading.level, "line": heading.line}
        for heading in headings_of(space, located)
    ]


def _part(heading: Heading) -> str:
    """Return the end of a heading's address: its slug or, where it has none or it would mean a passage, its lines."""
    if heading.slug and not CHUNK.match(heading.slug):
        return f"#{heading.slug}"
    return f":{heading.line}:{heading.line_end - heading.line + 1}"


def _items(space: Space, filter: Filter, given: Mapping[str, JSON]) -> dict[str, JSON]:
    items = space.store.drawer(Listing).scan(filter, after=read_cursor(given).offset, limit=given["limit"] + 1)
    shown = items[: given["limit"]]
    cursor = make_cursor(Passed(shown[-1].id), given) if len(items) > len(shown) else None
    return _entries(_listed(space, shown), cursor)


def _listed(space: Space, items: Sequence[Item]) -> list[dict[str, Any]]:
    names = beginnings(space, items)
    return [
        {
            "at": item.uri,
            "name": item.title or names.get(item.id, item.key),
            "updated_at": item.updated_at.isoformat(),
            **standing,
        }
        for item, standing in zip(items, standing_of(space, items), strict=True)
    ]


def _paged(entries: list[dict[str, Any]], given: Mapping[str, JSON]) -> dict[str, JSON]:
    start = read_cursor(given).offset
    end = start + given["limit"]
    return _entries(entries[start:end], make_cursor(Passed(end), given) if end < len(entries) else None)


def _entries(entries: list[dict[str, Any]], cursor: str | None = None) -> dict[str, JSON]:
    return {"entries": entries, "next_cursor": cursor}


BROWSE = Tool(
    name="browse",
    title="Browse",
    description=(
        "List what is there, level by level: kinds, tags; of a kind its collections or threads; of those folders and "
        "items; of an item its headings. Pass an entry's `at` to go deeper."
    ),
    input=obj(
        at={
            "type": "string",
            "description": "'', tags, document/docs/api, an address or a path's end.",
            "default": "",
        },
        limit=integer("Most entries.", default=50, least=1, most=500),
        cursor=text("The last next_cursor."),
    ),
    output=answer(entries=many(answer(at=STRING, name=STRING)), next_cursor=maybe(STRING)),
    annotations=LOOKS,
    handler=browse,
)


def status(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    state = call.space.status()
    folders = call.space.part(Folders).states()
    names = collection_names(call.space, state.collections)
    return {
        "items": state.items,
        "collections": {names[key]: count for key, count in state.collections.items()},
        "folders": {folder.collection: _folder_state(folder) for folder in folders},
        "passages": state.chunks,
        "embedded": state.coverage.embedded,
        "model": state.coverage.model,
        "better_model": state.better_model,
        "notes": [state.pending.sentence] if state.pending else [],
        "level": state.indexed >= state.changes and all(folder.level for folder in folders),
    }


def _folder_state(state: FolderState) -> dict[str, JSON]:
    looked_at = state.looked_at.isoformat(timespec="seconds").replace("+00:00", "Z") if state.looked_at else None
    return {"looked_at": looked_at, "level": state.level, **({"trouble": state.trouble} if state.trouble else {})}


STATUS = Tool(
    name="status",
    title="Status",
    description="Report what the library holds, finds by meaning, and when its folders were read.",
    input=obj(),
    output=answer(
        required=("items", "passages"),
        items=OBJECT,
        collections=OBJECT,
        folders={
            "type": "object",
            "description": "By collection: when its folder was last read, and whether it has changed since (level).",
        },
        passages=INTEGER,
        embedded=INTEGER,
        model=maybe(STRING),
        better_model=maybe(STRING),
        level={"type": "boolean", "description": "Whether a search now sees every change and every file."},
    ),
    annotations=LOOKS,
    handler=status,
)
