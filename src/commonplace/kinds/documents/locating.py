"""The item that a name leads to, and the levels between a whole library and an item: tags, and folders of documents.

A name is an address, a path, or enough of the end of a path to tell it from the others. Case does not count, and an
ending such as `.md` may be left out. `#heading`, `:line` and `:line:count` name a part. Everything is answered from the
store's own index of names: nothing is read from disk, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from commonplace.errors import Command, InvalidInput, NotFound
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.model import SCHEMES, Filter, Hit, Item, kind_of, parse_uri, uri_of
from commonplace.store.filters import fold_tag
from commonplace.store.items import Items
from commonplace.store.lasting_names import LastingNames
from commonplace.store.listing import Listing
from commonplace.store.rows import Name
from commonplace.text.nearest import nearest, or_of

if TYPE_CHECKING:
    from commonplace.space import Space
    from commonplace.text.outline import Heading

LINES = re.compile(r":(\d{1,9})(?:@(\d{1,9}))?(?::(\d{1,9}))?$")
CHUNK = re.compile(r"chunk-(\d{1,7})$")


def whole(uri: str) -> str:
    """Return the address of the item, without the `#part` or the lines it names."""
    address, mark, _ = uri.partition("#")
    return address if mark else LINES.sub("", address)


def inside(path: str) -> str:
    """Return the path of a filter: of an address, the decoded text after its scheme; of anything else, itself."""
    _, mark, rest = path.partition("://")
    return unquote(rest) if mark else path


def span(lines: re.Match[str]) -> tuple[int, int | None]:
    """Return the first line, counted from 1, and the last; None means to the end."""
    first = max(1, int(lines[1]))
    return first, first + int(lines[3]) - 1 if lines[3] else None


MOST_NAMED = 10
MOST_SUGGESTED = 3
LONGEST = 10_000
"""Characters of a name at most: longer than any path, percent signs included."""
_FURTHEST = 5
"""The slips a whole path may have and still be suggested."""
_FURTHEST_COLLECTION = 2
_BY_KEY = ("note", "media", "conversation", "character", "prompt", "memory")
_BELOW = re.compile("(/*[^/]+)/")
"""One folder of a path. Slashes in a row count as one: the paths of some documents are web addresses."""
TAGS = "tags"
"""The name that tags are browsed under, beside the kinds."""
_LETTERS_A_SLIP = 3
"""One slip is allowed for each so many letters of a name, when similar names are suggested."""


class Located(NamedTuple):
    """An item, and the part of it that a name means: a heading, a passage, or lines."""

    item: Item
    part: str = ""
    """The text after the `#`."""
    lines: re.Match[str] | None = None
    """The lines after the path, as `addresses.LINES` reads them."""


class Ambiguous(NotFound):
    """An error: several documents have a path with this end."""

    code, status, exit_code = "ambiguous", 409, 1

    def __init__(self, given: str, names: Sequence[Name], total: int) -> None:
        listed = [name.file for name in names[:MOST_NAMED]]
        more = f" and {total - len(listed)} more" if total > len(listed) else ""
        super().__init__(f'"{given}" may be any of {", ".join(listed)}{more}. Name one of them.', candidates=listed)


def locate(space: Space, given: str, *, body: bool = True) -> Located:
    """Return the item a name leads to. Raise Ambiguous for several, NotFound with the nearest names for none."""
    located = find(space, given, body=body)
    if located is None:
        raise missing(space, given)
    return located


def missing(space: Space, given: str) -> NotFound:
    """Return the error for a name that leads nowhere, with the nearest names."""
    readings = [text for text, _, _ in _readings(given)]
    name = (readings[0] if "://" in given else readings[-1]) or given  # without the part that was named of it
    near = suggested(space, name)
    return NotFound(f"There is no {name}. {f'Did you mean {or_of(near)}?' if near else 'Find it with a search.'}")


def item_called(space: Space, given: str, *, body: bool = True) -> Item:
    """Return the item a name leads to, for callers that take whole items: a full name comes before one with a part."""
    for address in _addresses(given):
        item = space.store.drawer(Items).find(*address, body=body)
        if item is not None:
            return item
    return locate(space, given, body=body).item


def find(space: Space, given: str, *, body: bool = True, to_the_letter: bool = False) -> Located | None:
    """Return the item a name leads to, or None. Raise Ambiguous for several, InvalidInput for an overlong name."""
    if len(given) > LONGEST:
        raise InvalidInput(f"A name has at most {LONGEST} characters, not {len(given)}.")
    space.sweep()
    for text, part, lines in _readings(given):
        for address in _addresses(text):
            item = space.store.drawer(Items).find(*address, body=body)
            if item is not None:
                return Located(item, part, lines)
    for text, part, lines in () if to_the_letter else _readings(given):
        for path in _paths(text):
            if name := _by_end(space, path):
                return Located(space.get(uri_of("document", name.collection, name.path), body=body), part, lines)
    return None


def headings_of(space: Space, located: Located) -> list[Heading]:
    """Return the headings of an item; of a located part, those below its heading or in its lines."""
    from commonplace.text.outline import contents  # it reads Markdown, which most commands do not

    item = located.item
    headings = contents(item.body or "", item.format)
    if located.part:
        above = space.heading(item, located.part)
        return [heading for heading in headings if above.line < heading.line <= above.line_end]
    if located.lines:
        first, last = span(located.lines)
        return [heading for heading in headings if first < heading.line <= (last or heading.line)]
    return headings


def collection_called(space: Space, name: str) -> str | None:
    """Return the collection of documents with this name, or with this end of a name, in any case.

    Return None for no such collection, or several.
    """
    store = space.store
    if store.drawer(Items).find("collection", "", name, body=False):
        return name
    keys = _collections(space)
    if name in keys:
        return name
    folded = name.casefold()
    same = [key for key in keys if key.casefold() == folded]
    matches = same or [key for key in keys if key.casefold().endswith(f"/{folded}")]
    return matches[0] if len(matches) == 1 else None


def require_collection(space: Space, name: str) -> str:
    """Return the collection with this name. Raise NotFound with the nearest names for none, or several."""
    collection = collection_called(space, name)
    if collection is None:
        raise no_collection(space, name, "`", Command("collections list"), "` names them.")
    return collection


def no_collection(space: Space, name: str, *advice: str | Command) -> NotFound:
    """Return the error for a name that no collection has, with the nearest names and the advice."""
    near = nearest(name, _collections(space), most=MOST_SUGGESTED, furthest=_FURTHEST_COLLECTION)
    guess = f"Did you mean {or_of(near)}? " if near else ""
    return NotFound(f'There is no collection called "{name}". {guess}', *advice)


def _collections(space: Space) -> list[str]:
    keys = [item.key for item in space.store.drawer(Items).collections()]
    return list(dict.fromkeys((*keys, *space.store.drawer(Listing).parents("document"))))


def _readings(given: str) -> Iterator[tuple[str, str, re.Match[str] | None]]:
    """Yield the readings of a text, likeliest first: an address, and the `#part` or the lines it names.

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
    """Yield the (kind, parent, key) that a text may spell exactly, likeliest first.

    A percent sign encodes something in an address and nothing in a path, unless only the other reading names anything.
    """
    scheme, mark, rest = text.partition("://")
    if mark:
        spelled = (f"{scheme.lower()}://{rest}", f"{scheme.lower()}://{rest.replace('%', '%25')}")
    else:
        documents = SCHEMES["document"]
        spelled = (f"{documents}://{text.replace('%', '%25')}", f"{documents}://{text}")
    for address in dict.fromkeys(spelled):
        if parts := parse_uri(address):
            yield parts


