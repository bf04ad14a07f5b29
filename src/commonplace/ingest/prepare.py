"""A draft on its way into the store: checked, cut into passages, its language told, its vector keys made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from commonplace.errors import InvalidInput
from commonplace.model import JSON, LAST_MOMENT, SCHEMES, Draft, Span, fingerprint
from commonplace.store.filters import fold_tag
from commonplace.store.rows import Passage, Write
from commonplace.store.shaping import is_number
from commonplace.text.chunk import LONGEST_PATH, ChunkRules, chunk
from commonplace.text.languages import SAMPLE
from commonplace.text.outline import outline_of
from commonplace.text.told_language import language_of

RULES = ChunkRules()
DEEPEST = 100
LAST_LINE = 2**31 - 1  # that every store keeps
LARGEST_BITS = 1000  # of an integer: larger ones are infinite as floats, and Python will not print much larger ones


def prepare(draft: Draft, expected_version: int | None = None) -> Write:
    """Return everything the store needs to keep a draft. Raise InvalidInput where it cannot be stored."""
    check(draft)
    tags: dict[str, str] = {}
    for tag in filter(None, map(str.strip, draft.tags)):
        tags.setdefault(fold_tag(tag), tag)
    if (unique_tags := tuple(tags.values())) != draft.tags:
        draft = replace(draft, tags=unique_tags)
    spans = draft.spans if draft.spans is not None else whole(draft)
    passages = [
        Passage(span, vector_key(embedded_text(draft.title, span.headings, span.text)), _plain(span.anchor))
        for span in spans
    ]
    outline = outline_of(draft.body, draft.format) if draft.kind == "document" else None
    begins = spans[0].char_start if spans and draft.kind == "document" else 0  # not with front matter
    beginning = f"{draft.title}\n{draft.body[begins : begins + SAMPLE]}"  # all that is looked at
    return Write(draft, passages, language_of(beginning), expected_version, outline)


def _plain(anchor: Mapping[str, JSON] | None) -> dict[str, JSON] | None:
    return None if anchor is None else dict(anchor)


def whole(draft: Draft) -> Sequence[Span]:
    """Return the passages of a body. An item without one is still found by its title, through one empty passage."""
    spans = chunk(draft.body, draft.format, RULES)
    if not spans and draft.title.strip() and draft.kind != "collection":
        return [Span("", 0, 0, 1, 1)]
    return spans


def embedded_text(title: str, headings: Sequence[str], text: str) -> str:
    """Return the text that a model reads of a passage: its title and headings, then its own text."""
    title = title[:LONGEST_PATH]
    path = [title, *headings] if not headings or headings[0] != title else list(headings)
    place = " › ".join(part for part in path if part)
    return f"{place}\n{text}" if place else text


def vector_key(text: str) -> bytes:
    return fingerprint(text)


def check(draft: Draft) -> None:
    """Raise InvalidInput for what cannot be stored, with a sentence that says where it is."""
    if not isinstance(draft, Draft):
        raise InvalidInput(f"What is stored must be a Draft, not {_type(draft)}.")
    if draft.kind not in SCHEMES:
        raise InvalidInput(f'There is no kind "{draft.kind}". The kinds are {", ".join(SCHEMES)}.')
    if not draft.key:
        raise InvalidInput(f"A {draft.kind} needs a key: its path, id or name.")
    if not isinstance(draft.key, str):
        raise InvalidInput(f"The key of a {draft.kind} must be text, not {_type(draft.key)}.")
    name = f"{draft.kind} {draft.key!a}"
    _check_types(draft, name)
    if _is_odd(draft.body) or _is_odd("".join((draft.key, draft.parent, draft.title, draft.format, *draft.tags))):
        for place, text in (
            ("key", draft.key),
            ("parent", draft.parent),
            ("title", draft.title),
            ("body", draft.body),
            ("format", draft.format),
            *(("tags", tag) for tag in draft.tags),
        ):
            _check_text(text, f"The {place} of {name}")
    for moment in (draft.created_at, draft.updated_at):
        if moment is not None and moment.tzinfo is not None:
            _check_moment(moment, name)
    for place, value in (("fields", draft.fields), ("metadata", draft.metadata)):
        check_json(value, f"The {place} of {name}")
    if draft.kind == "memory" and draft.fields.get("source"):
        _check_entry(draft, name)
    if draft.spans is not None:
        for span in draft.spans:
            _check_span(span, draft.body, name)


def _check_types(draft: Draft, name: str) -> None:
    """Raise InvalidInput for what a type checker would refuse, for callers who use none."""
    texts = (("parent", draft.parent), ("title", draft.title), ("body", draft.body), ("format", draft.format))
    for place, text in texts:
        if not isinstance(text, str):
            raise InvalidInput(f"The {place} of {name} must be text, not {_type(text)}.")
    if isinstance(draft.tags, str | bytes) or not isinstance(draft.tags, Collection):
        raise InvalidInput(f"The tags of {name} must be a tuple of texts, not {_type(draft.tags)}.")
    for tag in draft.tags:
        if not isinstance(tag, str):
            raise InvalidInput(f"The tags of {name} must be a tuple of texts, and one is {_type(tag)}.")
    for place, value in (("fields", draft.fields), ("metadata", draft.metadata)):
        if type(value) is not dict and not isinstance(value, Mapping):
            raise InvalidInput(f"The {place} of {name} must be an object, not {_type(value)}.")
    for moment in (draft.created_at, draft.updated_at):
        if moment is not None and not isinstance(moment, datetime):
            raise InvalidInput(f"A time of {name} must be a datetime, not {_type(moment)}.")


def _check_entry(draft: Draft, name: str) -> None:
    """Raise InvalidInput for an entry of a thread whose values do not fit the columns that they are kept in."""
    fields = draft.fields
    older, expires = fields.get("supersedes") or [], fields.get("expires_at")
    if not is_number(draft.key) or not isinstance(fields["source"], str):
        raise InvalidInput(f"{name} has a source, so it is an entry: its key is a number, its source a text.")
    if not isinstance(older, list) or not all(type(number) is int for number in older):
        raise InvalidInput(f"What {name} supersedes are no numbers of entries.")
    if expires is not None and (type(expires) is not int or abs(expires) > LAST_MOMENT):
        raise InvalidInput(f"The expiry of {name} is no time in microseconds within the years 1 to 9999 of UTC.")


def _check_span(span: Span, body: str, name: str) -> None:
    """Raise InvalidInput for a passage that is not just where it says: it could not be restored or imported."""
    if not isinstance(span, Span):
        raise InvalidInput(f"A passage of {name} must be a Span, not {_type(span)}.")
    for heading in span.headings:
        _check_text(heading, f"A heading of {name}")
        if "\n" in heading:
            raise InvalidInput(f"A heading of {name} is more than one line. Put it on one.")
    inside = 0 <= span.char_start <= span.char_end <= len(body)
    if not inside or body[span.char_start : span.char_end] != span.text:
        raise InvalidInput(f"A passage of {name} does not quote its body.")
    if not 1 <= span.line_start <= span.line_end <= LAST_LINE:
        raise InvalidInput(f"A passage of {name} has lines that cannot be: {span.line_start} to {span.line_end}.")
    if span.anchor is not None:
        check_json(span.anchor, f"The anchors of {name}")


def _type(value: object) -> str:
    return type(value).__name__


def _check_moment(moment: datetime, name: str) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"A time of {name} is not within the years 1 to 9999 of UTC. Give another.") from None


def _is_odd(text: str) -> bool:
    """Return whether a text is worth a closer look: most text is not."""
    return "\0" in text or not text.isascii()


def _check_text(text: str, place: str) -> None:
    if "\0" in text:
        raise InvalidInput(f"{place} contains U+0000, which cannot be stored. Remove it.")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{place} contains a lone surrogate, which is no character. Remove it.") from None


def check_json(value: JSON, place: str, depth: int = 0) -> None:
    """Raise InvalidInput for what no store keeps of a value, with a sentence about the place it has."""
    if depth > DEEPEST:
        raise InvalidInput(f"{place} are nested more than {DEEPEST} deep. Flatten them.")
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidInput(f"{place} hold a number that JSON cannot: {value}. Use null or a string.")
    elif type(value) is dict or isinstance(value, Mapping):  # asking for the one type is ten times as fast
        for name, member in value.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{place} are a JSON object: its names are strings, not {name!r}.")
            if "\0" in name or not name.isascii():
                _check_text(name, place)
            if type(member) is not str or depth == DEEPEST or "\0" in member or not member.isascii():
                check_json(member, place, depth + 1)
    elif isinstance(value, list | tuple):
        for member in value:
            check_json(member, place, depth + 1)
    elif isinstance(value, int):
        if value.bit_length() > LARGEST_BITS:
            raise InvalidInput(f"{place} hold a number of more than 300 digits. Use a string.")
    elif value is not None:
        raise InvalidInput(f"{place} hold a {type(value).__name__}, which JSON cannot. Use strings and numbers.")


def merge(target: JSON, patch: JSON) -> JSON:
    """Return a value with a merge patch (RFC 7396): null removes a member, objects merge, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
