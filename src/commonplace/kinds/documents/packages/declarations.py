"""The collections of a project and of its user: declared in `context.json` under aliases, and held by a library."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

from commonplace.errors import AlreadyExists, Denied, InvalidInput, NotFound
from commonplace.index.sealed_files import room_on_disk, write_atomically
from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections
from commonplace.kinds.documents.packages.manifest import read_json, texts
from commonplace.kinds.documents.packages.package_paths import check_globs
from commonplace.kinds.documents.packages.source import PackageSource, read_source
from commonplace.kinds.documents.visible import Declared
from commonplace.model import Item
from commonplace.settings import Settings
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing

FILE = "context.json"
LARGEST = 1 << 20
Scope = Literal["project", "global"]
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEYS = ("url", "glob", "exclude")
_Stamp = tuple[object, ...]
_CacheKey = tuple[Path | None, bool, bool]
_SHOWN = ("name", "version", "description")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One alias as a file declares it."""

    alias: str
    url: str
    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scope: Scope = "project"
    folder: Path = Path()
    """The folder that a relative path starts from."""

    def source(self) -> PackageSource:
        """Return its source, resolved anew each time: a link in its path may lead elsewhere by now."""
        return read_source(self.url, self.folder)


def find_project(start: str | Path = os.curdir) -> Path | None:
    """Return the nearest folder at or above `start` that has a context.json, or None, as for a folder that is gone."""
    try:
        start = Path(os.path.realpath(start))
    except FileNotFoundError:
        return None
    return next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def declarations(folder: Path, scope: Scope) -> tuple[Declaration, ...]:
    """Return the declarations of a folder's context.json, in its order; none where there is no such file.

    An unchanged file is parsed once. Raise NotFound where it cannot be read, InvalidInput where it is malformed.
    """
    file = folder / FILE
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.") from None
    return _declarations(file, scope, (status.st_mtime_ns, status.st_size, status.st_ino))


def declare(folder: Path, declaration: Declaration, *, force: bool = False) -> None:
    """Write an alias into the context.json of a folder, which is made where there is none.

    Raise AlreadyExists for an alias that is there, unless `force` is set; InvalidInput for a bad one.
    """
    check_alias(declaration.alias, str(folder / FILE))
    content = _content(folder / FILE)
    collections = content.setdefault("collections", {})
    if declaration.alias in collections and not force:
        raise alias_exists(declaration.alias, folder / FILE)
    record: dict[str, Any] = {"url": declaration.url}
    for key, patterns in (("glob", declaration.glob), ("exclude", declaration.exclude)):
        if patterns:
            record[key] = list(patterns)
    collections[declaration.alias] = record
    write_json(folder / FILE, content)


def alias_exists(alias: str, file: Path) -> AlreadyExists:
    """Return the error for an alias that a file has already."""
    return AlreadyExists(f"{file} has {alias} already. Use another alias, or --force to replace it.")


def withdraw(folder: Path, alias: str) -> None:
    """Remove an alias from the context.json of a folder. Raise NotFound where it is not there."""
    content = _content(folder / FILE)
    if content.get("collections", {}).pop(alias, None) is None:
        raise NotFound(f"{folder / FILE} has no {alias}.")
    write_json(folder / FILE, content)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, all or nothing: whoever reads meanwhile sees the old one. Raise InvalidInput or Denied."""
    try:
        data = (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{file} was not written: it is UTF-8, and a name in it is not. Rename the folder, or give --name."
        ) from None
    try:
        with room_on_disk(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, data)
    except OSError as error:
        raise Denied(f"{file} cannot be written: {error.strerror}.") from None


def check_alias(alias: str, place: str) -> None:
    """Raise InvalidInput for an alias that is not allowed; `place` is where it stands."""
    if not _ALIAS.fullmatch(alias):
        raise InvalidInput(
            f"{place}: an alias has 1–64 letters, digits, dots, dashes and underscores and begins with a letter or "
            f"digit: not {alias!r}."
        )


@lru_cache(maxsize=64)
def _declarations(file: Path, scope: Scope, stamp: tuple[int, ...]) -> tuple[Declaration, ...]:
    content = _content(file)
    return tuple(_declaration(alias, value, file, scope) for alias, value in content.get("collections", {}).items())


def _content(file: Path) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.") from None
    if len(data) > LARGEST:
        raise InvalidInput(f"{file} is larger than {LARGEST >> 20} MiB, which no list of collections is.")
    content = read_json(data, str(file))
    if not isinstance(content, dict) or not isinstance(content.get("collections", {}), dict):
        raise InvalidInput(f'{file} is an object with "collections", which is an object with aliases.')
    for key in content:
        if key != "collections":
            raise InvalidInput(f"{file}: {key} is not known. The only member is collections.")
    return content


def _declaration(alias: str, value: Any, file: Path, scope: Scope) -> Declaration:
    place = f"{file}: collections.{alias}"
    check_alias(alias, f"{file}: collections")
    record = {"url": value} if isinstance(value, str) else value
    if not isinstance(record, dict):
        raise InvalidInput(f"{place} is a source, or an object with url, glob and exclude.")
    for key in record:
        if key not in _KEYS:
            raise InvalidInput(f"{place}.{key} is not known. There are {', '.join(_KEYS)}.")
    url = record.get("url")
    if not isinstance(url, str) or not url.strip():
        raise InvalidInput(f"{place}.url is the source, a text.")
    patterns = {
        key: check_globs(texts(record[key], f"{place}.{key}"), f"{place}.{key}") for key in _KEYS[1:] if key in record
    }
    declaration = Declaration(alias, url, scope=scope, folder=file.parent, **patterns)
    try:
        declaration.source()
    except InvalidInput as error:
        raise InvalidInput(f"{place}.url: {error}") from None
    return declaration


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