def _paths(text: str) -> list[str]:
    """Return the document paths, or ends of paths, that a text may be; none for an address of another kind."""
    scheme, mark, rest = text.partition("://")
    if mark and kind_of(scheme) != "document":
        return []
    spelled = (unquote(rest), rest) if mark else (text, unquote(text))
    return [path for path in dict.fromkeys(each.strip("/") for each in spelled) if path]


def _by_end(space: Space, path: str) -> Name | None:
    """Return the document whose path has this end, in any case; a full match comes before an end. Raise Ambiguous."""
    for with_ending in (True, False):
        names, total = space.store.drawer(DocumentNames).in_any_case(path, MOST_NAMED + 1, with_ending=with_ending)
        depth = path.count("/")
        whole = [name for name in names if name.file.count("/") == depth]
        exact = [name for name in whole if name.file == path]
        for matches in (exact, whole, names):
            if len(matches) == 1 and (matches is not names or total == 1):
                return matches[0]
        if names:
            raise Ambiguous(path, whole or names, len(whole) or total)
    return None


def suggested(space: Space, text: str) -> list[str]:
    """Return up to three names to suggest: items of other kinds by key or title, documents with similar paths."""
    paths = _paths(text)
    if not paths:
        return []
    store = space.store
    ids = store.drawer(Listing).ids_of([(kind, None, paths[0]) for kind in _BY_KEY])
    for kind in ("note", "media", "conversation", "character", "prompt"):
        ids += store.drawer(LastingNames).named(kind, paths[0])[:MOST_SUGGESTED]
    called = [item.uri for item in store.drawer(Items).get(list(dict.fromkeys(ids))[:MOST_SUGGESTED])]
    files = nearest(paths[0], store.drawer(DocumentNames).all()[1], most=MOST_SUGGESTED, furthest=_FURTHEST)
    return [*called, *files][:MOST_SUGGESTED]


