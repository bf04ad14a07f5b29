"""SubRip and WebVTT: cues with times to the millisecond, their styling left behind."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from math import isfinite
from typing import Any

from commonplace.ingest.imports.import_file import ImportFile, Piece, Record, Remarks, Unknown, Unreadable, text_or_none
from commonplace.ingest.imports.json_stream import JsonShape, items, shape_of

AUDIO = frozenset({".mp3", ".m4a", ".wav", ".flac", ".ogg", ".oga", ".opus", ".aac", ".wma", ".aiff", ".aif", ".amr"})
VIDEO = frozenset(
    {".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".mpg", ".mpeg", ".wmv", ".flv", ".ts", ".3gp", ".ogv"}
)

_LINES = re.compile(r"\r\n|\r|\n")
_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_OPENS = re.compile(r"\s*\d[^>:]*:[^>]*-->")
"""A timing, or one that went wrong; other arrows are words."""
_NUMBER = re.compile(r"\s*\d{1,9}\s*")
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_STYLE = re.compile(r"</?(?:i|b|u|s|font|c)(?:[ .][^<>]*)?>", re.IGNORECASE)
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?")
_VOICE = re.compile(r"<v(?:\.[^ \t\n<>]*)?[ \t]([^<>]*)>|</v>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|</>|<\d+:[\d:.]+>")
_TEXT_OF_SRT = re.compile(r"\A\s*(?:\d{1,9}\s*(?:\r\n|\r|\n)\s*)?(?:\d{1,4}:)?\d{1,2}:\d{1,2}[,.]\d{1,3}\s*-->")
LARGEST_MS = 10**12


@dataclass(frozen=True, slots=True)
class SubtitleCue:
    """A text said from one moment to another. `line` is its place in its file."""

    start_ms: int
    end_ms: int
    text: str
    speaker: str = ""
    line: int | None = None

    def shown(self) -> Record:
        spoken = {"start_ms": self.start_ms, "end_ms": self.end_ms, "text": self.text}
        return {**spoken, "speaker": self.speaker} if self.speaker else spoken


def looks_like_srt(head: str) -> bool:
    return bool(_TEXT_OF_SRT.match(head))


def read_srt(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    yield Piece(timed_record(parse_srt(source.text(remarks), remarks), source, remarks, "video"))


def read_vtt(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    yield Piece(timed_record(parse_vtt(source.text(remarks), remarks), source, remarks, "video"))


def timed_record(cues: Sequence[SubtitleCue], source: ImportFile, remarks: Remarks, otherwise: str) -> Record:
    """Return cues as media: sorted by their start, none ending before it starts."""
    if not cues:
        raise Unreadable("there is no cue in it, so there is nothing to import")
    ordered = sorted((_forwards(cue, remarks) for cue in cues), key=lambda cue: cue.start_ms)
    record: Record = {"kind": "media", "title": source.stem, "media_type": type_beside(source) or otherwise}
    return record | {"cues": [cue.shown() for cue in ordered]}


def type_beside(source: ImportFile) -> str:
    """Return the type of a media file with the same stem in the same folder, or ""."""
    stem = source.stem.casefold()
    for name in sorted(source.beside):
        front, dot, ending = name.rpartition(".")
        if dot and front.casefold() == stem:
            ending = f".{ending.lower()}"
            if ending in AUDIO or ending in VIDEO:
                return "audio" if ending in AUDIO else "video"
    return ""


def parse_srt(text: str, remarks: Remarks) -> list[SubtitleCue]:
    """Return the cues of a text.

    Every line with a timing opens one; what follows, up to the next one and its number, is its text.
    """
    lines = _LINES.split(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))
    at = [number for number, line in enumerate(lines) if _OPENS.match(line)]
    cues = []
    for place, end in pairwise([*at, len(lines)]):
        times = _times(lines[place])
        if times is None:
            remarks.warn("this timing cannot be read, so its cue was left out", place + 1)
            continue
        spoken_lines = lines[place + 1 : end]
        if end < len(lines) and _is_number(spoken_lines, lines[at[0] - 1] if at[0] else ""):
            spoken_lines.pop()
        if words := _joined(_STYLE.sub("", _OVERRIDE.sub("", line)) for line in spoken_lines):
            cues.append(SubtitleCue(*times, words, line=place + 1))
    return cues


def _is_number(lines: Sequence[str], first: str) -> bool:
    """Return whether the last line before the next timing is that cue's number, not words of this one."""
    if not lines or not _NUMBER.fullmatch(lines[-1]):
        return False
    stands_alone = len(lines) == 1 or not lines[-2].strip()
    return stands_alone or bool(_NUMBER.fullmatch(first))  # a file that numbers its first cue numbers them all


