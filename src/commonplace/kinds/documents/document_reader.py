"""Documents listed, outlined and read in sections, and the heading that a caller means."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from commonplace.errors import Busy
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.outlines import Outlines
from commonplace.kinds.documents.visible import Shown
from commonplace.model import Item
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.rows import DocumentRow
from commonplace.text.normal import normalized
from commonplace.text.outline import Heading, Outline, outline_of

MOST_SUGGESTED = 5
FURTHEST, FURTHEST_SHARE = 3, 0.4
"""The greatest edit distance of a similar id, and of its last component as a share of its length."""
PARSED_AT_ONCE = 100
MatchedBy = Literal["exact", "normalised", "slug", "path", "substring"]
_CLOSING_MARKS = re.compile(r"\s#+\Z")
_MARKUP = "`~"
"""Markup characters that Unicode does not count as punctuation."""
_PART_OF_NAMES = "#%"
"""Punctuation that may end a name: C#, 50%."""


class DocumentSummary(NamedTuple):
    """A line in a list of documents: id, title, size in characters."""

    id: str
    title: str
    size: int


class DocumentSection(NamedTuple):
    """A section of a document: its heading, its text, and its first and last line, counted from 1."""

    heading: Heading
    text: str
    start_line: int
    end_line: int


class DocumentReader:
    """A reader of one space's documents. It checks no rights: callers pass the collections that may be seen."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def counts(self, collections: Sequence[Shown]) -> dict[str, int]:
        """Return the number of documents in each collection, by its key."""
        counts = self._store.drawer(Outlines).counts([shown.key for shown in collections])
        return {shown.key: counts.get(shown.key, 0) for shown in collections}

    def page(self, collection: Shown, *, limit: int, offset: int) -> tuple[list[DocumentSummary], int]:
        """Return documents in the code-point order of their ids, and the number of all. Reads no body."""
        rows, total = self._store.drawer(Outlines).page(collection.key, limit=limit, offset=offset)
        rows_by_id = self.with_outlines({row.item_id: row for row in rows})
        return [_summary(rows_by_id[row.item_id]) for row in rows if row.item_id in rows_by_id], total

    def find(self, collection: Shown, document: str, *, body: bool = False) -> Item | None:
        """Return a document by its id, or None.

        `./`, a leading slash, backslashes and other normal forms are forgiven.
        """
        item = self._store.drawer(Items).find("document", collection.key, document, body=body)
        if item is not None:
            return item
        path = _cleaned(document)
        names, total = (
            self._store.drawer(DocumentNames).by_end(f"{collection.key}/{path}", "file", 2) if path else ([], 0)
        )
        if total != 1:
            return self._store.drawer(Items).find("document", collection.key, path, body=body) if path else None
        return self._store.drawer(Items).find("document", collection.key, names[0].path, body=body)

    def suggestions(self, collection: Shown, document: str) -> list[str]:
        """Return up to `MOST_SUGGESTED` ids of documents in the collection with similar names, nearest first."""
        from rapidfuzz.distance import Levenshtein  # only a miss needs it
        from rapidfuzz.process import extract

        ids = list(self._store.drawer(CollectionFiles).versions(collection.key))
        paths = [name.casefold() for name in ids]
        names = [path.rsplit("/", 1)[-1] for path in paths]
        path = _cleaned(document).casefold()
        name = path.rsplit("/", 1)[-1]
        searches = ((paths, path, FURTHEST), (names, name, max(1, int(FURTHEST_SHARE * len(name)))))
        indexes = {
            index
            for choices, query, furthest in searches
            for _, _, index in extract(
                query, choices, scorer=Levenshtein.distance, score_cutoff=furthest, limit=10 * MOST_SUGGESTED
            )
        }
        ranks = {
            index: (
                min(Levenshtein.distance(name, names[index]), whole := Levenshtein.distance(path, paths[index])),
                whole,
                ids[index],
            )
            for index in indexes
        }
        return [ids[index] for index in sorted(ranks, key=ranks.__getitem__)[:MOST_SUGGESTED]]

    def outline(self, item: Item) -> Outline:
        """Return the stored outline of a document. One that has none yet is parsed, and its outline stored."""
        outline = self._store.drawer(Outlines).find(item.id)
        return outline if outline is not None else self._parse([item.id]).get(item.id, Outline("", 0, ()))

    def summary(self, item: Item) -> DocumentSummary:
        """Return a document's line in a list; its id as its title, and size 0, where it has just been removed."""
        rows = self.with_outlines(self._store.drawer(Outlines).rows([item.id]))
        return _summary(rows[item.id]) if item.id in rows else DocumentSummary(item.key, item.key, 0)

    def section(self, item: Item, heading: Heading, *, with_subsections: bool) -> DocumentSection:
        """Return the section of a heading, unchanged but for the line break at its end."""
        end = heading.char_end if with_subsections else heading.own_char_end
        last = heading.line_end if with_subsections else heading.own_line_end
        text = self._store.drawer(Outlines).text(item.id, heading.char_start, end)
        return DocumentSection(
            heading, text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text, heading.line, last
        )

    def is_still(self, item: Item) -> bool:
        """Return whether a document still has the version of `item`: nobody has changed or removed it since."""
        now = self._store.drawer(Items).get([item.id])
        return bool(now) and now[0].version == item.version

    def with_outlines(self, rows: dict[int, DocumentRow]) -> dict[int, DocumentRow]:
        """Return the rows with title and size, by item id. Outlines that were never stored are parsed and stored now.

        A document that was removed meanwhile has no row in the result.
        """
        unparsed_ids = [item_id for item_id, row in rows.items() if row.title is None]
        for start in range(0, len(unparsed_ids), PARSED_AT_ONCE):
            for item_id, outline in self._parse(unparsed_ids[start : start + PARSED_AT_ONCE]).items():
                rows = {**rows, item_id: rows[item_id]._replace(title=outline.title, size=outline.size)}
        return {item_id: row for item_id, row in rows.items() if row.title is not None}

    def _parse(self, item_ids: Sequence[int]) -> dict[int, Outline]:
        """Return the outlines of documents by item id, and store them: these documents are older than outlines."""
        items = self._store.drawer(Items).get(item_ids, body=True)
        outlines = {item.id: outline_of(item.body or "", item.format) for item in items}
        with suppress(Busy):  # another process is writing a great deal; the next reader stores them
            self._store.drawer(Outlines).keep([(item.id, item.version, outlines[item.id]) for item in items])
        return outlines


