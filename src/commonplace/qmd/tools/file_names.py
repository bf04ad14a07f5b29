"""Names of documents: a docid, an address, a path on disk, or enough of a path's end to tell it from the others.

All of it is answered from the store. Nothing is read from disk, and `..` has no meaning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.folders.folder_collections import Collection, all_collections, packages
from commonplace.space import Space
from commonplace.store.rows import Ending, Name
from commonplace.store.spelling import SHORTEST
from commonplace.text.normal import normalized

MOST_KEPT = 100_000
"""The most names kept in memory; a larger library reads them each time."""


@dataclass(frozen=True)
class Directory:
    """Every document's id and `collection/path`, by collection and path, as of one change."""

    change: int
    ids: Sequence[int]
    files: Sequence[str]

    @cached_property
    def folded(self) -> Sequence[str]:
        """The files in the form in which case does not count."""
        together = "\0".join(self.files)
        return self.files if (lower := folded(together)) == together else lower.split("\0")

    @cached_property
    def lasts(self) -> Sequence[str]:
        """The last component of each folded file."""
        return [file[file.rfind("/") + 1 :] for file in self.folded]


@dataclass(frozen=True, slots=True)
class Shelves:
    """Every collection of files, and the packages beside them, names by key, as of one change."""

    change: int
    collections: Sequence[Collection]
    packaged: Mapping[str, str]


_kept: WeakKeyDictionary[Space, Directory] = WeakKeyDictionary()
_shelves: WeakKeyDictionary[Space, Shelves] = WeakKeyDictionary()


def shelves(space: Space) -> Shelves:
    """Return the collections as they are now."""
    store = space.store
    change, known = store.last_change(), _shelves.get(space)
    if known is None or known.change != change:
        known = _shelves[space] = Shelves(change, all_collections(store), packages(store))
    return known


def directory(space: Space) -> Directory:
    """Return the names as they are now, also after another process changed them: the change number tells."""
    change = space.store.last_change()
    known = _kept.get(space)
    if known is None or known.change != change:
        known = Directory(change, *_files(space))
        if len(known.ids) <= MOST_KEPT:
            _kept[space] = known
    return known


def _files(space: Space) -> tuple[list[int], list[str]]:
    ids, files = space.store.drawer(DocumentNames).all()
    packaged = shelves(space).packaged
    if not packaged:
        return ids, files
    kept = [at for at, file in enumerate(files) if file.partition("/")[0] not in packaged]
    return [ids[at] for at in kept], [files[at] for at in kept]


def folded(text: str) -> str:
    return text.lower() if text.isascii() else normalized("NFC", text).casefold()


LONGEST = 10_000
"""The most characters of a name: longer than any path, percent signs included."""
MOST_NAMED = 10
MOST_SUGGESTED = 5
FURTHEST = 5
"""The slips a whole name may have and still be suggested."""
FURTHEST_SHARE = 0.4
"""The same for the last component, as a share of its length."""

SCHEME = "qmd"
"""The scheme of addresses as the clients of this profile write and expect them."""

_LINES = re.compile(r":([0-9]{1,18})\Z")
_DOCID = re.compile(r"#([0-9a-f]{1,64})\Z", re.IGNORECASE)
_BARE_DOCID = re.compile(rf"([0-9a-f]{{{SHORTEST},64}})\Z", re.IGNORECASE)
_OF_DOCUMENTS = re.compile(r"qmd:/*|docs://+", re.IGNORECASE)
"""The beginning of an address: as clients of this profile write it, and as all others do."""
_ADDRESS = re.compile(rf"{_OF_DOCUMENTS.pattern}|//+", re.IGNORECASE)
_INDEX = re.compile(r"\?index=[^/]*\Z")
_UNENCODED = "/!~*'()"
_ENDINGS: tuple[Ending, ...] = ("file", "path", "end")


class NoDocument(NotFound):
    """The error that no document has this name, with similar names."""

    def __init__(self, given: str, suggestions: Sequence[str]) -> None:
        self.suggestions = tuple(suggestions)
        lines = [f"Document not found: {given}"]
        if suggestions:
            lines += ["", "Did you mean one of these?", *(f"  - {file}" for file in suggestions)]
        super().__init__("\n".join(lines))


