"""The properties in the front matter of a Markdown file, and the tags in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

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
    """The title, tags, times and metadata of a file, beside its text."""

    tags: tuple[str, ...] = ()
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    created: datetime | None = None
    updated: datetime | None = None
    words: str = ""
    """The front matter as it is written: its words are looked for, and are no passage."""
    spans: tuple[Span, ...] | None = None
    """The passages of the text below the front matter. None: those of the whole body."""
    notes: tuple[str, ...] = ()
    """The parts that could not be taken as they were meant, as parts of sentences."""


def properties_of(body: str) -> Properties:
    """Return what a Markdown text says of itself.

    Front matter that cannot be read says nothing, and a note why. What is none after all, a list or a sentence between
    two rules, is text.
    """
    matter = front_matter(body) if body.startswith(("---", "+++")) else ""
    values, why = _said(matter) if matter else (None, "")
    if values is None:
        tags, notes = _few(_inline(body, 0))
        return Properties(tags, notes=(*_told(why), *notes))
    start = len(matter)
    while blank := _BLANK_LINE.match(body, start):
        start = blank.end()
    metadata = {name: value for name, value in values.items() if name not in ("title", *_TAGS)}
    created, updated = _moment(metadata, _CREATED), _moment(metadata, _UPDATED)
    tags, notes = _few([*(tag for name in _TAGS for tag in _tags(values.get(name))), *_inline(body, start)])
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
    """Return the names and values of front matter, and why there are none. None where it is no front matter."""
    from commonplace.ingest.imports.import_file import Unreadable
    from commonplace.ingest.imports.markdown_fields import LONGEST, NoNames, fields_of

    try:
        return fields_of(matter), ""
    except NoNames:
        return None, ""
    except Unreadable as error:
        if not _NAME.search(matter):
            return None, ""
        return (None if len(matter) > LONGEST else {}), str(error)


def _moment(metadata: dict[str, JSON], names: Sequence[str]) -> datetime | None:
    """Return the first of these that is a time, taken out of the metadata. Anything else stays there."""
    from commonplace.ingest.imports.import_file import moment

    for name in names:
        if when := moment(metadata.get(name)):
            del metadata[name]
            return datetime.fromisoformat(when)
    return None


def _tags(value: JSON) -> Iterator[str]:
    """Yield the tags of a list, or of a text with commas or blanks between them."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str | int | float) and not isinstance(one, bool):
            tag = " ".join(str(one).strip().removeprefix("#").split())
            if 0 < len(tag) <= LONGEST_TAG:
                yield tag


def _few(tags: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return so many tags as are kept, each once in its first spelling, and what is said of the rest."""
    tag_by_fold: dict[str, str] = {}
    for tag in tags:
        tag_by_fold.setdefault(fold_tag(tag), tag)
    first_tags = tuple(tag_by_fold.values())[:MOST_TAGS]
    return first_tags, (f"only the first {MOST_TAGS} of {len(tag_by_fold)} tags were kept",) if len(
        tag_by_fold
    ) > MOST_TAGS else ()


def _inline(body: str, start: int) -> Iterator[str]:
    """Yield the tags in a text, outside of headings and code. It is read for them only where there may be one."""
    tags = list(_TAG.finditer(body, start)) if "#" in body else []
    if not tags:
        return
    blocks = read(body).blocks
    passed = {
        line for block in blocks if block.kind in ("fence", "code", "heading") for line in range(block.line, block.end)
    }
    line, at = body.count("\n", 0, start), start
    for tag in tags:
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
