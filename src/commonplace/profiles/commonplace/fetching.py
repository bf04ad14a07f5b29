"""The tool `fetch`: an item, or a part of it, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from commonplace.errors import CommonplaceError, NotFound
from commonplace.kinds.documents.locating import (
    CHUNK,
    locate,
    span,
)
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.model import JSON, Chunk, Item, uri_of
from commonplace.space import Space
from commonplace.store.chunks import Chunks
from commonplace.store.messages import Messages
from commonplace.text.text_lines import line_starts, split_lines
from commonplace.text.token_estimates import estimate, reach, safe_cut
from commonplace.tools.budget import FRAME, cut_down, tokens_of
from commonplace.tools.schema import (
    INTEGER,
    OBJECT,
    STRING,
    STRINGS,
    answer,
    choice,
    integer,
    many,
    maybe,
    obj,
    one_or_many,
)
from commonplace.tools.tool import LOOKS, Call, Tool

_REASON = 30
"""Tokens reserved to say why a later address leads nowhere."""


@dataclass(frozen=True, slots=True)
class TextRange:
    """The text an address means: an item's body, and the lines of it to read, counted from 1."""

    item: Item
    body: str
    first: int = 1
    last: int | None = None
    chunk: int | None = None
    """The ordinal of the passage that the address names."""
    chars: tuple[int, int] | None = None
    """The characters to read, where a line is shared with text outside."""
    char: int = 1
    """The first character to read of the first line, counted from 1."""
    rest: bool = False
    """Whether it continues a line that was cut, in which case modes are ignored."""


