"""What people say about folders: descriptions on everything, a collection, a folder in it, or one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple
from unicodedata import normalize

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.folders.collections import all_collections, change, find_collection
from commonplace.store.base import Store

LONGEST = 100_000
_GLOBAL = "context"  # the setting that holds what is said about everything


class Context(NamedTuple):
    """A description and where it hangs: `collection` is None for everything, `path` empty for a whole collection."""

    collection: str | None
    path: str
    text: str


def set_context(store: Store, collection: str | None, path: str, text: str) -> None:
    """Say something about a place, instead of what was said before. The place need not exist yet."""
    place, text = checked(path, text)
    if collection is None:
        store.set_setting(_GLOBAL, text)
        return
    change(store, collection, lambda found: replace(found, contexts={**_without(found.contexts, place), place: text}))


def checked(path: str, text: str) -> tuple[str, str]:
    """A place and what is said about it, as they are kept. InvalidInput, in words, where they cannot be."""
    text = text.strip()
    if not text:
        raise InvalidInput("A context cannot be empty. Remove it instead.")
    if len(text) > LONGEST:
        raise InvalidInput(f"A context has at most {LONGEST:,} characters.")
    if "\0" in text or any(0xD800 <= ord(mark) < 0xE000 for mark in text):
        raise InvalidInput("A context is text: it holds no U+0000 and no lone surrogate.")
    return _place(path), text


def remove_context(store: Store, collection: str | None, path: str = "") -> None:
    """Say nothing about a place any more."""
    if collection is None:
        if not store.setting(_GLOBAL):
            raise NotFound("There is no context on /.")
        store.set_setting(_GLOBAL, "")
        return
    found, place = find_collection(store, collection), _place(path)
    if not is_described(found.contexts, place):
        raise NotFound(f"There is no context on {'/'.join(filter(None, (collection, place)))}.")
    change(store, collection, lambda found: replace(found, contexts=_without(found.contexts, place)))


def all_contexts(store: Store) -> list[Context]:
    """The one on everything first, then by collection and path."""
    said = [Context(None, "", text)] if (text := global_context(store)) else []
    for collection in all_collections(store):
        said += [Context(collection.name, path, text) for path, text in sorted(collection.contexts.items())]
    return said


def global_context(store: Store) -> str:
    """What is said about everything, or nothing."""
    return str(store.setting(_GLOBAL) or "")


def context_of(store: Store, collection: str, path: str) -> str | None:
    """All that applies to a document, general first, a blank line between; None where nothing does."""
    item = store.item("collection", "", collection, body=False)
    said = item.fields.get("contexts", {}) if item else {}
    return join_contexts(global_context(store), said, path)


def join_contexts(everything: str, said: Mapping[str, str], path: str) -> str | None:
    """The same for someone who has many documents and has read `Collection.contexts` already."""
    texts = [everything, *(_said_of(said, place) for place in _places(path))] if said else [everything]
    return "\n\n".join(filter(None, texts)) or None


def is_described(said: Mapping[str, str], place: str) -> bool:
    """Whether something is said about this very place."""
    return any(normalize("NFC", path) == normalize("NFC", place) for path in said)


def _said_of(said: Mapping[str, str], place: str) -> str:
    """Places are kept in NFC; one that was described before they were is found as it is written on disk."""
    return said.get(normalize("NFC", place)) or said.get(place, "")


def _without(said: Mapping[str, str], place: str) -> dict[str, str]:
    return {path: text for path, text in said.items() if normalize("NFC", path) != place}


def _places(path: str) -> Iterator[str]:
    """The collection itself, each folder on the way, the file."""
    yield ""
    components = [component for component in path.split("/") if component]
    for end in range(1, len(components) + 1):
        yield "/".join(components[:end])


def _place(path: str) -> str:
    components = [component for component in path.split("/") if component not in ("", ".")]
    if ".." in components:
        raise InvalidInput(f"A context describes a place inside its collection, which {path!r} is not.")
    return normalize("NFC", "/".join(components))