def level(paths: Iterable[str], folder: str) -> tuple[dict[str, int], list[str]]:
    """Return the folders right below a folder, with how many documents are in each, and the paths of its own documents.

    Both in the order of their names; "" is the folder that all are in.
    """
    start = f"{folder}/" if folder else ""
    folders, own = Counter[str](), []
    for path in paths:
        rest = path.lstrip("/")
        if rest.startswith(start):
            below = _BELOW.match(rest, len(start))
            if below:
                folders[start + below[1]] += 1
            else:
                own.append(path)
    return dict(sorted(folders.items())), sorted(own)


def folder_called(folder: str, paths: Iterable[str]) -> str:
    """Return the folder of some paths that goes by a name in any case; the name itself where none does, or several."""
    names = _folders_of(paths)
    same = [name for name in names if name.casefold() == folder.casefold()]
    return same[0] if len(same) == 1 and folder not in names else folder


def no_folder(folder: str, collection: str, paths: Iterable[str]) -> str:
    """Return the sentence for a folder that does not exist, with the nearest names."""
    return f'There is no folder "{folder}" in {collection}.{guess(folder, sorted(_folders_of(paths)))}'


def unknown_tags(space: Space, tags: Sequence[str], hits: Iterable[Hit] = ()) -> list[str]:
    """Return a sentence for each tag that no item has, with the nearest tags."""
    found = {fold_tag(tag) for hit in hits for tag in hit.item.tags}
    wanted = [tag for tag in dict.fromkeys(tags) if fold_tag(tag) not in found]
    there: Mapping[str, int] = space.store.drawer(Listing).tags() if wanted else {}
    known = set(map(fold_tag, there))
    unknown = [tag for tag in wanted if fold_tag(tag) not in known]
    return [f'Nothing has the tag "{tag}".{guess(tag, list(there))}' for tag in unknown]


def unknown_path(space: Space, path: str) -> list[str]:
    """Return a sentence if no document is in a folder or glob, with the nearest folders; else nothing."""
    if space.store.drawer(Listing).scan(Filter(kinds=("document",), paths=(path,)), limit=1):
        return []
    files = space.store.drawer(DocumentNames).all()[1]
    guessed = guess(path.removesuffix("/**").strip("/"), sorted(_folders_of(files)))
    return [f'No document is in "{path}".{guessed}']


def _folders_of(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, mark in enumerate(path) if mark == "/"}


def guess(name: str, names: Sequence[str]) -> str:
    """Return ' Did you mean …?' with the nearest names; "" where none is near."""
    near = nearest(name, names, most=MOST_SUGGESTED, furthest=max(1, len(name) // _LETTERS_A_SLIP))
    return f" Did you mean {or_of(near)}?" if near else ""
