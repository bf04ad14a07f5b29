"""Look up the collections of a project and of its user: their aliases, and where their documents are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections
from commonplace.kinds.documents.packages.declarations import FILE, Declaration, declarations
from commonplace.kinds.documents.visible import Declared
from commonplace.model import Item
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing


class Holder(Protocol):
    """The parts of a library that tell which collections it has."""

    @property
    def store(self) -> Store: ...
    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True, slots=True)
class Holding:
    """One alias with its declaration, or with its folder, registered by `commonplace add`, or with both."""

    declared: Declared
    declaration: Declaration | None
    folder: str = ""
    """The name of the registered folder, or ""."""


_Stamp = tuple[object, ...]
_CacheKey = tuple[Path | None, bool, bool]
_cache: WeakKeyDictionary[Store, dict[_CacheKey, tuple[_Stamp, list[Holding]]]] = WeakKeyDictionary()


def declared(
    library: Holder, project: Path | None, with_global: bool = True, *, theirs: bool = False
) -> list[Declared]:
    """Return every alias that is visible from a project: its own, then the user's, then registered folders, by alias.

    Cheap enough for every call: the files are only checked for changes, and read again when they or the store have
    changed. A collection whose aliases are all hidden by others is listed under its id. `theirs`: the library belongs
    to someone else than the files do, and shows of the declared collections only those that it holds.
    """
    return [holding.declared for holding in holdings(library, project, with_global, theirs=theirs)]


def holdings(library: Holder, project: Path | None, with_global: bool = True, *, theirs: bool = False) -> list[Holding]:
    """Return the same as `declared`, with the declaration or folder of each alias."""
    home = library.settings.home if with_global else None
    if project is not None and os.path.realpath(project) == os.path.realpath(library.settings.home):
        project = None  # what is declared there is the user's, wherever they stand
    stamp = (_stamp_of(project), _stamp_of(home), library.store.last_change())
    cache = _cache.setdefault(library.store, {})
    key = (project, with_global, theirs)
    entry = cache.get(key)
    if entry is None or entry[0] != stamp:
        if len(cache) > 100:  # projects come and go in a server that runs for months
            cache.clear()
        entry = cache[key] = (stamp, _holdings(library.store, project, home, theirs=theirs))
    return list(entry[1])


def holding_of(library: Holder, declaration: Declaration) -> Holding:
    """Return the holding of a declaration, which need not be in any file yet."""
    items = {item.key: item for item in library.store.drawer(Items).collections()}
    folders = {folder_id(folder): folder for folder in reversed(all_collections(library.store))}
    return _of_declaration(declaration, items, folders)


def undeclared(library: Holder, visible_holdings: Sequence[Holding]) -> dict[str, Item]:
    """Return the packages with documents that are in none of these holdings, by id.

    They were left behind by an alias that is gone, or belong to another project.
    """
    keys, counts = (
        {holding.declared.key for holding in visible_holdings},
        library.store.drawer(Listing).parents("document"),
    )
    packages = (item for item in library.store.drawer(Items).collections() if "package" in item.fields)
    return {str(item.fields["package"]): item for item in packages if item.key not in keys and item.key in counts}


def unique(ordered_holdings: Sequence[Holding]) -> list[Holding]:
    """Return each collection once, under its first alias."""
    return list({holding.declared.key: holding for holding in reversed(ordered_holdings)}.values())[::-1]


def _stamp_of(folder: Path | None) -> _Stamp:
    """Return a value that changes whenever the context.json of a folder does."""
    if folder is None:
        return ()
    try:
        status = os.stat(folder / FILE)
    except OSError:
        return ("missing",)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _holdings(store: Store, project: Path | None, home: Path | None, *, theirs: bool) -> list[Holding]:
    items = {item.key: item for item in store.drawer(Items).collections()}
    folders = all_collections(store) if home is not None else []
    by_id = {folder_id(folder): folder for folder in reversed(folders)}
    declared_here = declarations(project, "project") if project else ()
    declared_at_home = declarations(home, "global") if home else ()
    all_holdings = [_of_declaration(each, items, by_id) for each in (*declared_here, *declared_at_home)]
    if theirs:
        all_holdings = [each for each in all_holdings if each.folder or each.declared.key in items]
    all_holdings += [_of_folder(folder) for folder in folders]
    return _unhidden(sorted(all_holdings, key=_precedence))


def _precedence(holding: Holding) -> tuple[bool, bool, str]:
    """Return a sort key: declarations of the project, then the user's, then folders, each by alias."""
    return holding.declared.scope == "global", holding.declaration is None, holding.declared.alias


def _of_declaration(declaration: Declaration, items: dict[str, Item], folders: dict[str, Collection]) -> Holding:
    source = declaration.source()
    folder = folders.get(source.canonical_id)
    if folder is not None:  # one source is one collection, and this one is kept level with its folder already
        own = _of_folder(folder).declared
        collection = Declared(
            declaration.alias, own.collection_id, own.key, declaration.scope, own.name, "", own.description
        )
        return Holding(collection, declaration, folder.name)
    item = items.get(source.key)
    name, version, description = (str(item.fields.get(key, "")) if item else "" for key in _SHOWN)
    alias, scope = declaration.alias, declaration.scope
    collection = Declared(alias, source.canonical_id, source.key, scope, name, version, description)
    return Holding(collection, declaration)


_SHOWN = ("name", "version", "description")


def _of_folder(folder: Collection) -> Holding:
    description = str(folder.contexts.get("", ""))
    collection = Declared(folder.name, folder_id(folder), folder.name, "global", folder.name, "", description)
    return Holding(collection, None, folder.name)


def folder_id(folder: Collection) -> str:
    """Return the id that a registered folder has as a collection."""
    return f"pkg:{folder.root.as_uri()}"


def _unhidden(ordered_holdings: list[Holding]) -> list[Holding]:
    """Return the holdings without aliases that an earlier one hides. One that is left without any goes by its id."""
    names: set[str] = set()
    seen: list[Holding] = []
    hidden: list[Holding] = []
    for holding in ordered_holdings:
        (hidden if holding.declared.alias in names else seen).append(holding)
        names.add(holding.declared.alias)
    keys = {holding.declared.key for holding in seen}
    for holding in hidden:
        collection = holding.declared
        if collection.key not in keys:
            keys.add(collection.key)
            by_id = replace(collection, alias=collection.collection_id)
            seen.append(Holding(by_id, holding.declaration, holding.folder))
    return seen