class AmbiguousName(NotFound):
    """The error that several documents have this name."""

    code, status, exit_code = "ambiguous", 409, 1

    def __init__(self, what: str, given: str, names: Sequence[Name], total: int) -> None:
        self.suggestions = tuple(name.file for name in names[:MOST_NAMED])
        more = f" and {total - MOST_NAMED} more" if total > MOST_NAMED else ""
        super().__init__(f"Ambiguous {what} {given}: {', '.join(self.suggestions)}{more}. Use one of these paths.")


class Excluded(NotFound):
    """The error that an ignore rule of its collection leaves this document out."""

    def __init__(self, collection: str, path: str, rule: str) -> None:
        self.suggestions = ()
        self.rule = rule
        self.file = f"{collection}/{path}"
        super().__init__(
            f"Document excluded by ignore rule: {self.file}\nCollection: {collection}\n"
            f"Matched path: {path}\nIgnore rule: {rule}",
            code="excluded_by_ignore",
        )


class NamedLines(NamedTuple):
    """A document, and the lines that its name asks for: the first, and how many."""

    name: Name
    first: int | None = None
    lines: int | None = None


def address(file: str) -> str:
    """Return the address of `collection/path`, each component encoded as `encodeURIComponent` does."""
    return f"{SCHEME}://{quote(file, safe=_UNENCODED)}"


def is_address(text: str) -> bool:
    """Return whether a text is an address of documents, in either scheme."""
    return _OF_DOCUMENTS.match(text) is not None


def without_scheme(text: str) -> str:
    """Return `collection/path` of an address, still encoded; any other text itself."""
    addressed = _ADDRESS.match(text)
    return text[addressed.end() :].lstrip("/") if addressed else text


def locate(space: Space, given: str) -> NamedLines:
    """Return the document of a name. Raise NoDocument, AmbiguousName or Excluded."""
    located = find(space, given)
    if located is None:
        raise _miss(space, given)
    return located


def find(space: Space, given: str) -> NamedLines | None:
    """Return the document of a name, or None. Raise AmbiguousName, or InvalidInput for an overlong name.

    A document whose name looks like one with line numbers comes before the lines of another.
    """
    if len(given) > LONGEST:
        raise InvalidInput(f"A name has at most {LONGEST} characters, not {len(given)}.")
    for text, first, count in _readings(given):
        name = _document(space, text)
        if name is not None:
            return NamedLines(name, first, count)
    return None


