"""Contexts: people's descriptions of everything, a collection, a folder in it, or one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple
from unicodedata import normalize

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.folders.collections import all_collections, change, find_collection
from commonplace.store.base import Store

LONGEST = 100_000
_GLOBAL = "context"  # the setting that holds the description of everything


class Context(NamedTuple):
    """A description and its place: `collection` is None for everything, `path` empty for a whole collection."""

    collection: str | None
    path: str
    text: str


def set_context(store: Store, collection: str | None, path: str, text: str) -> None:
    """Describe a place, replacing its former description. The place need not exist yet."""
    place, text = checked(path, text)
    if collection is None:
        store.set_setting(_GLOBAL, text)
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
        if not store.setting(_GLOBAL):
            raise NotFound("There is no context on /.")
        store.set_setting(_GLOBAL, "")
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
    return str(store.setting(_GLOBAL) or "")


def context_of(store: Store, collection: str, path: str) -> str | None:
    """Return the descriptions that apply to a document, general first, with blank lines between, or None."""
    item = store.item("collection", "", collection, body=False)
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
