"""Where a name leads: an address, a path, or as much of the end of a path as tells it from the others.

Case does not count, and an ending such as `.md` may be left out. `#heading`, `:line` and `:line:count` name a part.
Everything is answered from the store's own index of names: nothing is read from disk, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from commonplace.errors import InvalidInput, NotFound
from commonplace.model import SCHEMES, Item, parse_uri, uri_of
from commonplace.store.rows import Name
from commonplace.text.nearest import nearest, or_of
from commonplace.tools.addresses import LINES, span

if TYPE_CHECKING:
    from commonplace.library import Library

if TYPE_CHECKING:  # it reads Markdown, which most commands do not
    from commonplace.text.outline import Heading

MOST_NAMED = 10
MOST_SUGGESTED = 3
LONGEST = 10_000
"""Of a name: longer than any path, written with percent signs too."""
_FURTHEST = 5
"""Slips a whole path may have to be suggested still."""
_FURTHEST_COLLECTION = 2
_BY_KEY = ("note", "media", "conversation", "character", "prompt", "memory")


class Located(NamedTuple):
    """An item, and the part of it that was asked for: a heading, a passage, or lines."""

    item: Item
    part: str = ""
    """What stands behind the `#`."""
    lines: re.Match[str] | None = None
    """What stands behind the path, as `addresses.LINES` reads it."""


class Ambiguous(NotFound):
    """Several documents end so."""

    code, status, exit_code = "ambiguous", 409, 1

    def __init__(self, given: str, names: Sequence[Name], total: int) -> None:
        listed = [name.file for name in names[:MOST_NAMED]]
        more = f" and {total - len(listed)} more" if total > len(listed) else ""
        super().__init__(f'"{given}" may be any of {", ".join(listed)}{more}. Name one of them.', candidates=listed)


def locate(library: Library, given: str, *, body: bool = True) -> Located:
    """Return the item a name leads to. Raise Ambiguous where several would do, NotFound with the nearest where none."""
    located = find(library, given, body=body)
    if located is None:
        raise missing(library, given)
    return located


def missing(library: Library, given: str) -> NotFound:
    """Return the error for a name that leads nowhere, with the nearest of those there are."""
    readings = [text for text, _, _ in _readings(given)]
    meant = (readings[0] if "://" in given else readings[-1]) or given  # without the part that was named of it
    near = suggested(library, meant)
    return NotFound(f"There is no {meant}. {f'Did you mean {or_of(near)}?' if near else 'Find it with a search.'}")


def item_called(library: Library, given: str, *, body: bool = True) -> Item:
    """Return the item a name leads to, whatever part it names, for who takes whole items: a whole name comes first."""
    for address in _addresses(given):
        item = library.store.item(*address, body=body)
        if item is not None:
            return item
    return locate(library, given, body=body).item


def find(library: Library, given: str, *, body: bool = True, to_the_letter: bool = False) -> Located | None:
    """Return the item a name leads to, or None where there is none. Raise Ambiguous where several would do."""
    if len(given) > LONGEST:
        raise InvalidInput(f"A name has at most {LONGEST} characters, not {len(given)}.")
    library.sweep()
    for text, part, lines in _readings(given):
        for address in _addresses(text):
            item = library.store.item(*address, body=body)
            if item is not None:
                return Located(item, part, lines)
    for text, part, lines in () if to_the_letter else _readings(given):
        for path in _paths(text):
            if name := _by_end(library, path):
                return Located(library.get(uri_of("document", name.collection, name.path), body=body), part, lines)
    return None


def headings_of(library: Library, located: Located) -> list[Heading]:
    """Return the headings of an item, or those below the one that was named, or in the lines that were."""
    from commonplace.text.outline import contents  # it reads Markdown, which most commands do not

    item = located.item
    headings = contents(item.body or "", item.format)
    if located.part:
        above = library.heading(item, located.part)
        return [heading for heading in headings if above.line < heading.line <= above.line_end]
    if located.lines:
        first, last = span(located.lines)
        return [heading for heading in headings if first < heading.line <= (last or heading.line)]
    return headings


def collection_called(library: Library, name: str) -> str | None:
    """Return the collection of documents that goes by a name, or by such an end of one, in any case.

    None where none does, or several.
    """
    store = library.store
    if store.item("collection", "", name, body=False):
        return name
    there = _collections(library)
    if name in there:
        return name
    wanted = name.casefold()
    same = [key for key in there if key.casefold() == wanted]
    found = same or [key for key in there if key.casefold().endswith(f"/{wanted}")]
    return found[0] if len(found) == 1 else None


def require_collection(library: Library, name: str) -> str:
    """Return the collection that goes by a name. Raise NotFound with the nearest where none does, or several."""
    called = collection_called(library, name)
    if called is None:
        raise no_collection(library, name, "`commonplace collections list` names them.")
    return called


def no_collection(library: Library, name: str, advice: str) -> NotFound:
    """Return the error for a name that no collection has, with the nearest of those there are or what to do."""
    near = nearest(name, _collections(library), most=MOST_SUGGESTED, furthest=_FURTHEST_COLLECTION)
    guess = f"Did you mean {or_of(near)}? " if near else ""
    return NotFound(f'There is no collection called "{name}". {guess}{advice}')


def _collections(library: Library) -> list[str]:
    keys = [item.key for item in library.store.collections()]
    return list(dict.fromkeys((*keys, *library.store.parents("document"))))


def _readings(given: str) -> Iterator[tuple[str, str, re.Match[str] | None]]:
    """What a text may mean: an address, and a part of the item there.

    An address encodes what would begin a part. A path does not: one that has such signs in its name comes first.
    """
    if "://" not in given:
        yield given, "", None
    address, mark, part = given.partition("#")
    if mark:
        yield address, part, None
        if part.find("#") >= 0:
            address, _, part = given.rpartition("#")
            yield address, part, None
    if (not mark or "://" not in given) and (lines := LINES.search(given)):
        yield given[: lines.start()], "", lines
    if "://" in given:
        yield given, "", None


def _addresses(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Where a text may lead to the letter, the likeliest first.

    A percent sign encodes something in an address and nothing in a path, unless only the other reading names anything.
    """
    scheme, mark, rest = text.partition("://")
    if mark:
        spelled = (f"{scheme.lower()}://{rest}", f"{scheme.lower()}://{rest.replace('%', '%25')}")
    else:
        spelled = (f"qmd://{text.replace('%', '%25')}", f"qmd://{text}")
    for address in dict.fromkeys(spelled):
        if parts := parse_uri(address):
            yield parts