def _readings(given: str) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield the text as a name; as a name and a line; as a name, a line and a number of lines."""
    yield given, None, None
    last = _LINES.search(given)
    if last is None:
        return
    rest = given[: last.start()]
    yield rest, max(1, int(last[1])), None
    before = _LINES.search(rest)
    if before is not None:
        yield rest[: before.start()], max(1, int(before[1])), max(1, int(last[1]))


def _document(space: Space, text: str) -> Name | None:
    unquoted = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text
    spelled = _spelled(unquoted)
    for variant in spelled:
        if hashed := _DOCID.match(variant):
            found = _by_id(space, hashed[1].lower(), variant)
            if found:
                return found
    found = _by_path(space, text)
    if found is None:
        for variant in spelled:
            if hashed := _BARE_DOCID.match(variant):
                found = found or _by_id(space, hashed[1].lower(), f"#{variant}")
    return found


def _spelled(text: str) -> list[str]:
    """Return the text as it is, percent-decoded, and decoded twice, without repeats."""
    once = unquote(text)
    return list(dict.fromkeys((text, once, unquote(once))))


def _by_id(space: Space, prefix: str, given: str) -> Name | None:
    store = space.store
    names, total = _ours(space, partial(store.drawer(DocumentNames).by_docid, prefix))
    if not names and len(prefix) >= SHORTEST:
        names, total = _ours(space, partial(store.drawer(DocumentNames).by_hash, prefix))
    return _only(names, total, "docid", given)


def _ours(space: Space, ask: Callable[[int], tuple[list[Name], int]]) -> tuple[list[Name], int]:
    """Return the first documents of a name, and their total, without those of packages, which are no files here."""
    names, total = ask(MOST_NAMED + 1)
    packaged = shelves(space).packaged if names else {}
    if not packaged:
        return names, total
    found = names if total == len(names) else ask(total)[0]
    ours = [name for name in found if name.collection not in packaged]
    return ours, len(ours)


def _by_path(space: Space, text: str) -> Name | None:
    inside = _under_roots(space, text)
    if inside:
        return _only(inside, len(inside), "path", text)
    rest = without_scheme(text)
    spelled = _spelled(rest)
    if rest != text:
        # What we write is encoded, so a percent sign is first taken for one that encodes something.
        spelled = [*spelled[1:2], spelled[0], *spelled[2:]]
        spelled += [bare for variant in spelled if (bare := _INDEX.sub("", variant)) != variant]
    for ending in _ENDINGS:
        for variant in filter(None, spelled):
            names, total = _ours(space, partial(space.store.drawer(DocumentNames).by_end, variant, ending))
            same = [name for name in names if variant in (name.file, name.path)]
            if len(same) == 1 and ending != "end":
                return same[0]  # two names that differ only in how their letters are composed
            if found := _only(names, total, "path", rest):
                return found
    return None


def _under_roots(space: Space, text: str) -> list[Name]:
    """Return the documents at a path on disk, by the roots of the collections."""
    if not text.startswith(("/", "~/")) or text.startswith("//"):
        return []
    for variant in _spelled(text):
        place, found = os.path.expanduser(variant), list[Name]()
        for collection in all_collections(space.store):
            root = str(collection.root).rstrip("/") + "/"
            if place.startswith(root):
                named = space.store.drawer(DocumentNames).by_end(f"{collection.name}/{place[len(root) :]}", "file", 1)[
                    0
                ]
                found += named
        if found:
            return found
    return []


def _only(names: Sequence[Name], total: int, what: str, given: str) -> Name | None:
    if total > 1:
        raise AmbiguousName(what, given, names, total)
    return names[0] if names else None


def _miss(space: Space, given: str) -> NotFound:
    collections, texts = all_collections(space.store), [text for text, _, _ in _readings(given)]
    for text in reversed(texts):  # a rule that hides a folder hides `a.md:5` in it, too, and no file is called so
        for variant in _spelled(without_scheme(text)):
            if excluded := _excluded(collections, variant):
                return excluded
    return NoDocument(given, suggest(space, texts[-1]))


def _excluded(collections: Sequence[Collection], text: str) -> Excluded | None:
    """Return the ignore rule that hides a name: of the collection it begins with or lies in, then of any; or None."""
    place = os.path.expanduser(text)
    roots = [(one, str(one.root).rstrip("/") + "/") for one in collections]
    meant = [(one, text.removeprefix(f"{one.name}/")) for one in collections if text.startswith(f"{one.name}/")]
    meant += [(one, place.removeprefix(root)) for one, root in roots if place.startswith(root)]
    for collection, path in (*meant, *((one, text) for one in collections)):
        if path and (rule := collection.ignored_by(path)):
            return Excluded(collection.name, path, rule)
    return None


def suggest(space: Space, text: str, most: int = MOST_SUGGESTED) -> list[str]:
    """Return files with similar names, nearest first, by the whole name or its last component."""
    from rapidfuzz.distance import Levenshtein  # only a miss needs it
    from rapidfuzz.process import extract

    known = directory(space)
    asked = folded(without_scheme(unquote(text)).lstrip("/"))
    last = asked.rsplit("/", 1)[-1]
    near = ((known.folded, asked, FURTHEST), (known.lasts, last, int(FURTHEST_SHARE * len(last))))
    distances = {
        place: int(distance)
        for choices, wanted, furthest in near
        for _, distance, place in extract(
            wanted, choices, scorer=Levenshtein.distance, score_cutoff=furthest, limit=10 * most
        )
    }
    nearest = {
        place: (
            min(distance, whole := int(Levenshtein.distance(asked, known.folded[place]))),
            whole,
            known.files[place],
        )
        for place, distance in distances.items()
    }
    return [known.files[place] for place in sorted(nearest, key=nearest.__getitem__)[:most]]
