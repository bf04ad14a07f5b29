"""Reading documents: one by its name, or many by patterns and lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from commonplace.errors import CommonplaceError, NotFound
from commonplace.kinds.documents.folders.folder_collections import (
    Collection,
    all_collections,
    global_context,
    join_contexts,
)
from commonplace.model import JSON, Item
from commonplace.qmd.tools.file_names import (
    Directory,
    Excluded,
    NamedLines,
    NoDocument,
    address,
    directory,
    find,
    locate,
    without_scheme,
)
from commonplace.space import Space
from commonplace.store.items import Items
from commonplace.store.rows import Name
from commonplace.text.glob_patterns import is_glob, matcher, split_union
from commonplace.text.text_lines import split_lines
from commonplace.tools.tool import Call, Reply

MIME_TYPE = "text/markdown"
MOST_DOCUMENTS = 1000
_CHOICES = frozenset("[{\\")
_STARS = re.compile(r"[*?]+")
_SLASHES = re.compile("//+")


class Contexts:
    """The descriptions of documents, read once for many of them."""

    def __init__(self, space: Space, collections: Sequence[Collection] | None = None) -> None:
        known = all_collections(space.store) if collections is None else collections
        self._everything = global_context(space.store)
        self._said = {collection.name: collection.contexts for collection in known}

    def of(self, collection: str, path: str) -> str | None:
        return join_contexts(self._everything, self._said.get(collection, {}), path)


@dataclass(frozen=True, slots=True)
class ShownLines:
    """Some lines of a document, as they are shown."""

    text: str
    left: int
    """The number of lines after the last one shown."""


def shown(body: str, first: int = 1, count: int | None = None, *, numbered: bool = False) -> ShownLines:
    """Return lines from `first` on, numbered if asked. A whole body without numbers stays as it is."""
    lines = split_lines(body)
    total = len(lines)
    if first > total:
        return ShownLines(f"[... no lines from {first}: the document has {total} lines]", 0)
    end = total if count is None else min(total, first - 1 + count)
    if first == 1 and end == total and not numbered:
        return ShownLines(body, 0)
    kept = [line.removesuffix("\r") for line in lines[first - 1 : end]]
    if end == total and not body.endswith("\n"):
        kept[-1] = lines[-1]  # a CR that no LF follows is a character like any other
    if numbered:
        kept = [f"{number}: {line}" for number, line in enumerate(kept, start=first)]
    return ShownLines("\n".join(kept), total - end)


def commented(context: str | None, text: str) -> str:
    """Return a text under a comment with its context, if it has one."""
    return f"<!-- Context: {context.replace('-->', '--&gt;')} -->\n\n{text}" if context else text


def read(space: Space, name: Name) -> Item:
    """Return a document with its body. Raise NoDocument if it was removed since it was named."""
    found = space.store.drawer(Items).get([name.item_id], body=True)
    if not found:
        raise NoDocument(name.file, ())
    return found[0]


def resource(item: Item, text: str) -> dict[str, JSON]:
    """Return a document as an embedded resource of MCP."""
    file = f"{item.parent}/{item.key}"
    content = {"uri": address(file), "name": file, "title": item.title, "mimeType": MIME_TYPE, "text": text}
    return {"type": "resource", "resource": content}


def get(call: Call, given: Mapping[str, JSON]) -> Reply:
    located = locate(call.space, given["file"])
    first = located.first or max(1, given.get("fromLine", 1))
    count = located.lines or given.get("maxLines")
    item = read(call.space, located.name)
    text = shown(item.body or "", first, count, numbered=given["lineNumbers"]).text
    context = Contexts(call.space).of(item.parent, item.key)
    return Reply([resource(item, commented(context, text))])


@dataclass(frozen=True, slots=True)
class Gathered:
    """The documents of a pattern in the order of its parts, none twice, and a line for each part that failed."""

    documents: tuple[NamedLines, ...]
    errors: tuple[str, ...]
    total: int
    """The number of documents before the limit."""


def gather(space: Space, pattern: str) -> Gathered:
    """Return the documents of a pattern: one name, or names, docids and globs between commas."""
    with suppress(CommonplaceError):
        if located := find(space, pattern):
            return Gathered((located,), (), 1)
    found: dict[int, NamedLines] = {}
    errors: list[str] = []
    for part in split_union(pattern):
        if not is_glob(part):
            _add_named(space, part, found, errors)
            continue
        matching = _matching(part, directory(space))
        if not matching:
            _add_named(space, part, found, errors, otherwise=f"No files matched pattern: {part}")
        for name in matching:
            found.setdefault(name.item_id, NamedLines(name))
    documents = tuple(found.values())
    return Gathered(documents[:MOST_DOCUMENTS], tuple(errors), len(documents))


def _matching(glob: str, known: Directory) -> list[Name]:
    """Return the documents whose `collection/path` matches a glob (or whose path, if it is no address), by file."""
    inside = without_scheme(glob)
    matches, literal = matcher(inside), _literal(inside)
    found = [
        (file, identity)
        for identity, file in zip(known.ids, known.files, strict=True)
        if literal in file and (matches(file) or (inside == glob and matches(file[file.index("/") + 1 :])))
    ]
    return [Name(identity, *file.split("/", 1)) for file, identity in sorted(found)]


def _literal(glob: str) -> str:
    """Return the longest literal part of a glob, or "": looking for it first spares most of the matching."""
    if not _CHOICES.isdisjoint(glob) or not glob.isascii():
        return ""
    return max((piece.strip("/") for piece in _STARS.split(_SLASHES.sub("/", glob))), key=len)


def _add_named(
    space: Space, part: str, found: dict[int, NamedLines], errors: list[str], otherwise: str | None = None
) -> None:
    try:
        located = locate(space, part)
    except NoDocument as miss:
        close = f" (did you mean: {', '.join(miss.suggestions)}?)" if miss.suggestions else ""
        errors.append(otherwise or f"File not found: {part}{close}")
    except Excluded as excluded:
        errors.append(otherwise or f"Document excluded by ignore rule: {excluded.file} (rule {excluded.rule})")
    except CommonplaceError as error:
        errors.append(str(error))
    else:
        found.setdefault(located.name.item_id, located)


def multi_get(call: Call, given: Mapping[str, JSON]) -> Reply:
    space, gathered = call.space, gather(call.space, given["pattern"])
    if not gathered.documents:
        first = f"No files matched pattern: {given['pattern']}"
        others = [error for error in gathered.errors if error != first]
        raise NotFound("\n".join([first, *others]), code="no_match")
    sizes = space.store.drawer(Items).body_sizes([located.name.item_id for located in gathered.documents])
    small = [one for one in gathered.documents if sizes.get(one.name.item_id, 0) <= given["maxBytes"]]
    items = {item.id: item for item in space.store.drawer(Items).get([one.name.item_id for one in small], body=True)}
    contexts = Contexts(space)
    texts = _opening(gathered)
    texts += [
        skipped(one.name.file, sizes[one.name.item_id])
        for one in gathered.documents
        if sizes.get(one.name.item_id, 0) > given["maxBytes"]
    ]
    content: list[dict[str, JSON]] = [{"type": "text", "text": text} for text in texts]
    for one in small:
        item = items.get(one.name.item_id)
        if item is not None:
            text = excerpt(item.body or "", one, given.get("maxLines"), numbered=given["lineNumbers"])
            content.append(resource(item, commented(contexts.of(item.parent, item.key), text)))
    return Reply(content)


def _opening(gathered: Gathered) -> list[str]:
    texts = []
    if gathered.total > len(gathered.documents):
        texts.append(
            f"[LIMITED: {len(gathered.documents)} of {gathered.total} matching files shown. "
            "Narrow the pattern to see the rest.]"
        )
    if gathered.errors:
        texts.append("\n".join(["Errors:", *gathered.errors]))
    return texts


def skipped(file: str, size: int) -> str:
    """Return the line in place of a document that is too large."""
    kilobytes = max(1, (size + 512) // 1024)
    return f"[SKIPPED: {file} - File too large ({kilobytes}KB). Use 'qmd get' with file=\"{file}\" to retrieve.]"


def excerpt(body: str, located: NamedLines, most: int | None, *, numbered: bool) -> str:
    """Return the wanted lines, and how many follow unless the name itself says how many to show."""
    text = shown(body, located.first or 1, located.lines or most, numbered=numbered)
    if text.left and located.lines is None:
        return f"{text.text}\n\n[... truncated {text.left} more lines]"
    return text.text