def fetch(call: Call, given: Mapping[str, JSON]) -> dict[str, JSON]:
    wanted = [given["uri"]] if isinstance(given["uri"], str) else given["uri"]
    items: list[dict[str, JSON]] = []
    missing: list[dict[str, JSON]] = []
    reasons: list[str] = []
    left, unread = max(1, given["max_tokens"] - FRAME), []
    names, for_reasons = [tokens_of({"uri": uri}) for uri in wanted], given["max_tokens"] // 4
    for number, uri in enumerate(wanted, 1):
        waiting = min(sum(names[number:]), given["max_tokens"] // 2)  # what does not fit is named, which takes room
        try:
            place = _located(call.space, uri, given["from_line"])
        except CommonplaceError as error:
            if len(wanted) == 1:
                raise
            reasons.append(str(error))
            missing.append(_missing(uri, reasons[-1], min(left - waiting, for_reasons)))
            left -= tokens_of(missing[-1])
            for_reasons -= tokens_of(missing[-1]) - names[number - 1]
            continue
        room = max(1, left - waiting - (_REASON if number < len(wanted) else 0))
        if items and room <= FRAME:
            unread.append(uri)
            left -= names[number - 1]
            continue
        standing = standing_of(call.space, [place.item])[0]
        narrowed = _narrowed(call.space, place, given["mode"], room - tokens_of(standing))
        items.append(_read(narrowed, room, standing))
        left -= tokens_of(items[-1])
    if missing and not items:
        explained = max(1, sum("message" in entry for entry in missing))
        others = len(missing) - explained
        more = [f"More of these addresses lead nowhere: {others}."] if others else []
        raise NotFound(" ".join([*reasons[:explained], *more]))
    return {"items": items, "missing": missing, "left_out": unread}


def _missing(uri: str, reason: str, room: int) -> dict[str, JSON]:
    """Return the entry for an address that leads nowhere, with the reason if there is room."""
    entry = cut_down({"uri": uri, "message": reason}, ("message",), room)
    return entry if tokens_of(entry["message"]) >= min(_REASON // 2, tokens_of(reason)) else {"uri": uri}


def _located(space: Space, uri: str, from_line: int) -> TextRange:
    """Return the span of `…#heading`, `…#chunk-3`, `…:line`, `…:line:count`, `…:line@char` or a plain address."""
    item, heading, lines = locate(space, uri)
    body = _conversation(space, item) if item.kind == "conversation" else item.body or ""
    if lines:
        first, last = span(lines)
        char = max(1, int(lines[2])) if lines[2] and from_line <= first else 1
        return TextRange(item, body, max(first, from_line), last, char=char, rest=bool(lines[2]))
    if not heading:
        return TextRange(item, body, from_line)
    if chunk := CHUNK.match(heading):
        return _later(_chunk(space, TextRange(item, body), int(chunk[1])), from_line)
    section = space.heading(item, heading)
    return TextRange(item, body, max(section.line, from_line), section.line_end)


def _conversation(space: Space, item: Item) -> str:
    from commonplace.kinds.knowledge.item_reading import rendered  # a room of its own, that only conversations need

    return rendered(space.store, item)


def _chunk(space: Space, place: TextRange, ordinal: int) -> TextRange:
    chunks = _chunks_of(space, place.item)
    if ordinal >= len(chunks):
        has = f"Its passages count from 0 to {len(chunks) - 1}." if chunks else "It has none at all."
        raise NotFound(f"{place.item.uri} has no passage {ordinal}. {has}")
    return _spanned(replace(place, chunk=ordinal), chunks, ordinal, ordinal)


def _later(passage: TextRange, line: int) -> TextRange:
    """Return the part of a passage from one of its lines on."""
    if line <= passage.first or not passage.chars:
        return passage
    starts, end = line_starts(passage.body), passage.chars[1]
    start = min(starts[line - 1], end) if line <= len(starts) else end
    return replace(passage, first=line, chars=(start, end), char=1)


def _chunks_of(space: Space, item: Item) -> list[Chunk]:
    """Return an item's chunks; none for a conversation, whose messages have their own."""
    return space.store.drawer(Chunks).of(item.id) if item.kind != "conversation" else []


def _spanned(place: TextRange, chunks: list[Chunk], first: int, last: int) -> TextRange:
    """Return the span of some passages, without what other passages have of its first and last line."""
    start, end = chunks[first], chunks[last]
    lines = place.body.split("\n")
    begins = opening = sum(map(len, lines[: start.line_start - 1])) + start.line_start - 1
    closing = sum(map(len, lines[: end.line_end])) + end.line_end - 1
    if first and chunks[first - 1].line_end >= start.line_start:
        opening = start.char_start
    if last + 1 < len(chunks) and chunks[last + 1].line_start <= end.line_end:
        closing = end.char_end
    char = opening - begins + 1
    return replace(place, first=start.line_start, last=end.line_end, chars=(opening, closing), char=char)


def _narrowed(space: Space, place: TextRange, mode: str, room: int) -> TextRange:
    """Return the span narrowed to its passage; with `siblings`, widened by as many neighbors as fit."""
    if mode == "full" or place.rest:
        return place
    if mode == "siblings" and place.item.kind == "message":
        return _among_others(space, place, room)
    chunks = _chunks_of(space, place.item)
    if not chunks:
        return place
    at = place.chunk if place.chunk is not None else _chunk_at(chunks, place.first)
    around = _widened([chunk.text for chunk in chunks], at, room, place.item) if mode == "siblings" else (at, at)
    passage = _spanned(place, chunks, *around)
    return passage if _room_beside(place.item, chunks[at].text, room) >= 0 else _later(passage, place.first)


def _among_others(space: Space, place: TextRange, room: int) -> TextRange:
    """Return a message's span in its conversation, where its neighbors are what others said.

    A message too long for neighbors stays alone and continues by its own lines.
    """
    from commonplace.kinds.knowledge.item_reading import spoken

    conversation = space.get(uri_of("conversation", "", place.item.parent), body=False)
    said = spoken(space.store, conversation)
    at = 1 + space.store.drawer(Messages).of(conversation.key).index(place.item.id)  # after the title
    if _room_beside(conversation, said[at], room) < 0:
        return place
    first, last = _widened(said, at, room, conversation)
    lines = [*accumulate((text.count("\n") + 2 for text in said), initial=1)]
    return TextRange(conversation, "\n\n".join(said), lines[first], lines[last + 1] - 2)


def _widened(texts: Sequence[str], at: int, room: int, item: Item) -> tuple[int, int]:
    """Return the first and last of the texts that fit, widened in turn before and after `at`, which is not cut."""
    first = last = at
    left = _room_beside(item, texts[at], room)
    growing = {-1, 1}
    while growing:
        for side, following in ((-1, first - 1), (1, last + 1)):
            size = _written(texts[following]) if 0 <= following < len(texts) else left + 1
            if side not in growing or size > left:
                growing.discard(side)
                continue
            left -= size
            first, last = min(first, following), max(last, following)
    return first, last


def _room_beside(item: Item, text: str, room: int) -> int:
    """Return the tokens left for neighbors beside a text and its item's fields; negative if it is too long."""
    return room - tokens_of(_about(item, len(text), len(text), room)) - _written(text)


def _written(text: str) -> int:
    """Return the tokens of a text's lines as written out, with one more up to the next text."""
    return 1 + sum(map(tokens_of, text.split("\n")))


def _chunk_at(chunks: list[Chunk], line: int) -> int:
    """Return the passage that a line is in, else the last that begins before it."""
    before = [n for n, chunk in enumerate(chunks) if chunk.line_start <= line]
    return next((n for n in before if chunks[n].line_end >= line), before[-1]) if before else 0


def standing_of(space: Space, items: Sequence[Item]) -> list[dict[str, JSON]]:
    """Return each item's fields that bear on trust: a message's sender, the memory that replaced a memory."""
    numbers = [item.id for item in items if item.kind == "memory"]
    rows = space.store.drawer(EntryRows).of(numbers) if numbers else []
    later = {row.item_id: {"superseded_by": f"memory://{row.superseded_by}"} for row in rows if row.superseded_by}
    said = {item.id: {"sender": item.fields.get("sender", "")} for item in items if item.kind == "message"}
    return [{**later.get(item.id, {}), **said.get(item.id, {})} for item in items]


def _read(place: TextRange, room: int, standing: Mapping[str, JSON]) -> dict[str, JSON]:
    lines = split_lines(place.body)
    start = min(place.first, len(lines))
    about = {**_about(place.item, len(lines), start, room - tokens_of(dict(standing))), **standing}
    kept: list[str] = []
    used = tokens_of(about)
    wanted = place.body[slice(*place.chars)].split("\n") if place.chars else lines[start - 1 : place.last]
    if wanted and not place.chars:
        wanted[0] = wanted[0][place.char - 1 :]
    rest: dict[str, JSON] = {}
    for line in wanted:
        size = tokens_of(line)  # as it is written out, where a tab or a quote is two characters
        if used + size > room:
            if not kept:  # one line that is too long by itself: what fits of it, rather than nothing
                kept.append(_shortened(line, max(1, room - used)))
                count = f":{place.last - start + 1}" if place.last is not None else ""
                rest = {"rest_of_line": f"{place.item.uri}:{start}@{place.char + len(kept[0]) - 1}{count}"}
            break
        used += size
        kept.append(line)
    following = start + len(kept) if len(kept) < len(wanted) else None
    to_the_end = following is None and place.last is None and not rest
    end = "\n" if to_the_end and place.body.endswith("\n") else ""
    return {**about, "text": "\n".join(kept) + end, "next_line": following, **rest}


def _about(item: Item, lines: int, start: int, room: int) -> dict[str, JSON]:
    """Return an item's fields beside its text. The user's own may be of any size: they get half of `room` at most."""
    about = {"uri": item.uri, "title": item.title, "lines": lines, "from_line": start, "next_line": None}
    about |= {"tags": list(item.tags), "metadata": dict(item.metadata), "version": item.version}
    about |= {"updated_at": item.updated_at.isoformat()}
    for name in ("metadata", "tags", "updated_at"):
        if tokens_of(about) > room // 2:
            del about[name]
    return cut_down(about, ("title",), room // 2)


def _shortened(line: str, room: int) -> str:
    end = reach(line, 0, 4 * room)
    while end and (excess := tokens_of(line[:end]) - room) > 0:
        end = reach(line, 0, 4 * max(0, estimate(line[:end]) - excess))
    return line[: safe_cut(line, end) or max(1, end)] + "…"  # something, or its rest would never be read


FETCH = Tool(
    name="fetch",
    title="Fetch",
    description=(
        "Read items by address, within a token budget. An address may end in #heading (a section), #chunk-3 (a "
        "passage), :120 (from that line on) or :120:40 (forty lines). Continue at next_line (null: the end), after a "
        "cut line at rest_of_line. missing does not exist, left_out did not fit."
    ),
    input=obj(
        required=("uri",),
        uri=one_or_many("One or up to 50: notes://tea:12, or the end of a path: tea.md:12.", 50),
        from_line=integer("First line to read.", default=1, least=1, most=10**9),
        mode=choice("From there on, its passage, or with neighbors.", "full", "chunk", "siblings"),
        max_tokens=integer("Token budget.", default=4000, least=100, most=200_000),
    ),
    output=answer(
        items=many(
            answer(
                required=("uri", "text"),
                uri=STRING,
                title=STRING,
                text=STRING,
                from_line=INTEGER,
                next_line=maybe(INTEGER),
                rest_of_line=STRING,
                lines=INTEGER,
                tags=STRINGS,
                metadata=OBJECT,
                version=INTEGER,
                updated_at=STRING,
            )
        ),
        missing=many(answer(required=("uri",), uri=STRING, message=STRING)),
        left_out=STRINGS,
    ),
    annotations=LOOKS,
    handler=fetch,
)
