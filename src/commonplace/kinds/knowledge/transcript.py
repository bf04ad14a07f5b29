"""Transcripts of media as text, subtitles or JSON, with the times and texts of the source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from commonplace.kinds.knowledge.kinds import shown_id
from commonplace.model import JSON, Item
from commonplace.store.base import Store
from commonplace.store.rows import Cue

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
    cues, body = store.cues(item.id), item.body or ""
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
