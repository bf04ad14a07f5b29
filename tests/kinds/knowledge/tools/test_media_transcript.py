"""What is said in a medium: formats, ranges, room, and media without cues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from knowledge_calls import Tools

from commonplace.library import Library
from opening import library_settings


def test_the_four_formats(filled: Tools) -> None:
    def write(format: str, **more: Any) -> Any:
        return filled("media.transcript", media_id=1, format=format, **more)["content"]

    assert write("text") == "Ann: A kettle boils.\nWater & steam <rise>."
    assert write("text", include_timestamps=True) == (
        "[00:00:00.000] Ann: A kettle boils.\n[00:00:01.500] Water & steam <rise>."
    )
    assert write("srt") == (
        "1\n00:00:00,000 --> 00:00:01,500\nAnn: A kettle boils.\n\n"
        "2\n00:00:01,500 --> 00:00:04,000\nWater & steam <rise>.\n"
    )
    assert write("vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n<v Ann>A kettle boils.\n\n"
        "00:00:01.500 --> 00:00:04.000\nWater &amp; steam &lt;rise&gt;.\n"
    )
    assert write("json") == {
        "media_id": 1,
        "title": "Kettle film",
        "language": None,
        "duration_ms": 4000,
        "cues": [
            {"index": 0, "start_ms": 0, "end_ms": 1500, "text": "A kettle boils.", "speaker": "Ann"},
            {"index": 1, "start_ms": 1500, "end_ms": 4000, "text": "Water & steam <rise>.", "speaker": None},
        ],
    }


def test_a_range_keeps_what_overlaps_it(filled: Tools) -> None:
    def kept(**more: Any) -> list[int]:
        cues = filled("media.transcript", media_id=1, format="json", **more)["content"]["cues"]
        return [cue["index"] for cue in cues]

    assert kept(from_ms=1500) == [1]
    assert kept(to_ms=1500) == [0]
    assert kept(from_ms=1499, to_ms=1501) == [0, 1]
    assert kept(from_ms=9000) == []
    assert filled.refused("media.transcript", media_id=1, from_ms=2, to_ms=1).code == "invalid_argument"


def test_inner_lines_are_kept_in_subtitles_and_joined_in_text(tools: Tools) -> None:
    cues = [{"start_ms": 3_600_000, "end_ms": 3_600_001, "text": "one\ntwo"}]
    tools.put("media", title="F", media_type="audio", cues=cues)
    assert tools("media.transcript", media_id=1)["content"] == "one two"
    assert tools("media.transcript", media_id=1, format="srt")["content"] == (
        "1\n01:00:00,000 --> 01:00:00,001\none\ntwo\n"
    )


def test_a_blank_line_inside_a_cue_does_not_end_it(tools: Tools) -> None:
    cues = [{"start_ms": 0, "end_ms": 9, "text": "one\r\n\r\ntwo\n \nthree\rfour", "speaker": "Ann\n\nLee"}]
    tools.put("media", title="F", media_type="audio", cues=cues)
    tools.put("media", title="G", media_type="article", body="First.\n\nSecond.\n", duration_ms=9)
    times = "00:00:00.000 --> 00:00:00.009"
    srt = f"1\n{times.replace('.', ',')}\n"

    def write(media: int, format: str) -> Any:
        return tools("media.transcript", media_id=media, format=format)["content"]

    assert write(1, "srt") == srt + "Ann Lee: one\ntwo\nthree\nfour\n"
    assert write(1, "vtt") == f"WEBVTT\n\n{times}\n<v Ann Lee>one\ntwo\nthree\nfour\n"
    assert write(1, "text") == "Ann Lee: one two three four"
    assert write(1, "json")["cues"][0]["text"] == cues[0]["text"]
    assert write(2, "srt") == srt + "First.\nSecond.\n"
    assert write(2, "vtt") == f"WEBVTT\n\n{times}\nFirst.\nSecond.\n"
    assert write(2, "text") == "First.\n\nSecond.\n"


def test_media_without_cues_are_one_cue_and_say_so(tools: Tools) -> None:
    tools.put("media", title="Known", media_type="audio", body="Thirty characters, more or less", duration_ms=7000)
    tools.put("media", title="Unknown", media_type="audio", body="x" * 45)
    known = tools("media.transcript", media_id=1, format="srt")
    assert known["content"] == "1\n00:00:00,000 --> 00:00:07,000\nThirty characters, more or less\n"
    assert (known["timed"], known["warnings"][0]["code"]) == (False, "untimed")
    assert "00:00:03.000" in tools("media.transcript", media_id=2, format="vtt")["content"]
    assert tools("media.transcript", media_id=2)["content"] == "x" * 45
    written = tools("media.transcript", media_id=2, format="json")["content"]
    assert (written["cues"], written["text"]) == ([], "x" * 45)


def test_output_stops_after_the_last_whole_cue_and_goes_on_from_there(tmp_path: Path) -> None:
    cues = [{"start_ms": n * 1000, "end_ms": n * 1000 + 999, "text": f"cue {n} " + "x" * 90} for n in range(60)]
    with Library.open(tmp_path, settings=library_settings(tmp_path, full_max_chars=1000)) as library:
        tools = Tools(library)
        tools.put("media", title="F", media_type="audio", cues=cues)
        for format in ("text", "srt", "vtt", "json"):
            seen: list[str] = []
            start: int | None = 0
            while start is not None:
                page = tools("media.transcript", media_id=1, format=format, from_ms=start)
                assert page["truncated"] == (page["next_ms"] is not None)
                content = page["content"]
                text = content if isinstance(content, str) else "\n".join(cue["text"] for cue in content["cues"])
                written = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
                assert len(written) <= 1000
                seen += [line for line in text.split("\n") if line.startswith("cue ")]
                start = page["next_ms"]
            assert seen == [cue["text"] for cue in cues]


def test_whoever_goes_on_gets_on_also_where_more_is_said_at_once_than_there_is_room_for(tmp_path: Path) -> None:
    cues = [{"start_ms": 0, "end_ms": 99_000, "text": f"long {n} " + "x" * 400} for n in range(4)]
    cues += [{"start_ms": n * 1000, "end_ms": n * 1000 + 999, "text": f"short {n}"} for n in range(1, 5)]
    with Library.open(tmp_path, settings=library_settings(tmp_path, full_max_chars=1000)) as library:
        tools = Tools(library)
        tools.put("media", title="F", media_type="audio", cues=cues)
        seen, starts, start = set[str](), list[int](), 0
        while start is not None:
            starts.append(start)
            page = tools("media.transcript", media_id=1, from_ms=start)
            seen |= set(page["content"].split("\n"))
            start = page["next_ms"]
            assert start is None or start > starts[-1]
        assert seen == {cue["text"] for cue in cues}


@given(
    st.lists(
        st.tuples(st.integers(0, 10**8), st.integers(0, 10**5), st.text("ab \n&<", min_size=1, max_size=9)), max_size=6
    )
)
def test_cues_are_those_of_the_source(tools: Tools, given: list[tuple[int, int, str]]) -> None:
    cues = [{"start_ms": start, "end_ms": start + length, "text": text} for start, length, text in given]
    tools.put("media", id="x", title="F", media_type="audio", cues=cues)
    made = tools("media.transcript", media_id="x", format="json")["content"]["cues"]
    ordered = sorted(cues, key=lambda cue: cue["start_ms"])  # type: ignore[arg-type, return-value]
    assert [(cue["start_ms"], cue["end_ms"], cue["text"]) for cue in made] == [
        (cue["start_ms"], cue["end_ms"], cue["text"]) for cue in ordered
    ]
