"""Media: a body with a type, the cues and chunks that give its parts a time or a page, and transcripts of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.drawer import Cue, Records
from commonplace.kinds.knowledge.kinds import BodyLines, Shaped, entries, needed, optional, shown_id, string, whole
from commonplace.model import JSON, Chunk, Draft, Item, Span, fingerprint
from commonplace.store.base import Store

MEDIA_FIELDS = ("media_type", "url", "author", "language", "duration_ms", "cues", "chunks")
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


def shape_media(record: Mapping[str, JSON]) -> Shaped:
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


def media_record(item: Item, cues: Sequence[Cue], chunks: Sequence[Chunk]) -> dict[str, JSON]:
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


# transcripts: as text, subtitles or JSON, with the times and texts of the source


Format = Literal["text", "srt", "vtt", "json"]

CHARS_PER_SECOND = 15
"""Reading speed assumed for text without cues."""
_VTT_HEAD = "WEBVTT\n"
_LINE_ENDS = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class TranscriptRequest:
    """The format of a transcript, the range in milliseconds, and the most characters of an answer."""

    format: Format = "text"
    timestamps: bool = False
    from_ms: int | None = None
    to_ms: int | None = None
    most_chars: int = 80_000


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript, or the first part of one."""

    content: str | dict[str, JSON]
    timed: bool
    next_ms: int | None = None
    """Start of the first cue that there was no room for; None where all are here."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A cue with its text."""

    index: int
    start_ms: int
    end_ms: int
    text: str
    speaker: str | None


def transcript(store: Store, item: Item, wanted: TranscriptRequest) -> Transcript:
    """Return the transcript of a media item that was fetched with its body."""
    cues, body = store.drawer(Records).cues(item.id), item.body or ""
    if not cues:
        return _untimed(item, body, wanted)
    spoken = [_spoken(number, cue, body) for number, cue in enumerate(cues)]
    cues_in_range = [cue for cue in spoken if _overlaps(cue, wanted)]
    fitting, next_ms = _fitting(item, cues_in_range, wanted)
    return Transcript(_written(item, fitting, wanted), True, next_ms)


def _untimed(item: Item, body: str, wanted: TranscriptRequest) -> Transcript:
    """Return one cue over the whole text, as long as the item is known to last or as its text takes to read."""
    text = body[: wanted.most_chars]
    if wanted.format == "text":
        return Transcript(text, timed=False)
    if wanted.format == "json":
        return Transcript({**_head(item), "cues": [], "text": text}, timed=False)
    length = item.fields.get("duration_ms")
    end = int(length) if length is not None else -(-len(body) * 1000 // CHARS_PER_SECOND)
    only = [_Spoken(0, 0, end, text, None)] if text.strip() else []
    return Transcript(_written(item, only, wanted), timed=False)


def _spoken(number: int, cue: Cue, body: str) -> _Spoken:
    return _Spoken(number, cue.start_ms, cue.end_ms, body[cue.char_start : cue.char_end], cue.speaker)


def _overlaps(cue: _Spoken, wanted: TranscriptRequest) -> bool:
    """Return whether a cue is in the range. A cue without duration is at its start."""
    low, high = wanted.from_ms, wanted.to_ms
    ends = cue.end_ms > low or cue.start_ms >= low if low is not None else True
    begins = cue.start_ms < high or (low is not None and cue.start_ms == low == high) if high is not None else True
    return ends and begins


def _fitting(item: Item, cues: Sequence[_Spoken], wanted: TranscriptRequest) -> tuple[Sequence[_Spoken], int | None]:
    """Return the first whole cues there is room for, and when the next one starts.

    The first cue is always among them, and so are those under way where it begins, so that continuing from there makes
    progress.
    """
    write, low = _WRITERS[wanted.format], -1 if wanted.from_ms is None else wanted.from_ms
    used = len(_before(item, wanted))
    for number, cue in enumerate(cues):
        used += len(write(number + 1, cue, wanted.timestamps))
        if used > wanted.most_chars and number and cue.start_ms > low:
            return cues[:number], cue.start_ms
        used += 1  # what stands between it and the next
    return cues, None


def _before(item: Item, wanted: TranscriptRequest) -> str:
    """Return what is written beside the cues."""
    if wanted.format == "json":
        return _compact({**_head(item), "cues": []})
    return f"{_VTT_HEAD}\n" if wanted.format == "vtt" else ""


def _written(item: Item, cues: Sequence[_Spoken], wanted: TranscriptRequest) -> str | dict[str, JSON]:
    if wanted.format == "json":
        return {**_head(item), "cues": [_record(cue) for cue in cues]}
    write = _WRITERS[wanted.format]
    blocks = [write(number, cue, wanted.timestamps) for number, cue in enumerate(cues, start=1)]
    if wanted.format == "text":
        return "\n".join(blocks)
    head = [_VTT_HEAD] if wanted.format == "vtt" else []
    return "\n".join((*head, *blocks))


def _head(item: Item) -> dict[str, JSON]:
    head = {"media_id": shown_id("media", item.key), "title": item.title}
    return {**head, "language": item.fields.get("language"), "duration_ms": item.fields.get("duration_ms")}


def _record(cue: _Spoken) -> dict[str, JSON]:
    times = {"index": cue.index, "start_ms": cue.start_ms, "end_ms": cue.end_ms}
    return {**times, "text": cue.text, "speaker": cue.speaker}


def _srt(number: int, cue: _Spoken, timestamps: bool) -> str:
    times = f"{clock(cue.start_ms, ',')} --> {clock(cue.end_ms, ',')}"
    text = "\n".join(_lines(cue.text))
    return f"{number}\n{times}\n{_label(cue)}{text}\n"


def _vtt(number: int, cue: _Spoken, timestamps: bool) -> str:
    voice = f"<v {_escaped(_speaker(cue))}>" if cue.speaker else ""
    text = _escaped("\n".join(_lines(cue.text)))
    return f"{clock(cue.start_ms)} --> {clock(cue.end_ms)}\n{voice}{text}\n"


def _text(number: int, cue: _Spoken, timestamps: bool) -> str:
    text = _label(cue) + " ".join(_lines(cue.text))
    return f"[{clock(cue.start_ms)}] {text}" if timestamps else text


def _json(number: int, cue: _Spoken, timestamps: bool) -> str:
    return _compact(_record(cue))


def _compact(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _label(cue: _Spoken) -> str:
    return f"{_speaker(cue)}: " if cue.speaker else ""


def _speaker(cue: _Spoken) -> str:
    return " ".join(_lines(cue.speaker or ""))


def _lines(text: str) -> list[str]:
    """Return the lines that are not blank: a blank one would end the cue it is written in."""
    return [line for line in _LINE_ENDS.split(text) if line.strip()]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_WRITERS: dict[str, Callable[[int, _Spoken, bool], str]] = {"srt": _srt, "vtt": _vtt, "text": _text, "json": _json}


def clock(ms: int, mark: str = ".") -> str:
    """Return milliseconds as `HH:MM:SS.mmm`, hours always."""
    seconds, rest = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{mark}{rest:03}"