def _summary(row: DocumentRow) -> DocumentSummary:
    return DocumentSummary(row.key, row.title or row.key, row.size or 0)


def _cleaned(document: str) -> str:
    path = normalized("NFC", document).replace("\\", "/")
    while path.startswith(("./", "/")):
        path = path.removeprefix("./").lstrip("/")
    return path


class Matched(NamedTuple):
    """The headings that a request may mean, in the order of the document, and the rule that matched them."""

    by: MatchedBy
    headings: list[Heading]


def match(headings: Sequence[Heading], wanted: str) -> Matched | None:
    """Return the headings that `wanted` names, or None.

    The rules of `_TIERS` are tried in order, and the first that matches any heading decides: the whole text wins over
    a part of it.
    """
    for by, find in _TIERS.items():
        if matches := find(headings, wanted):
            return Matched(by, matches)
    return None


def normalized_heading(text: str) -> str:
    """Return a heading in NFKC, case folded and blanks collapsed, without closing marks and punctuation around it."""
    text = " ".join(normalized("NFKC", text).casefold().split())
    text = _CLOSING_MARKS.sub("", text)
    start, end = 0, len(text)
    while start < end and _is_mark(text[start]):
        start += 1
    while end > start and _is_mark(text[end - 1]) and text[end - 1] not in _PART_OF_NAMES:
        end -= 1
    return text[start:end]


def _is_mark(character: str) -> bool:
    return character.isspace() or character in _MARKUP or unicodedata.category(character).startswith("P")


def _by_text(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    return [heading for heading in headings if heading.title == wanted]


def _by_name(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    name = normalized_heading(wanted)
    return [heading for heading in headings if normalized_heading(heading.title) == name] if name else []


def _by_slug(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    slug = wanted.strip().removeprefix("#").casefold()
    return [heading for heading in headings if heading.slug.casefold() == slug]


def _by_path(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    """Return the headings that a path `Parent > Child` names.

    The last part is the heading; the others stand above it in this order, and levels may be left out.
    """
    parts = [normalized_heading(part) for part in wanted.split(">")]
    if len(parts) < 2 or not all(parts):
        return []
    *above, last = parts
    return [
        heading
        for heading in headings
        if normalized_heading(heading.title) == last
        and _in_order(above, [normalized_heading(title) for title in heading.path[:-1]])
    ]


def _in_order(parts: Sequence[str], titles: Sequence[str]) -> bool:
    rest = iter(titles)
    return all(part in rest for part in parts)


def _by_part(headings: Sequence[Heading], wanted: str) -> list[Heading]:
    part = " ".join(wanted.split()).casefold()
    return [heading for heading in headings if part in heading.title.casefold()] if part else []


_TIERS: dict[MatchedBy, Callable[[Sequence[Heading], str], list[Heading]]] = {
    "exact": _by_text,
    "normalised": _by_name,
    "slug": _by_slug,
    "path": _by_path,
    "substring": _by_part,
}
