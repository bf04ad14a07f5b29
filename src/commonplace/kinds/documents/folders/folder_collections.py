"""Collections of files: the name of each, its folder, the files it takes from there, and their descriptions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from commonplace.errors import AlreadyExists, Busy, InvalidInput, NotFound, VersionConflict
from commonplace.ingest.files.endings import DEFAULT_PATTERN
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.model import JSON, Draft, Item
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import UPDATE_COMMAND, Write
from commonplace.store.stored_settings import StoredSettings

if TYPE_CHECKING:
    from commonplace.kinds.documents.folders.walk import Selection

LONGEST_NAME = 100
_ATTEMPTS = 10

_FORMER_DEFAULT = (
    "**/*.{md,markdown,mdx,txt,rst,org,html,htm,xhtml,ipynb,pdf,epub,docx,py,ts,tsx,js,jsx,go,rs,java,c,h}"
)
"""The default pattern that older collections were stored with; newer ones store none."""
LONGEST = 100_000
_GLOBAL = "context"  # the setting that holds the description of everything


@dataclass(frozen=True, slots=True)
class Collection:
    """A folder whose files are documents of the library."""

    name: str
    root: Path
    pattern: str = DEFAULT_PATTERN
    ignore: tuple[str, ...] = ()
    gitignore: bool = True
    """True: .gitignore files in the folder count."""
    included: bool = True
    """False: searched only when it is named."""
    contexts: Mapping[str, str] = field(default_factory=dict)
    """People's descriptions by path; the empty path is the collection itself."""
    mounted: bool = False
    """True: a disk was mounted at the root when files were last found there."""

    def selection(self) -> Selection:
        """Return the files to take, as a walk wants to know them."""
        from commonplace.kinds.documents.folders.walk import Selection

        return Selection(self.place, self.pattern, self.ignore, self.gitignore)

    @property
    def files(self) -> str:
        """Return which files it takes, for people: its pattern, unless that is the default, which is long."""
        return "every format that can be read" if self.takes_all else self.pattern

    @property
    def takes_all(self) -> bool:
        """Return whether it takes every file that can be read."""
        return self.pattern == DEFAULT_PATTERN

    @property
    def place(self) -> str:
        """Return the real path of the root, which was no link when it was added, but may be one now."""
        return os.path.realpath(self.root)

    def ignored_by(self, path: str) -> str | None:
        """Return the collection's own ignore glob that leaves a path out, or None. Rule files are not read."""
        from commonplace.kinds.documents.folders.walk import ignoring

        return ignoring(self.ignore, path)


def all_collections(store: Store) -> list[Collection]:
    """Return every collection that is a folder, sorted by name."""
    return [_collection(item) for item in store.drawer(Items).collections() if "root" in item.fields]


def packages(store: Store) -> dict[str, str]:
    """Return the names of the collections that are packages, by key. They are no folders of this library."""
    return {item.key: item.title or item.key for item in store.drawer(Items).collections() if "package" in item.fields}


def find_collection(store: Store, name: str) -> Collection:
    """Return a collection. Raise NotFound where no folder has this name."""
    item = store.drawer(Items).find("collection", "", name, body=False)
    if item is None or "root" not in item.fields:
        raise NotFound(f"Collection not found: {name}")
    return _collection(item)


def check_name(name: str) -> None:
    """Raise InvalidInput for a name that could be taken for a path, an id or two lines."""
    controls = any(ord(mark) < 32 or 127 <= ord(mark) < 160 or 0xD800 <= ord(mark) < 0xE000 for mark in name)
    if not name.strip() or len(name) > LONGEST_NAME or "/" in name or name[0] in ".#" or controls:
        raise InvalidInput(
            f"A collection's name has 1–{LONGEST_NAME} characters, no slash, no control characters and no leading dot "
            f"or #: not {name!r}."
        )


