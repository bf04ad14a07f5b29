"""Transcripts of Whisper: OpenAI's and WhisperX's `segments`, a bare list of them, or whisper.cpp's `transcription`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite
from typing import Any

from commonplace.ingest.imports.json_stream import JsonShape, items, shape_of
from commonplace.ingest.imports.source import ImportFile, Piece, Remarks, Unknown, text_or_none
from commonplace.ingest.imports.subtitles import SubtitleCue, timed_record

LARGEST_MS = 10**12


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
        start, end = _ms(offsets.get("from"), 1), _ms(offsets.get("to"), 1)
    else:
        start, end = _ms(segment.get("start"), 1000), _ms(segment.get("end"), 1000)
    if not words:
        return None
    if start is None or end is None:
        remarks.warn(f"{place} has no times and was left out")
        return None
    lines = "\n".join(line for line in words.splitlines() if line.strip())
    return SubtitleCue(start, end, lines, text_or_none(segment.get("speaker")) or "")


def _ms(value: Any, factor: int) -> int | None:
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
    return text_or_none(language), _ms(duration, 1000)
