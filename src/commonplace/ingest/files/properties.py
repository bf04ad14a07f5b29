"""What a Markdown file says of itself: the properties in its front matter, and the tags in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Span
from commonplace.store.filters import fold_tag
from commonplace.text.chunk import chunk
from commonplace.text.structure import front_matter, read

MOST_TAGS, LONGEST_TAG = 200, 100

_TAGS = ("tags", "tag", "keywords")
_CREATED = ("created", "created_at", "date")
_UPDATED = ("updated", "updated_at", "modified")
_TAG = re.compile(
    # A letter at least, and no punctuation but `_`, `-` and `/`: `#1` is a number, `#a/b` a tag below another.
    r"(?<!\S)#((?=[\d/_-]*[^\W\d_])"
    r"[^\s!-,.:-@\[-^`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]{1,100})"
)
_FENCES = re.compile(r"\A.*\n|(?:---|\.\.\.|\+\+\+)\s*\Z")
_NAME = re.compile(r"\A.*\n(?:#.*\n)*[\w\"'-][^\n]*:")
"""Front matter begins with a name, whatever is wrong with it further on."""
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a file beside its text."""

    tags: tuple[str, ...] = ()
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    created: datetime | None = None
    updated: datetime | None = None
    words: str = ""
    """The front matter as it is written: its words are looked for, and are no passage."""
    spans: tuple[Span, ...] | None = None
    """The passages of the text below the front matter. None: those of the whole body."""
    notes: tuple[str, ...] = ()
    """What could not be taken as it was meant, as parts of sentences."""


def properties_of(body: str) -> Properties:
    """Return what a Markdown text says of itself.

    Front matter that cannot be read says nothing, and a note why. What is none after all, a list or a sentence between
    two rules, is text.
    """
    matter = front_matter(body) if body.startswith(("---", "+++")) else ""
    said, why = _said(matter) if matter else (None, "")
    if said is None:
        tags, notes = _few(_inline(body, 0))
        return Properties(tags, notes=(*_told(why), *notes))
    start = len(matter)
    while blank := _BLANK_LINE.match(body, start):
        start = blank.end()
    metadata = {name: value for name, value in said.items() if name not in ("title", *_TAGS)}
    created, updated = _moment(metadata, _CREATED), _moment(metadata, _UPDATED)
    tags, notes = _few([*(tag for name in _TAGS for tag in _tags(said.get(name))), *_inline(body, start)])
    return Properties(
        tags=tags,
        metadata=metadata,
        created=created,
        updated=updated,
        words=_FENCES.sub("", matter),
        spans=tuple(chunk(body, "markdown", start=start)) or (Span("", 0, 0, 1, 1),),  # found by its title then
        notes=(*_told(why), *notes),
    )


def _told(why: str) -> tuple[str, ...]:
    return (f"its front matter says nothing: {why}",) if why else ()


def _said(matter: str) -> tuple[dict[str, JSON] | None, str]:
    """The names and values of front matter, and why there are none. None where it is no front matter."""
    from commonplace.ingest.imports.front import LONGEST, NoNames, fields_of
    from commonplace.ingest.imports.source import Unreadable

    try:
        return fields_of(matter), ""
    except NoNames:
        return None, ""
    except Unreadable as error:
        if not _NAME.search(matter):
            return None, ""
        return (None if len(matter) > LONGEST else {}), str(error)


def _moment(metadata: dict[str, JSON], names: Sequence[str]) -> datetime | None:
    """The first of these that is a time, taken out of the metadata; what is none stays there."""
    from commonplace.ingest.imports.dates import moment

    for name in names:
        if when := moment(metadata.get(name)):
            del metadata[name]
            return datetime.fromisoformat(when)
    return None


def _tags(given: JSON) -> Iterator[str]:
    """The tags of a list, or of a text with commas or blanks between them."""
    if isinstance(given, str):
        given = given.split(",") if "," in given else given.split()
    for one in given if isinstance(given, list) else [given]:
        if isinstance(one, str | int | float) and not isinstance(one, bool):
            tag = " ".join(str(one).strip().removeprefix("#").split())
            if 0 < len(tag) <= LONGEST_TAG:
                yield tag


def _few(tags: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """So many tags as are kept, each once in its first spelling, and what is said of the rest."""
    found: dict[str, str] = {}
    for tag in tags:
        found.setdefault(fold_tag(tag), tag)
    kept = tuple(found.values())[:MOST_TAGS]
    return kept, (f"only the first {MOST_TAGS} of {len(found)} tags were kept",) if len(found) > MOST_TAGS else ()


def _inline(body: str, start: int) -> Iterator[str]:
    """The tags in a text, outside of headings and code. It is read for them only where there may be one."""
    found = list(_TAG.finditer(body, start)) if "#" in body else []
    if not found:
        return
    blocks = read(body).blocks
    passed = {
        line for block in blocks if block.kind in ("fence", "code", "heading") for line in range(block.line, block.end)
    }
    line, at = body.count("\n", 0, start), start
    for tag in found:
        line, at = line + body.count("\n", at, tag.start()), tag.start()
        if line not in passed and not _in_code_span(body, at):
            yield tag[1].rstrip("/")


def _in_code_span(body: str, at: int) -> bool:
    begins = body.rfind("\n", 0, at) + 1
    if "`" not in body[begins:at]:
        return False
    ends = body.find("\n", at)
    spans = _CODE_SPAN.finditer(body, begins, ends if ends >= 0 else len(body))
    return any(span.start() < at < span.end() for span in spans)