def create(store: Store, collection: Collection) -> Collection:
    """Store a new collection and return it. Nothing is read yet. Raise what `Folders.add` does."""
    collection = _checked(collection)
    name, others = collection.name, all_collections(store)
    if any(other.name == name for other in others):
        raise AlreadyExists(f"Collection '{name}' already exists.")
    _check_only_one(collection, others)
    if name in store.drawer(Listing).parents("document"):
        raise AlreadyExists(f"There are documents under the name '{name}' that came from no folder. Use another name.")
    try:
        store.drawer(Items).put([_write(collection, 0)])
    except VersionConflict:
        raise AlreadyExists(f"Collection '{name}' already exists.") from None
    return collection


def change(store: Store, name: str, edit: Callable[[Collection], Collection]) -> Collection:
    """Apply `edit` to a stored collection and return the result. Writes nothing where it is the same.

    What others write meanwhile is not lost: `edit` is applied again to that. Raise NotFound, or Busy where others keep
    writing.
    """
    for _ in range(_ATTEMPTS):
        item = store.drawer(Items).find("collection", "", name, body=False)
        if item is None or "root" not in item.fields:
            raise NotFound(f"Collection not found: {name}")
        changed = edit(_collection(item))
        _check_globs(changed)
        try:
            store.drawer(Items).put([_write(changed, item.version)])
        except VersionConflict:
            continue
        return changed
    raise Busy(f"Collection {name} is being changed by other processes. Try again.")


def rename(store: Store, old: str, new: str) -> None:
    """Rename a collection with its documents, vectors, contexts, file records and update command.

    Raise NotFound for the old name, AlreadyExists or InvalidInput for the new one.
    """
    find_collection(store, old)
    check_name(new)
    if new == old:
        return
    if store.drawer(Items).find("collection", "", new, body=False) is not None or new in store.drawer(Listing).parents(
        "document"
    ):
        raise AlreadyExists(f"Collection '{new}' already exists.")
    store.drawer(CollectionFiles).rename(old, new)


def move(store: Store, name: str, root: Path) -> Collection:
    """Point a collection at another folder. Raise NotFound where none of its files is there."""
    moved = _checked(replace(find_collection(store, name), root=root))
    _check_only_one(moved, all_collections(store))
    files = store.drawer(CollectionFiles).records(name)
    if files and not any((moved.root / path).is_file() for path in files):
        raise NotFound(f"None of the files of {name} are in {moved.root}. Nothing was changed.")
    return change(store, name, lambda stored: replace(stored, root=moved.root, mounted=False))


def remove(store: Store, name: str) -> int:
    """Remove a collection and its documents, and return their number. The files stay where they are."""
    find_collection(store, name)
    return store.drawer(CollectionFiles).drop(name)


def update_command(store: Store, name: str) -> str:
    """Return the command to run in the root before an update, or "". Only a person at the command line ever runs it."""
    return str(store.drawer(StoredSettings).get(UPDATE_COMMAND + name) or "")


def set_update_command(store: Store, name: str, command: str) -> None:
    """Store the command to run before an update; an empty one removes it."""
    find_collection(store, name)
    store.drawer(StoredSettings).set(UPDATE_COMMAND + name, command.strip())


def changed_at(store: Store, name: str) -> datetime | None:
    """Return when a document of a collection was last added, changed or removed; None before the first."""
    micros = store.drawer(CollectionFiles).changed_at(name)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros) if micros is not None else None


def locate(store: Store, path: str | Path) -> list[tuple[Collection, str]]:
    """Return the collections that hold a path on disk, innermost first, with the path inside each ("": its root)."""
    place = os.path.realpath(os.path.expanduser(path))
    located = []
    for collection in all_collections(store):
        root = collection.place
        if place == root or place.startswith(root.rstrip("/") + "/"):
            located.append((collection, place[len(root) :].strip("/")))
    return sorted(located, key=lambda pair: (len(pair[1]), pair[0].name))


