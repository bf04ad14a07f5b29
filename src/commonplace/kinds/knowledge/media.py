"""Media: a body with a type, and what says when or on which page its parts are: cues and chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.shape import Lines, Shaped, entries, needed, optional, string, whole
from commonplace.lazy_dataclass import dataclass
from commonplace.model import JSON, Chunk, Draft, Item, Span, fingerprint
from commonplace.store.rows import Cue

FIELDS = ("media_type", "url", "author", "language", "duration_ms", "cues", "chunks")
_BETWEEN = "\n\n"
"""Between chunks that make a body."""
CUE_CHUNK = 1500
"""Characters of whole cues that make a chunk."""


@dataclass(frozen=True, slots=True)
class _Said:
    start_ms: int
    end_ms: int
    text: str
    speaker: str | None


def shape(record: Mapping[str, JSON]) -> Shaped:
    title = needed(record, "title", "media")
    kind = needed(record, "media_type", "media").strip()
    said, warnings = _said(entries(record, "cues"))
    given = entries(record, "chunks")
    body = _body(record, said, given)
    lines = Lines(body)
    cues = _cues(body, said)
    spans: tuple[Span, ...] | None = None
    if given:
        spans = _spans(body, lines, given)
    elif cues:
        spans = _runs(lines, cues)
    duration = whole(record, "duration_ms")
    if duration is None and cues:
        duration = max(cue.end_ms for cue in cues)
    fields: dict[str, JSON] = {"media_type": kind}
    fields |= {name: value for name in ("url", "author", "language") if (value := optional(record, name))}
    if duration is not None:
        fields["duration_ms"] = duration
    if given:
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
    fields, body = item.fields, item.body or ""
    made: dict[str, JSON] = {name: fields.get(name) for name in ("media_type", "url", "author", "language")}
    made["duration_ms"] = fields.get("duration_ms")
    if cues:
        made["cues"] = [_cue_record(cue, body) for cue in cues]
    if fields.get("prechunked"):
        made["chunks"] = [
            {"start": chunk.char_start, "end": chunk.char_end, **(chunk.anchor or {})} for chunk in chunks
        ]
    return made


def _cue_record(cue: Cue, body: str) -> dict[str, JSON]:
    shown: dict[str, JSON] = {"start_ms": cue.start_ms, "end_ms": cue.end_ms}
    shown["text"] = body[cue.char_start : cue.char_end]
    return {**shown, "speaker": cue.speaker} if cue.speaker else shown


def _said(given: Sequence[Mapping[str, JSON]]) -> tuple[list[_Said], list[str]]:
    """The cues by their start. One that ends before it starts lasts no time."""
    said, backwards = [], 0
    for number, cue in enumerate(given):
        start, end = whole(cue, "start_ms"), whole(cue, "end_ms")
        if start is None or end is None or not isinstance(cue.get("text"), str):
            raise InvalidInput(f'cues.{number} needs "start_ms", "end_ms" and "text".', argument=f"cues.{number}")
        backwards += end < start
        said.append(_Said(start, max(start, end), string(cue, "text"), optional(cue, "speaker")))
    warnings = []
    if backwards:
        cues = "1 cue ends" if backwards == 1 else f"{backwards} cues end"
        warnings.append(f"{cues} before the start; the end was set to the start.")
    return sorted(said, key=lambda cue: cue.start_ms), warnings


def _body(record: Mapping[str, JSON], said: Sequence[_Said], chunks: Sequence[Mapping[str, JSON]]) -> str:
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
    cues, at = [], 0
    for number, cue in enumerate(said):
        start = body.find(cue.text, at)
        if start < 0:
            raise InvalidInput(f"The text of cue {number} is not in the body after the one before it.", argument="cues")
        at = start + len(cue.text)
        cues.append(Cue(cue.start_ms, cue.end_ms, start, at, cue.speaker))
    return cues


def _timing(cues: Sequence[Cue]) -> str:
    """So that an item whose cues change is one that changes."""
    return fingerprint(*(repr(tuple(cue)) for cue in cues)).hex()


def _spans(body: str, lines: Lines, given: Sequence[Mapping[str, JSON]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for number, chunk in enumerate(given):
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
    """Where a chunk begins: where joined ones do, else after the beginning of the one before it, else just there."""
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


def _runs(lines: Lines, cues: Sequence[Cue]) -> tuple[Span, ...]:
    """Chunks of whole cues, each with the time it takes."""
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