def _paths(text: str) -> list[str]:
    """The paths, or ends of paths, of documents that a text may be."""
    scheme, mark, rest = text.partition("://")
    if mark and scheme.lower() != SCHEMES["document"]:
        return []
    spelled = (unquote(rest), rest) if mark else (text, unquote(text))
    return [path for path in dict.fromkeys(each.strip("/") for each in spelled) if path]


def _by_end(library: Library, path: str) -> Name | None:
    """The document that ends so, in any case: the one that is called so altogether, else the only one."""
    for with_ending in (True, False):
        names, total = library.store.documents_in_any_case(path, MOST_NAMED + 1, with_ending=with_ending)
        depth = path.count("/")
        whole = [name for name in names if name.file.count("/") == depth]
        exact = [name for name in whole if name.file == path]
        for found in (exact, whole, names):
            if len(found) == 1 and (found is not names or total == 1):
                return found[0]
        if names:
            raise Ambiguous(path, whole or names, len(whole) or total)
    return None


def suggested(library: Library, text: str) -> list[str]:
    """What else goes by such a name: items of other kinds by their keys and titles, documents with similar paths."""
    paths = _paths(text)
    if not paths:
        return []
    store = library.store
    ids = store.ids_of([(kind, None, paths[0]) for kind in _BY_KEY])
    for kind in ("note", "media", "conversation", "character", "prompt"):
        ids += store.named(kind, paths[0])[:MOST_SUGGESTED]
    called = [item.uri for item in store.items(list(dict.fromkeys(ids))[:MOST_SUGGESTED])]
    files = nearest(paths[0], store.document_files()[1], most=MOST_SUGGESTED, furthest=_FURTHEST)
    return [*called, *files][:MOST_SUGGESTED]