def overlapping(store: Store, root: Path, name: str) -> list[tuple[Collection, str]]:
    """Return the other collections that have files of a folder, by name, and where: `vault/ops`, as filters take it.

    Return none where the folder is the collection `name` already. A collection does not have what it ignores.
    """
    place = os.path.realpath(os.path.expanduser(root))
    others = all_collections(store)
    if any(other.name == name and other.place == place for other in others):
        return []
    pairs = [(other, "") for other in others if other.place.startswith(place.rstrip("/") + "/")]
    pairs += [(other, inside) for other, inside in locate(store, place) if not (inside and other.ignored_by(inside))]
    return sorted(((other, "/".join(filter(None, (other.name, inside)))) for other, inside in pairs), key=_path_of)


def _path_of(pair: tuple[Collection, str]) -> str:
    return pair[1]


def _checked(collection: Collection) -> Collection:
    """Return the collection with its real root. Raise InvalidInput or NotFound where it cannot be one."""
    check_name(collection.name)
    _check_globs(collection)
    root = Path(os.path.expanduser(collection.root))
    if not root.exists():
        raise NotFound(f"There is no folder {root.absolute()}.")
    if not root.is_dir():
        raise NotFound(f"{root} is no folder. Add the folder it is in.")
    return replace(collection, root=_real(root))


def _check_only_one(collection: Collection, others: Sequence[Collection]) -> None:
    for other in others:
        if other.name != collection.name and (other.root, other.pattern) == (collection.root, collection.pattern):
            raise AlreadyExists(f"Collection '{other.name}' has this folder and pattern already: {collection.root}")


def _real(root: Path) -> Path:
    real = root.resolve()
    try:
        str(real).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"The name of {str(real)!a} is no UTF-8, so it cannot be stored. Rename it.") from None
    return real


def _check_globs(collection: Collection) -> None:
    from commonplace.kinds.documents.folders.walk import check_pattern, leaving_out

    check_pattern(collection.pattern)
    root = os.path.abspath(os.path.expanduser(collection.root))
    for glob in collection.ignore:
        if not glob.strip("./ "):
            raise InvalidInput("An ignore pattern cannot be empty. Write what to leave out, such as drafts/**.")
        if glob.startswith(("~/", f"{root}/", f"{os.path.realpath(root)}/")):  # it would leave out nothing
            raise InvalidInput(
                f"An ignore pattern is relative to the folder, such as drafts/**. {glob!r} is written in full."
            )
        leaving_out(glob)


def _write(collection: Collection, expected_version: int) -> Write:
    from commonplace.ingest.prepare import prepare

    return prepare(_draft(collection), expected_version)


def _draft(collection: Collection) -> Draft:
    fields: dict[str, JSON] = {"root": str(collection.root)}
    if collection.pattern != DEFAULT_PATTERN:  # a default is not stored: it grows
        fields["pattern"] = collection.pattern
    if collection.ignore:
        fields["ignore"] = list(collection.ignore)
    if not collection.gitignore:
        fields["gitignore"] = False
    if not collection.included:
        fields["included"] = False
    if collection.contexts:
        fields["contexts"] = dict(sorted(collection.contexts.items()))
    if collection.mounted:
        fields["mounted"] = True
    return Draft("collection", collection.name, title=collection.name, fields=fields)


def _collection(item: Item) -> Collection:
    fields = item.fields
    pattern = fields.get("pattern", _FORMER_DEFAULT)
    return Collection(
        name=item.key,
        root=Path(str(fields["root"])),
        pattern=DEFAULT_PATTERN if pattern == _FORMER_DEFAULT else str(pattern),
        ignore=tuple(fields.get("ignore", ())),
        gitignore=bool(fields.get("gitignore", True)),
        included=bool(fields.get("included", True)),
        contexts=dict(fields.get("contexts", {})),
        mounted=bool(fields.get("mounted", False)),
    )


