"""One memory: its text, what it was before, and the forms that write, correct, replace and delete it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher

from commonplace.errors import CommonplaceError, InvalidInput, NotFound, VersionConflict
from commonplace.kinds.memories.entry import Entry, New, Past, Revision, normal_tags
from commonplace.library import Library
from commonplace.model import JSON
from commonplace.store.attachments import Attachments
from commonplace.tools.arguments import moment
from commonplace.web.deletions import Deletions
from commonplace.web.frame import PICTURES, Answer, Redirect, Sheet, StoredFile
from commonplace.web.memories_screen import DONE, MemoryFilter, memories, row_of
from commonplace.web.paths import with_query
from commonplace.web.visits import Visit

LONGEST_NAME = 200
"""Characters of a thread or a tag."""
_THREAD = "main"
_MOST_COMPARED = 20_000
"""Characters up to which two versions are compared word by word; longer ones are compared line by line."""
_ALIKE = 0.5
"""The share that two versions have in common where what changed is told piece by piece."""
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def memory(library: Library, visit: Visit) -> Sheet:
    """Return a memory with its past."""
    return _sheet(library, visit, _entry(library, visit))


def image(library: Library, visit: Visit) -> StoredFile:
    """Return a picture of a memory, by its number from 0."""
    entry, at = _entry(library, visit), visit.path.rpartition("/")[2]
    files = library.store.drawer(Attachments).of(entry.item.id)
    if len(at) > 4 or int(at) >= len(files):
        raise NotFound(f"Memory {entry.number} has no picture {at}.")
    file, _ = files[int(at)]
    return StoredFile(file.data, file.media_type)


def write(library: Library, visit: Visit) -> Answer:
    """Store a new memory, or say what is missing beside what was typed."""
    try:
        new = New(
            thread=_short("thread", visit.field("thread").strip() or _THREAD),
            source="user",
            text=_text(visit),
            tags=_tags(visit),
            expires_at=_end(visit),
        )
        _store(library, new)
    except InvalidInput as error:
        shown = memories(library, visit)
        typed = {name: visit.field(name) for name in ("text", "thread", "tags", "expires")}
        return _again(shown, str(error), error.status, typed)
    return Redirect(with_query("/memories", done="stored"))


def correct(library: Library, visit: Visit) -> Answer:
    """Change a memory in place; its former state is kept. What somebody else wrote meanwhile is not written over."""
    entry = _entry(library, visit)
    try:
        revision = Revision(
            entry.number,
            text=_text(visit),
            tags=_tags(visit),
            expires_at=_end(visit),
            expected_version=_version(visit),
        )
        library.memories.revise([revision])
    except VersionConflict:
        problem = (
            "Somebody changed this memory while you wrote. Compare it with yours, and send it again to keep yours."
        )
        return _failed(library, visit, entry, problem, 409)
    except InvalidInput as error:
        return _failed(library, visit, entry, str(error), error.status)
    return Redirect(with_query(f"/memories/{entry.number}", done="corrected"))


def replace(library: Library, visit: Visit) -> Answer:
    """Store a memory in the place of this one, which stays under “Replaced”."""
    entry = _entry(library, visit)
    try:
        new = New(entry.row.thread, "user", _text(visit), tags=_tags(visit), supersedes=(entry.number,))
        number = _store(library, new)
    except InvalidInput as error:
        return _failed(library, visit, entry, str(error), error.status)
    return Redirect(with_query(f"/memories/{number}", done="replaced"))


def delete_one(library: Library, visit: Visit) -> Answer:
    """Delete a memory, which can be undone for a while."""
    entry = _entry(library, visit)
    undo, count = library.part(Deletions).delete(library.memories, [entry.number])
    return Redirect(MemoryFilter({}).path(done="deleted", n=count, undo=undo))


def _entry(library: Library, visit: Visit) -> Entry:
    number = visit.path.split("/")[2]
    found = library.memories.entries([int(number)], history=True) if len(number) < 19 else []
    if not found:
        raise NotFound(f"There is no memory {number} any more. It was deleted, or it has expired.")
    return found[0]


def _sheet(library: Library, visit: Visit, entry: Entry) -> Sheet:
    item, row = entry.item, entry.row
    newer = row.superseded_by
    record: dict[str, JSON] = {
        **row_of(entry),
        "text": item.body or "",
        "is_cut": False,
        "metadata": dict(item.metadata),
        "images": [
            {"path": f"/memories/{entry.number}/images/{at}", "type": file.media_type, "bytes": len(file.data)}
            for at, (file, _) in enumerate(library.store.drawer(Attachments).of(item.id))
        ],
        "supersedes": list(row.supersedes),
        "superseded_by": newer,
        "past": _past(entry),
        "done": DONE.get(visit.query.get("done", ""), ""),
    }
    ends = record["expires_at"]
    typed = {
        "text": item.body or "",
        "tags": ", ".join(item.tags),
        "expires": (ends or "")[:10],
        "version": item.version,
    }
    title = " ".join((item.body or "").split())[:70] or f"Memory {entry.number}"
    beside = {"problem": "", "typed": typed, "pictures": PICTURES}
    return Sheet("memory.html", title, record, "memories", markdown=item.body or "", beside=beside)


def _failed(library: Library, visit: Visit, entry: Entry, problem: str, status: int) -> Sheet:
    """Return a memory with the form as it was typed, and what is wrong with it."""
    entry = (library.memories.entries([entry.number], history=True) or [entry])[0]
    typed = {name: visit.field(name) for name in ("text", "tags", "expires")}
    return _again(_sheet(library, visit, entry), problem, status, {**typed, "version": entry.item.version})


def _again(sheet: Sheet, problem: str, status: int, typed: dict[str, JSON]) -> Sheet:
    record = {
        **sheet.record,
        "error": {"code": "invalid_argument" if status == 400 else "conflict", "message": problem},
    }
    beside = {**sheet.beside, "problem": problem, "typed": typed}
    return Sheet(sheet.template, sheet.title, record, sheet.section, status=status, beside=beside)


def _store(library: Library, new: New) -> int:
    (stored,) = library.memories.store([new])
    if isinstance(stored, CommonplaceError):
        raise stored
    return stored.number


# what was typed


def _text(visit: Visit) -> str:
    text = visit.field("text").strip()
    if not text:
        raise InvalidInput("A memory needs a text. Write what should be known next time.")
    return text


def _tags(visit: Visit) -> tuple[str, ...]:
    return normal_tags(_short("tag", tag) for tag in visit.field("tags").split(","))


def _short(what: str, text: str) -> str:
    if len(text) > LONGEST_NAME:
        raise InvalidInput(f"A {what} has at most {LONGEST_NAME} characters. Choose a shorter one.")
    return text


def _end(visit: Visit) -> datetime | None:
    text = visit.field("expires").strip()
    if not text:
        return None
    end = moment("The date", text, end=True)
    if end <= datetime.now(UTC):
        raise InvalidInput("The date on which a memory expires has to be in the future. Leave it empty to keep it.")
    return end


def _version(visit: Visit) -> int | None:
    text = visit.field("version")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


# what it was before


def _past(entry: Entry) -> list[dict[str, JSON]]:
    """Return the former versions, newest first, each with what the next one changed."""
    later, told = entry.item.body or "", []
    for one in entry.past:
        told.append(
            {
                "version": one.version,
                "updated_at": datetime.fromtimestamp(one.updated_at / 1_000_000, UTC).isoformat(),
                "text": one.body,
                "tags": list(one.tags),
                "changes": _changes(one.body, later),
                "other": _other(one, entry.past, entry),
            }
        )
        later = one.body
    return told


def _other(one: Past, past: Sequence[Past], entry: Entry) -> str:
    """Return what changed beside the text, in words."""
    at = past.index(one)
    tags = past[at - 1].tags if at else entry.item.tags
    metadata = past[at - 1].metadata if at else dict(entry.item.metadata)
    changed = [name for name, is_so in (("tags", one.tags != tags), ("properties", one.metadata != metadata)) if is_so]
    return f"The {' and '.join(changed)} changed." if changed else ""


def _changes(before: str, after: str) -> list[list[str]]:
    """Return the pieces of two texts as [what, text], where what is same, gone or new."""
    unit = _WORD if max(len(before), len(after)) <= _MOST_COMPARED else _LINE
    old, new = unit.findall(before), unit.findall(after)
    matcher, pieces = SequenceMatcher(None, old, new, autojunk=False), list[list[str]]()
    words, others = ([piece for piece in text if not piece.isspace()] for text in (old, new))
    # A patchwork of what is the same by chance would tell nothing.
    if SequenceMatcher(None, words, others, autojunk=False).ratio() < _ALIKE:
        return [["gone", before], ["same", "\n"], ["new", after]]
    for what, low, high, first, last in matcher.get_opcodes():
        if what == "equal":
            pieces.append(["same", "".join(old[low:high])])
            continue
        if low < high:
            pieces.append(["gone", "".join(old[low:high])])
        if first < last:
            pieces.append(["new", "".join(new[first:last])])
    return pieces
