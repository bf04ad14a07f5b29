"""Which collections there are for a project, under which names, and where their documents are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from commonplace.kinds.documents.declared import Declared
from commonplace.kinds.documents.folders.collections import Collection, all_collections
from commonplace.kinds.documents.packages.context import FILE, Declaration, declarations
from commonplace.lazy_dataclass import dataclass
from commonplace.model import Item
from commonplace.settings import Settings
from commonplace.store.base import Store


class Holder(Protocol):
    """What is needed of a library to tell which collections it has."""

    @property
    def store(self) -> Store: ...
    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True, slots=True)
class Holding:
    """One alias, and what stands behind it: a declaration, or a folder registered with `commonplace add`."""

    declared: Declared
    declaration: Declaration | None
    folder: str = ""
    """The name of the registered folder, where it is one."""


_Stamp = tuple[object, ...]
_Asked = tuple[Path | None, bool, bool]
_kept: WeakKeyDictionary[Store, dict[_Asked, tuple[_Stamp, list[Holding]]]] = WeakKeyDictionary()


def declared(
    library: Holder, project: Path | None, with_global: bool = True, *, theirs: bool = False
) -> list[Declared]:
    """Every alias that is visible from a project: its own, then the user's, then registered folders, each by alias.

    Cheap enough for every call: two files are looked at, and read again only when they, or the store, have changed. An
    alias that another hides gives way to the collection's id, unless the collection has a further alias. `theirs`: the
    library is of somebody else than whoever wrote the files, who sees of what they declare only what it holds.
    """
    return [holding.declared for holding in holdings(library, project, with_global, theirs=theirs)]


def holdings(library: Holder, project: Path | None, with_global: bool = True, *, theirs: bool = False) -> list[Holding]:
    """The same with what stands behind each alias."""
    home = library.settings.home if with_global else None
    if project is not None and os.path.realpath(project) == os.path.realpath(library.settings.home):
        project = None  # what is declared there is the user's, wherever they stand
    stamp = (_look(project), _look(home), library.store.last_change())
    known = _kept.setdefault(library.store, {})
    asked = (project, with_global, theirs)
    found = known.get(asked)
    if found is None or found[0] != stamp:
        if len(known) > 100:  # projects come and go in a server that runs for months
            known.clear()
        found = known[asked] = (stamp, _holdings(library.store, project, home, theirs=theirs))
    return list(found[1])


def holding_of(library: Holder, declaration: Declaration) -> Holding:
    """What stands behind a declaration that no file may hold yet."""
    items = {item.key: item for item in library.store.collections()}
    folders = {folder_id(folder): folder for folder in reversed(all_collections(library.store))}
    return _of_declaration(declaration, items, folders)


def undeclared(library: Holder, found: Sequence[Holding]) -> dict[str, Item]:
    """Packages with documents that none of these is, by id: left by an alias that went, or another project's."""
    known, counts = {each.declared.key for each in found}, library.store.parents("document")
    packages = (item for item in library.store.collections() if "package" in item.fields)
    return {str(item.fields["package"]): item for item in packages if item.key not in known and item.key in counts}


def unique(found: Sequence[Holding]) -> list[Holding]:
    """Each collection once, under its first alias."""
    return list({holding.declared.key: holding for holding in reversed(found)}.values())[::-1]


def _look(folder: Path | None) -> _Stamp:
    if folder is None:
        return ()
    try:
        found = os.stat(folder / FILE)
    except OSError:
        return ("missing",)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _holdings(store: Store, project: Path | None, home: Path | None, *, theirs: bool) -> list[Holding]:
    items = {item.key: item for item in store.collections()}
    folders = all_collections(store) if home is not None else []
    by_id = {folder_id(folder): folder for folder in reversed(folders)}
    given = [*(declarations(project, "project") if project else ()), *(declarations(home, "global") if home else ())]
    found = [_of_declaration(each, items, by_id) for each in given]
    if theirs:
        found = [each for each in found if each.folder or each.declared.key in items]
    found += [_of_folder(folder) for folder in folders]
    order = ("project", "global")
    found.sort(key=lambda each: (order.index(each.declared.scope), each.declaration is None, each.declared.alias))
    return _unhidden(found)


def _of_declaration(declaration: Declaration, items: dict[str, Item], folders: dict[str, Collection]) -> Holding:
    source = declaration.source()
    folder = folders.get(source.canonical_id)
    if folder is not None:  # one source is one collection, and this one is kept level with its folder already
        known = _of_folder(folder).declared
        made = Declared(
            declaration.alias, known.collection_id, known.key, declaration.scope, known.name, "", known.description
        )
        return Holding(made, declaration, folder.name)
    item = items.get(source.key)
    name, version, description = (str(item.fields.get(key, "")) if item else "" for key in _SHOWN)
    made = Declared(declaration.alias, source.canonical_id, source.key, declaration.scope, name, version, description)
    return Holding(made, declaration)


_SHOWN = ("name", "version", "description")


def _of_folder(folder: Collection) -> Holding:
    description = str(folder.contexts.get("", ""))
    made = Declared(folder.name, folder_id(folder), folder.name, "global", folder.name, "", description)
    return Holding(made, None, folder.name)


def folder_id(folder: Collection) -> str:
    return f"pkg:{folder.root.as_uri()}"


def _unhidden(found: list[Holding]) -> list[Holding]:
    """Without aliases that an earlier one hides. What then has no name at all goes by its id."""
    names: set[str] = set()
    seen: list[Holding] = []
    hidden: list[Holding] = []
    for holding in found:
        (hidden if holding.declared.alias in names else seen).append(holding)
        names.add(holding.declared.alias)
    keys = {holding.declared.key for holding in seen}
    for holding in hidden:
        known = holding.declared
        if known.key not in keys:
            keys.add(known.key)
            made = Declared(
                known.collection_id, known.collection_id, known.key, known.scope, known.name, known.version,
                known.description,
            )  # fmt: skip
            seen.append(Holding(made, holding.declaration, holding.folder))
    return seen