def parse_vtt(text: str, remarks: Remarks) -> list[SubtitleCue]:
    """Return the cues of blocks between blank lines. Those without a timing say nothing that is kept."""
    lines = _LINES.split(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))
    if not re.match(r"WEBVTT(?:[ \t]|\Z)", lines[0]):
        raise Unreadable("it does not begin with WEBVTT", 1)
    cues: list[SubtitleCue] = []
    number = 1
    while number < len(lines):
        line = lines[number]
        number += 1
        if _BLOCK.fullmatch(line):
            while number < len(lines) and lines[number].strip():
                number += 1
        elif "-->" in line:
            opened = number
            while number < len(lines) and lines[number].strip() and "-->" not in lines[number]:
                number += 1
            times = _times(line)
            if times is None:
                remarks.warn("this timing cannot be read, so its cue was left out", opened)
                continue
            cues += _voices(*times, lines[opened:number], opened)
    return cues


def _voices(start: int, end: int, spoken_lines: Sequence[str], line: int) -> Iterator[SubtitleCue]:
    """Yield a cue for each voice that speaks in it, at the same time."""
    text = "\n".join(spoken_lines)
    speaker, at = "", 0
    for voice in [*_VOICE.finditer(text), None]:
        words = _joined(html.unescape(_TAG.sub("", part)) for part in text[at : voice and voice.start()].split("\n"))
        if words:
            yield SubtitleCue(start, end, words, speaker, line)
        if voice is not None:
            speaker = " ".join(html.unescape(voice[1] or "").split())
            at = voice.end()


def _times(line: str) -> tuple[int, int] | None:
    match = _TIMING.fullmatch(line)
    if match is None:
        return None
    parts = match.groups()
    return _ms(parts[:4]), _ms(parts[4:])


def _ms(parts: Sequence[str | None]) -> int:
    hours, minutes, seconds, fraction = parts
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return whole * 1000 + int((fraction or "0").ljust(3, "0"))


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(line for line in lines if line.strip())


def _forwards(cue: SubtitleCue, remarks: Remarks) -> SubtitleCue:
    if cue.end_ms >= cue.start_ms:
        return cue
    remarks.warn("this cue ends before it starts, so its end was set to its start", cue.line)
    return SubtitleCue(cue.start_ms, cue.start_ms, cue.text, cue.speaker, cue.line)


def is_whisper(shape: JsonShape) -> bool:
    if shape.type == "array":
        return {"start", "end", "text"} <= shape.names
    return bool({"segments", "transcription"} & shape.names)


def read_whisper(source: ImportFile, remarks: Remarks) -> Iterator[Piece]:
    shape = shape_of(source)
    if not is_whisper(shape):
        raise Unknown
    place = "item" if shape.type == "array" else "segments.item" if "segments" in shape.names else "transcription.item"
    cues = [cue for number, segment in enumerate(items(source, place)) if (cue := _cue(segment, number, remarks))]
    record = timed_record(cues, source, remarks, "audio")
    language, duration = _about(source, shape)
    if language:
        record["language"] = language
    if duration is not None and duration >= max(cue.end_ms for cue in cues):
        record["duration_ms"] = duration
    yield Piece(record)


def _cue(segment: Any, number: int, remarks: Remarks) -> SubtitleCue | None:
    place = f"segment {number + 1}"
    if not isinstance(segment, Mapping):
        remarks.warn(f"{place} is no object and was left out")
        return None
    text = segment.get("text")
    words = text.strip() if isinstance(text, str) else ""
    offsets = segment.get("offsets")
    if isinstance(offsets, Mapping):
        start, end = _milliseconds(offsets.get("from"), 1), _milliseconds(offsets.get("to"), 1)
    else:
        start, end = _milliseconds(segment.get("start"), 1000), _milliseconds(segment.get("end"), 1000)
    if not words:
        return None
    if start is None or end is None:
        remarks.warn(f"{place} has no times and was left out")
        return None
    lines = "\n".join(line for line in words.splitlines() if line.strip())
    return SubtitleCue(start, end, lines, text_or_none(segment.get("speaker")) or "")


def _milliseconds(value: Any, factor: int) -> int | None:
    """Return a number to the nearest millisecond, halves up, as it was written; None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    milliseconds = int((Decimal(str(value)) * factor).to_integral_value(ROUND_HALF_UP))
    return milliseconds if 0 <= milliseconds <= LARGEST_MS else None


def _about(source: ImportFile, shape: JsonShape) -> tuple[str | None, int | None]:
    if shape.type == "array":
        return None, None
    language = next(items(source, "language"), None) if "language" in shape.names else None
    if language is None and "result" in shape.names:
        language = next(items(source, "result.language"), None)
    duration = next(items(source, "duration"), None) if "duration" in shape.names else None
    return text_or_none(language), _milliseconds(duration, 1000)
