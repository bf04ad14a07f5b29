"""A draft on its way into the store: checked, cut into passages, its language told, its vector keys made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commonplace.errors import InvalidInput
from commonplace.model import JSON, SCHEMES, Draft, Span, fingerprint, uri_of
from commonplace.store.base import Passage, Write
from commonplace.text.chunk import ChunkRules, chunk
from commonplace.text.languages import detect

RULES = ChunkRules()
DEEPEST = 100


def prepare(draft: Draft, expected_version: int | None = None) -> Write:
    """Everything the store needs to keep a draft."""
    check(draft)
    draft = replace(draft, tags=tuple(dict.fromkeys(tag.strip() for tag in draft.tags if tag.strip())))
    spans = draft.spans if draft.spans is not None else whole(draft)
    passages = [Passage(span, vector_key(embedded_text(draft.title, span.headings, span.text))) for span in spans]
    return Write(draft, passages, detect(f"{draft.title}\n{draft.body}"), expected_version)


def whole(draft: Draft) -> Sequence[Span]:
    """The passages of a body. An item without one is still found by its title, through one empty passage."""
    spans = chunk(draft.body, draft.format, RULES)
    if not spans and draft.title.strip() and draft.kind != "collection":
        return [Span("", 0, 0, 1, 1)]
    return spans


def embedded_text(title: str, headings: Sequence[str], text: str) -> str:
    """What a model reads of a passage: where it stands, then what it says."""
    path = [title, *headings] if not headings or headings[0] != title else list(headings)
    place = " › ".join(part for part in path if part)
    return f"{place}\n{text}" if place else text


def vector_key(text: str) -> bytes:
    return fingerprint(text)


def check(draft: Draft) -> None:
    """Refuse what cannot be stored, with a sentence that says where it is."""
    if draft.kind not in SCHEMES:
        raise InvalidInput(f'There is no kind "{draft.kind}". The kinds are {", ".join(SCHEMES)}.')
    if not draft.key:
        raise InvalidInput(f"A {draft.kind} needs a key: its path, id or name.")
    name = f"{draft.kind} {draft.key!a}"
    texts = {"key": draft.key, "parent": draft.parent, "title": draft.title, "body": draft.body}
    for place, text in (*texts.items(), *(("tags", tag) for tag in draft.tags)):
        _check_text(text, f"the {place} of {name}")
    for place, value in (("fields", draft.fields), ("metadata", draft.metadata)):
        _check_json(value, f"the {place} of {name}", 0)
    if draft.spans is not None:
        for span in draft.spans:
            if draft.body[span.char_start : span.char_end] != span.text:
                raise InvalidInput(
                    f"A passage of {uri_of(draft.kind, draft.parent, draft.key)} does not quote its body."
                )


def _check_text(text: str, place: str) -> None:
    if "\0" in text:
        raise InvalidInput(f"{place} contains U+0000, which cannot be stored. Remove it.".capitalize())
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{place} contains a lone surrogate, which is no character. Remove it.".capitalize()
        ) from None


def _check_json(value: JSON, place: str, depth: int) -> None:
    if depth > DEEPEST:
        raise InvalidInput(f"{place} are nested more than {DEEPEST} deep. Flatten them.".capitalize())
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidInput(f"{place} hold a number that JSON cannot: {value}. Use null or a string.".capitalize())
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{place} are a JSON object: its names are strings, not {name!r}.".capitalize())
            _check_text(name, place)
            _check_json(member, place, depth + 1)
    elif isinstance(value, Sequence):
        for member in value:
            _check_json(member, place, depth + 1)
    elif value is not None and not isinstance(value, bool | int):
        raise InvalidInput(
            f"{place} hold a {type(value).__name__}, which JSON cannot. Use strings and numbers.".capitalize()
        )
