"""Documents, listed, outlined and read in parts, from what was kept when they were stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from commonplace.errors import Busy
from commonplace.kinds.documents.visible import Shown
from commonplace.model import Item
from commonplace.store.base import Store
from commonplace.store.rows import DocumentRow
from commonplace.text.normal import normalized
from commonplace.text.outline import Heading, Outline, outline_of

MOST_SUGGESTED = 5
FURTHEST, FURTHEST_SHARE = 3, 0.4
"""How many letters a similar name differs in, and which share of a last component."""
PARSED_AT_ONCE = 100


class DocumentSummary(NamedTuple):
    """A document as it is listed."""

    id: str
    title: str
    size: int


class DocumentSection(NamedTuple):
    """A section of a document: its heading and its lines, counted from 1."""

    heading: Heading
    text: str
    start_line: int
    end_line: int


class DocumentReader:
    """The documents of one space. Which of them a caller may see is up to the caller: every method is told where."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def counts(self, collections: Sequence[Shown]) -> dict[str, int]:
        """How many documents each collection holds, by its key."""
        counted = self._store.document_counts([shown.key for shown in collections])
        return {shown.key: counted.get(shown.key, 0) for shown in collections}

    def page(self, collection: Shown, *, limit: int, offset: int) -> tuple[list[DocumentSummary], int]:
        """Documents in the code-point order of their ids, and how many there are. Reads no body."""
        rows, total = self._store.document_page(collection.key, limit=limit, offset=offset)
        kept = self.settled({row.item_id: row for row in rows})
        return [_listed(kept[row.item_id]) for row in rows if row.item_id in kept], total

    def find(self, collection: Shown, document: str, *, body: bool = False) -> Item | None:
        """A document by its id; `./`, a leading slash, backslashes and other normal forms are forgiven."""
        item = self._store.item("document", collection.key, document, body=body)
        if item is not None:
            return item
        path = _cleaned(document)
        names, total = self._store.documents_by_end(f"{collection.key}/{path}", "file", 2) if path else ([], 0)
        if total != 1:
            return self._store.item("document", collection.key, path, body=body) if path else None
        return self._store.item("document", collection.key, names[0].path, body=body)

    def suggestions(self, collection: Shown, document: str) -> list[str]:
        """Documents of the collection with similar names, nearest first."""
        from rapidfuzz.distance import Levenshtein  # only a miss needs it
        from rapidfuzz.process import extract

        ids = list(self._store.document_versions(collection.key))
        folded = [name.casefold() for name in ids]
        asked = _cleaned(document).casefold()
        last = asked.rsplit("/", 1)[-1]
        lasts = [name.rsplit("/", 1)[-1] for name in folded]
        near = ((folded, asked, FURTHEST), (lasts, last, max(1, int(FURTHEST_SHARE * len(last)))))
        places = {
            place
            for choices, wanted, furthest in near
            for _, _, place in extract(
                wanted, choices, scorer=Levenshtein.distance, score_cutoff=furthest, limit=10 * MOST_SUGGESTED
            )
        }
        worth = {
            place: (
                min(Levenshtein.distance(last, lasts[place]), whole := Levenshtein.distance(asked, folded[place])),
                whole,
                ids[place],
            )
            for place in places
        }
        return [ids[place] for place in sorted(worth, key=worth.__getitem__)[:MOST_SUGGESTED]]

    def outline(self, item: Item) -> Outline:
        """The outline that is kept of a document, or is from now on."""
        kept = self._store.outline(item.id)
        return kept if kept is not None else self._parse([item.id]).get(item.id, Outline("", 0, ()))

    def row(self, item: Item) -> DocumentSummary:
        """How a document is listed."""
        rows = self.settled(self._store.document_rows([item.id]))
        return _listed(rows[item.id]) if item.id in rows else DocumentSummary(item.key, item.key, 0)

    def part(self, item: Item, heading: Heading, *, with_subsections: bool) -> DocumentSection:
        """The section of a heading, to the letter, without the end of its last line."""
        end = heading.char_end if with_subsections else heading.own_char_end
        last = heading.line_end if with_subsections else heading.own_line_end
        text = self._store.body_part(item.id, heading.char_start, end)
        return DocumentSection(
            heading, text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text, heading.line, last
        )

    def is_still(self, item: Item) -> bool:
        """Whether nobody has changed or removed a document since it was looked up."""
        now = self._store.items([item.id])
        return bool(now) and now[0].version == item.version

    def settled(self, rows: dict[int, DocumentRow]) -> dict[int, DocumentRow]:
        """The same rows, each with its title and size: where they were never kept they are now."""
        lacking = [item_id for item_id, row in rows.items() if row.title is None]
        for start in range(0, len(lacking), PARSED_AT_ONCE):
            for item_id, outline in self._parse(lacking[start : start + PARSED_AT_ONCE]).items():
                rows = {**rows, item_id: rows[item_id]._replace(title=outline.title, size=outline.size)}
        return {item_id: row for item_id, row in rows.items() if row.title is not None}

    def _parse(self, item_ids: Sequence[int]) -> dict[int, Outline]:
        """Outlines of documents that were stored before outlines were kept."""
        items = self._store.items(item_ids, body=True)
        made = {item.id: outline_of(item.body or "", item.format) for item in items}
        with suppress(Busy):  # somebody writes a great deal; the next one who asks may keep them
            self._store.keep_outlines([(item.id, item.version, made[item.id]) for item in items])
        return made


def _listed(row: DocumentRow) -> DocumentSummary:
    return DocumentSummary(row.key, row.title or row.key, row.size or 0)


def _cleaned(document: str) -> str:
    path = normalized("NFC", document).replace("\\", "/")
    while path.startswith(("./", "/")):
        path = path.removeprefix("./").lstrip("/")
    return path
