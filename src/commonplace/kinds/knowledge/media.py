"""Media: a body with a type, and the cues and chunks that give its parts a time or a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.shape import BodyLines, Shaped, entries, needed, optional, string, whole
from commonplace.model import JSON, Chunk, Draft, Item, Span, fingerprint
from commonplace.store.rows import Cue

FIELDS = ("media_type", "url", "author", "language", "duration_ms", "cues", "chunks")
_BETWEEN = "\n\n"
"""Separator of chunks that are joined into a body."""
CUE_CHUNK = 1500
"""Most characters of whole cues that are joined into a chunk."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A cue as a record gives it, before it has a place in the body."""

    start_ms: int
    end_ms: int
    text: str
    speaker: str | None


def shape(record: Mapping[str, JSON]) -> Shaped:
    """Return the draft and the cues that a media record describes. Raise InvalidInput."""
    title = needed(record, "title", "media")
    kind = needed(record, "media_type", "media").strip()
    parsed_cues, warnings = _said(entries(record, "cues"))
    chunks = entries(record, "chunks")
    body = _body(record, parsed_cues, chunks)
    lines = BodyLines(body)
    cues = _cues(body, parsed_cues)
    spans: tuple[Span, ...] | None = None
    if chunks:
        spans = _spans(body, lines, chunks)
    elif cues:
        spans = _runs(lines, cues)
    duration = whole(record, "duration_ms")
    if duration is None and cues:
        duration = max(cue.end_ms for cue in cues)
    fields: dict[str, JSON] = {"media_type": kind}
    fields |= {name: value for name in ("url", "author", "language") if (value := optional(record, name))}
    if duration is not None:
        fields["duration_ms"] = duration
    if chunks:
        fields["prechunked"] = True
    if cues:
        fields["cues"] = len(cues)
        fields["timing"] = _timing(cues)
    form = "text" if cues else "markdown"
    return Shaped(
        Draft("media", "0", title=title, body=body, format=form, fields=fields, spans=spans),
        cues=cues,
        warnings=tuple(warnings),
    )


def record(item: Item, cues: Sequence[Cue], chunks: Sequence[Chunk]) -> dict[str, JSON]:
    """Return the fields of a media record."""
    fields, body = item.fields, item.body or ""
    members: dict[str, JSON] = {name: fields.get(name) for name in ("media_type", "url", "author", "language")}
    members["duration_ms"] = fields.get("duration_ms")
    if cues:
        members["cues"] = [_cue_record(cue, body) for cue in cues]
    if fields.get("prechunked"):
        members["chunks"] = [
            {"start": chunk.char_start, "end": chunk.char_end, **(chunk.anchor or {})} for chunk in chunks
        ]
    return members


def _cue_record(cue: Cue, body: str) -> dict[str, JSON]:
    record: dict[str, JSON] = {"start_ms": cue.start_ms, "end_ms": cue.end_ms}
    record["text"] = body[cue.char_start : cue.char_end]
    return {**record, "speaker": cue.speaker} if cue.speaker else record


def _said(records: Sequence[Mapping[str, JSON]]) -> tuple[list[_Said], list[str]]:
    """Return the cues by their start, and warnings. A cue that ends before it starts is given no duration."""
    parsed_cues, backwards = [], 0
    for number, cue in enumerate(records):
        start, end = whole(cue, "start_ms"), whole(cue, "end_ms")
        if start is None or end is None or not isinstance(cue.get("text"), str):
            raise InvalidInput(f'cues.{number} needs "start_ms", "end_ms" and "text".', argument=f"cues.{number}")
        backwards += end < start
        parsed_cues.append(_Said(start, max(start, end), string(cue, "text"), optional(cue, "speaker")))
    warnings = []
    if backwards:
        cues = "1 cue ends" if backwards == 1 else f"{backwards} cues end"
        warnings.append(f"{cues} before the start; the end was set to the start.")
    return sorted(parsed_cues, key=lambda cue: cue.start_ms), warnings


def _body(record: Mapping[str, JSON], said: Sequence[_Said], chunks: Sequence[Mapping[str, JSON]]) -> str:
    """Return the body of a record: its own, else the texts of its cues, else those of its chunks."""
    body = record.get("body")
    if body is not None:
        return string(record, "body")
    if said:
        return "\n".join(cue.text for cue in said)
    texts = [chunk.get("text") for chunk in chunks]
    if texts and all(isinstance(text, str) for text in texts):
        return _BETWEEN.join(map(str, texts))
    return ""


def _cues(body: str, said: Sequence[_Said]) -> list[Cue]:
    """Return the cues with their places in the body. Raise InvalidInput where one is not there in order."""
    cues, at = [], 0
    for number, cue in enumerate(said):
        start = body.find(cue.text, at)
        if start < 0:
            raise InvalidInput(f"The text of cue {number} is not in the body after the one before it.", argument="cues")
        at = start + len(cue.text)
        cues.append(Cue(cue.start_ms, cue.end_ms, start, at, cue.speaker))
    return cues


def _timing(cues: Sequence[Cue]) -> str:
    """Return a digest of the cues, so that an item whose cues change counts as changed."""
    return fingerprint(*(repr(tuple(cue)) for cue in cues)).hex()


def _spans(body: str, lines: BodyLines, records: Sequence[Mapping[str, JSON]]) -> tuple[Span, ...]:
    """Return the chunks that a record gives, with their places in the body. Raise InvalidInput."""
    spans: list[Span] = []
    for number, chunk in enumerate(records):
        place = f"chunks.{number}"
        text = chunk.get("text")
        if isinstance(text, str):
            start = _start(body, text, spans)
            if start < 0:
                raise InvalidInput(f"The text of {place} is not in the body after the one before it.", argument=place)
            end = start + len(text)
        else:
            low, high = whole(chunk, "start"), whole(chunk, "end")
            if low is None or high is None or not low <= high <= len(body):
                raise InvalidInput(
                    f'{place} needs "text", or "start" and "end" within the body\'s {len(body)} characters.',
                    argument=place,
                )
            start, end = low, high
        spans.append(lines.span(start, end, _marks(chunk) or None))
    return tuple(spans)


def _start(body: str, text: str, before: Sequence[Span]) -> int:
    """Return where a chunk begins, -1 if nowhere.

    That is where joined chunks would, else after the beginning of the chunk before it, else at that beginning.
    """
    if not before:
        return body.find(text)
    last = before[-1]
    joined = last.char_end + len(_BETWEEN)
    if body.startswith(text, joined):
        return joined
    after = body.find(text, last.char_start + 1)
    return after if after >= 0 else body.find(text, last.char_start)


def _marks(chunk: Mapping[str, JSON]) -> dict[str, JSON]:
    marks: dict[str, JSON | None] = {"uuid": optional(chunk, "uuid")}
    marks |= {name: whole(chunk, name) for name in ("page", "start_ms", "end_ms")}
    return {name: value for name, value in marks.items() if value is not None}


def _runs(lines: BodyLines, cues: Sequence[Cue]) -> tuple[Span, ...]:
    """Return chunks of whole cues, each with the time it takes."""
    spans: list[Span] = []
    first = 0
    for number in range(1, len(cues) + 1):
        start = cues[first].char_start
        if number < len(cues) and cues[number].char_end - start <= CUE_CHUNK:
            continue
        run = cues[first:number]
        times = {"start_ms": run[0].start_ms, "end_ms": max(cue.end_ms for cue in run)}
        spans.append(lines.span(start, run[-1].char_end, times))
        first = number
    return tuple(spans)