class Context(NamedTuple):
    """A description and its place: `collection` is None for everything, `path` empty for a whole collection."""

    collection: str | None
    path: str
    text: str


def set_context(store: Store, collection: str | None, path: str, text: str) -> None:
    """Describe a place, replacing its former description. The place need not exist yet."""
    place, text = checked(path, text)
    if collection is None:
        store.drawer(StoredSettings).set(_GLOBAL, text)
        return
    change(store, collection, lambda known: replace(known, contexts={**_without(known.contexts, place), place: text}))


def checked(path: str, text: str) -> tuple[str, str]:
    """Return a path and its description as they are stored. Raise InvalidInput where they cannot be."""
    text = text.strip()
    if not text:
        raise InvalidInput("A context cannot be empty. Remove it instead.")
    if len(text) > LONGEST:
        raise InvalidInput(f"A context has at most {LONGEST:,} characters.")
    if "\0" in text or any(0xD800 <= ord(mark) < 0xE000 for mark in text):
        raise InvalidInput("A context is text: it holds no U+0000 and no lone surrogate.")
    return _place(path), text


def remove_context(store: Store, collection: str | None, path: str = "") -> None:
    """Remove the description of a place. Raise NotFound where there is none."""
    if collection is None:
        if not store.drawer(StoredSettings).get(_GLOBAL):
            raise NotFound("There is no context on /.")
        store.drawer(StoredSettings).set(_GLOBAL, "")
        return
    place = _place(path)
    if not is_described(find_collection(store, collection).contexts, place):
        raise NotFound(f"There is no context on {'/'.join(filter(None, (collection, place)))}.")
    change(store, collection, lambda known: replace(known, contexts=_without(known.contexts, place)))


def all_contexts(store: Store) -> list[Context]:
    """Return all descriptions: the one on everything first, then by collection and path."""
    contexts = [Context(None, "", text)] if (text := global_context(store)) else []
    for collection in all_collections(store):
        contexts += [Context(collection.name, path, text) for path, text in sorted(collection.contexts.items())]
    return contexts


def global_context(store: Store) -> str:
    """Return the description of everything, or ""."""
    return str(store.drawer(StoredSettings).get(_GLOBAL) or "")


def context_of(store: Store, collection: str, path: str) -> str | None:
    """Return the descriptions that apply to a document, general first, with blank lines between, or None."""
    item = store.drawer(Items).find("collection", "", collection, body=False)
    contexts = item.fields.get("contexts", {}) if item else {}
    return join_contexts(global_context(store), contexts, path)


def join_contexts(everything: str, contexts: Mapping[str, str], path: str) -> str | None:
    """Return the same as `context_of`, for a caller who has read `Collection.contexts` for many documents already."""
    texts = [everything, *(_text_of(contexts, place) for place in _places(path))] if contexts else [everything]
    return "\n\n".join(filter(None, texts)) or None


def is_described(contexts: Mapping[str, str], place: str) -> bool:
    """Return whether exactly this path has a description."""
    return any(normalize("NFC", path) == normalize("NFC", place) for path in contexts)


def _text_of(contexts: Mapping[str, str], place: str) -> str:
    """Return the description of a path, or "". Paths are stored in NFC, older ones as they are written on disk."""
    return contexts.get(normalize("NFC", place)) or contexts.get(place, "")


def _without(contexts: Mapping[str, str], place: str) -> dict[str, str]:
    return {path: text for path, text in contexts.items() if normalize("NFC", path) != place}


def _places(path: str) -> Iterator[str]:
    """Yield the paths of the collection itself (""), each folder on the way, and the file."""
    yield ""
    components = [component for component in path.split("/") if component]
    for end in range(1, len(components) + 1):
        yield "/".join(components[:end])


def _place(path: str) -> str:
    components = [component for component in path.split("/") if component not in ("", ".")]
    if ".." in components:
        raise InvalidInput(f"A context describes a place inside its collection, which {path!r} is not.")
    return normalize("NFC", "/".join(components))
