"""The parsers of text formats hold for any text.

1. Subtitles, front matter, CSV and dates never raise anything but our own error, whatever they are given.
2. What a writer wrote, the parser reads back: cues with their times, rows with their cells.
3. The tables of particular cases the contract names.
"""

from __future__ import annotations

import calendar
import csv
import io
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from import_samples import GOLDEN, remarks, source_of

from commonplace.errors import CommonplaceError
from commonplace.ingest.imports.cards import read_card
from commonplace.ingest.imports.chat_files import read_chatgpt, read_messages, read_pairs, read_sillytavern
from commonplace.ingest.imports.import_file import Reader, Unknown, Unreadable, decoded, moment, storable, tags_of
from commonplace.ingest.imports.json_stream import _Shallow
from commonplace.ingest.imports.markdown_fields import part
from commonplace.ingest.imports.prompt_files import (
    parse_csv,
    read_prompt_markdown,
    read_prompts_csv,
    read_prompts_json,
)
from commonplace.ingest.imports.transcripts import parse_srt, parse_vtt, read_srt, read_whisper, type_beside

_words = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="<>&{}"), min_size=1, max_size=20
).filter(lambda text: text.strip() and not text.strip().isdigit() and "-->" not in text)
_cues = st.lists(
    st.tuples(st.integers(0, 36_000_000), st.integers(0, 100_000), st.lists(_words, min_size=1, max_size=3)), max_size=6
)
_lines = st.lists(
    st.sampled_from(
        ["", "1", "00:00:01,000 --> 00:00:02,000", "00:01.5 --> x", "-->", "WEBVTT", "NOTE", "STYLE", "<v A>hi", "text"]
    )
    | st.text(max_size=12),
    max_size=30,
)


def clock(ms: int, point: str) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


@settings(deadline=None, max_examples=100)
@given(_cues)
def test_subtitles_are_read_back_as_they_were_written(cues: list[tuple[int, int, list[str]]]) -> None:
    expected = [(start, start + length, "\n".join(lines)) for start, length, lines in cues]
    srt = "".join(
        f"{number}\n{clock(start, ',')} --> {clock(end, ',')}\n{text}\n\n"
        for number, (start, end, text) in enumerate(expected, start=1)
    )
    assert [(cue.start_ms, cue.end_ms, cue.text) for cue in parse_srt(srt, remarks())] == expected
    vtt = "WEBVTT\n\n" + "".join(
        f"{clock(start, '.')} --> {clock(end, '.')}\n{text}\n\n" for start, end, text in expected
    )
    assert [(cue.start_ms, cue.end_ms, cue.text) for cue in parse_vtt(vtt, remarks())] == expected


@settings(deadline=None, max_examples=100)
@given(_lines, st.sampled_from(["\n", "\r\n", "\r"]))
def test_no_text_breaks_the_subtitle_parsers(lines: list[str], end: str) -> None:
    for parse in (parse_srt, parse_vtt):
        try:
            cues = parse(end.join(lines), remarks())
        except CommonplaceError:
            continue
        assert all(cue.text.strip() for cue in cues)


def test_no_line_of_subtitles_takes_longer_than_its_length_allows() -> None:
    started = time.process_time()
    assert parse_srt(f"1{':' * 100_000}", remarks()) == []
    (cue,) = parse_vtt(f"WEBVTT\n\n00:01.000 --> 00:02.000\n<v{' ' * 40_000}\n", remarks())
    assert time.process_time() - started < 5
    assert cue.text.strip() == "<v"


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(["---\n", "+++\n", "---\r\n", ""]),
    st.lists(
        st.sampled_from(["a: 1", "- x", "[", "&a [*a]", "k = 1", "!!python/x y", "2024-13-45", "\t", "? [a]"])
        | st.text(max_size=10)
    ),
    st.sampled_from(["\n---\n", "\n+++\n", "\n...\n", ""]),
    st.text(max_size=10),
)
def test_no_text_breaks_front_matter(opening: str, lines: list[str], closing: str, body: str) -> None:
    text = opening + "\n".join(lines) + closing + body
    said = remarks()
    parted = part(text, said)
    json.dumps(parted.fields, allow_nan=False)
    assert parted.body == text or text.endswith(parted.body)
    if said.warnings:
        assert parted.body == text


_said = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | _said,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_said, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(_said, _values, min_size=1, max_size=4))
def test_front_matter_is_read_back_as_it_was_written(fields: dict[str, Any]) -> None:
    import yaml

    text = f"---\n{yaml.safe_dump(fields, allow_unicode=False)}---\nbody"
    said = remarks()
    parted = part(text, said)
    if not said.warnings:  # a line of the data may itself be ---
        assert parted.fields == fields
        assert parted.body == "body"


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60), st.lists(st.sampled_from([",", '"', "\n", "\r\n", "name", "x", "\0"]), max_size=20))
def test_no_text_breaks_the_csv_parser(text: str, tokens: list[str]) -> None:
    for given_text in (text, "".join(tokens), "name,prompt\n" + "".join(tokens)):
        try:
            list(parse_csv(given_text))
            list(read_prompts_csv(source_of(given_text.encode("utf-8", "replace"), "a.csv"), remarks()))
        except CommonplaceError:
            continue


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
            min_size=1,
            max_size=4,
        ),
        max_size=5,
    )
)
def test_rows_are_read_back_as_they_were_written(rows: list[list[str]]) -> None:
    made = io.StringIO(newline="")
    csv.writer(made).writerows(rows)
    found = [row for _, row in parse_csv(made.getvalue())]
    assert found == [row for row in rows if any(cell.strip() for cell in row)]


@settings(deadline=None, max_examples=100)
@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)))
def test_dates_are_read_in_every_way_they_are_written(when: datetime) -> None:
    when = when.replace(microsecond=when.microsecond // 1000 * 1000, tzinfo=UTC)
    text = when.isoformat().replace("+00:00", "Z")
    assert moment(text) == moment(when) == text
    ms = round(when.timestamp() * 1000)
    if ms >= 100_000_000_000:
        assert moment(ms) == moment(str(ms)) == text
    stamp = (
        f"{when.year}-{when.month}-{when.day} @{when.hour}h {when.minute}m {when.second}s {when.microsecond // 1000}ms"
    )
    assert moment(stamp) == text
    month = list(calendar.month_name)[when.month]
    half = "am" if when.hour < 12 else "pm"
    worded = f"{month} {when.day}, {when.year} {when.hour % 12 or 12}:{when.minute:02}{half}"
    assert moment(worded) == when.replace(second=0, microsecond=0).isoformat().replace("+00:00", "Z")


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=30) | st.floats() | st.integers() | st.none() | st.booleans())
@example(67768036191676796000)
@example(True)
def test_what_is_no_date_is_none(value: Any) -> None:
    found = moment(value)
    assert found is None or found.endswith("Z")


_shapes = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["mapping", "messages", "role", "content", "history", "current_node", "a", "b", "parent", "children",
             "message", "author", "parts", "text", "mes", "name", "segments", "start", "end", "internal"]
        ),
        inner, max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(_shapes)
def test_whatever_json_a_chat_reader_gets_it_reads_or_refuses(value: Any) -> None:
    data = json.dumps(value).encode()
    for reader in (read_chatgpt, read_messages, read_pairs, read_sillytavern, read_whisper):
        try:
            for piece in reader(source_of(data, "a.json"), remarks()):
                storable(piece.record)
        except CommonplaceError:
            continue


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(["chatgpt.json", "talk-whisper.json", "messages.json", "prompts.json"]),
    st.integers(0, 3000),
    st.binary(max_size=3),
)
def test_json_that_is_cut_or_damaged_is_refused_and_nothing_else(name: str, at: int, noise: bytes) -> None:
    whole = (GOLDEN / name).read_bytes()
    place = at % len(whole)
    for data in (whole[:place], whole[:place] + noise + whole[place + len(noise) :]):
        for reader in (read_chatgpt, read_messages, read_pairs, read_whisper, read_prompts_json):
            try:
                for piece in reader(source_of(data, name), remarks()):
                    storable(piece.record)
            except CommonplaceError:
                continue


@pytest.mark.parametrize("depth", [2000, 1_000_000])
def test_json_nested_without_end_is_refused(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for text in (
        nested,
        f'[{{"mapping": {{}}, "title": {nested}}}]',
        f'{{"name": "x", "first_mes": "y", "z": {nested}}}',
    ):
        for reader in (read_chatgpt, read_messages, read_card, read_prompts_json):
            if depth == 2000 and reader is read_card and "first_mes" in text:
                continue  # what else stands in a card is not kept, however deep it is that Python reads
            with pytest.raises(CommonplaceError):
                _read_all(reader, text.encode())


def _read_all(reader: Reader, data: bytes) -> list[Any]:
    return [storable(piece.record) for piece in reader(source_of(data, "a.json"), remarks())]


_brackets = st.text(st.sampled_from('[]{}"\\\n é'), max_size=30)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.dictionaries(_brackets, _brackets | st.lists(_brackets, max_size=3), max_size=3), max_size=5),
    st.integers(1, 9),
)
def test_brackets_inside_strings_are_not_nesting(value: list[Any], block: int) -> None:
    stream = _Shallow(io.BytesIO(json.dumps(value, ensure_ascii=False).encode()))
    while stream.read(block):
        pass
    assert (stream._depth, stream._in_string) == (0, False)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=100))
def test_whatever_bytes_there_are_they_are_text_or_refused(data: bytes) -> None:
    try:
        text = decoded(data, remarks())
    except Unknown:
        return
    assert "\0" not in text
    text.encode("utf-8")


def test_windows_1252_is_read_with_a_warning() -> None:
    said = remarks()
    assert decoded("caf\xe9 – „x“".encode("cp1252"), said) == "café – „x“"
    assert "Windows-1252" in said.warnings[0].reason
    assert decoded("é".encode("utf-16"), remarks()) == "é"


def test_aliases_that_multiply_are_refused_before_they_do() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    said = remarks()
    text = "---\n" + "\n".join(lines) + "\n---\nbody"
    assert part(text, said).body == text
    assert "holds too much" in said.warnings[0].reason


@pytest.mark.parametrize("fence", ["---", "+++"])
def test_front_matter_nested_without_end_is_refused(fence: str) -> None:
    text = f"{fence}\na{':' if fence == '---' else ' ='} {'[' * 20000}\n{fence}\nbody"
    said = remarks()
    assert part(text, said).body == text
    assert said.warnings


def test_front_matter_that_is_too_long_is_text() -> None:
    said = remarks()
    text = f"---\nx: {'m' * 70_000}\n---\nbody"
    assert part(text, said).body == text
    assert [warning.reason for warning in said.warnings] == [
        "the front matter has more than 65,536 characters; the whole file was taken as text."
    ]


def test_front_matter_that_is_never_closed_is_text() -> None:
    said = remarks()
    assert part("---\ntitle: x\nbody", said).body == "---\ntitle: x\nbody"
    assert "never closed" in said.warnings[0].reason


@pytest.mark.parametrize(
    ("given_value", "tags"),
    [
        ("#a, b ,, A", ["a", "b"]),
        (["x", " #X ", 7, None], ["x", "7"]),
        (None, []),
        ("one", ["one"]),
        (["y" * 101], []),
    ],
)
def test_tags_are_trimmed_and_unique(given_value: Any, tags: list[str]) -> None:
    assert tags_of(given_value, remarks()) == tags


def test_the_type_of_subtitles_is_that_of_the_recording_beside_them() -> None:
    assert type_beside(source_of(b"", "talk.srt", "talk.mp3")) == "audio"
    assert type_beside(source_of(b"", "talk.srt", "TALK.MKV")) == "video"
    assert type_beside(source_of(b"", "talk.srt", "talk.md", "other.mp3")) == ""


def test_a_timing_that_cannot_be_read_is_left_out_with_its_line() -> None:
    said = remarks("a.srt")
    text = "1\n00:00:01,000 --> 00:00:02,000\nkept\n\n2\n00:00:xx --> 00:00:03,000\nlost\n"
    assert [cue.text for cue in parse_srt(text, said)] == ["kept"]
    assert str(said.warnings[0]).startswith("a.srt:6: ")


def test_an_arrow_in_what_is_said_is_no_timing() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nfrom A --> B\nand on\n"
    assert [cue.text for cue in parse_srt(text, remarks())] == ["from A --> B\nand on"]


def test_subtitles_without_a_cue_are_refused() -> None:
    with pytest.raises(Unreadable, match="no cue"):
        list(read_srt(source_of(b"just words\n", "a.srt"), remarks()))


def test_what_stands_outside_of_a_prompts_parts_is_its_details() -> None:
    text = "# Review\n\nFor code.\n\n## System\n\nBe careful.\n\n# Notes\n\nKeep this.\n"
    (piece,) = read_prompt_markdown(source_of(text.encode(), "a.md"), remarks())
    assert (piece.record["name"], piece.record["system_prompt"]) == ("Review", "Be careful.")
    assert piece.record["details"].split() == ["For", "code.", "#", "Notes", "Keep", "this."]
    said = remarks()
    (piece,) = read_prompt_markdown(source_of(f"---\ndetails: Mine.\n---\n{text}".encode(), "a.md"), said)
    assert piece.record["details"] == "Mine."
    assert [warning.reason for warning in said.warnings] == [
        "what stands outside of System and User was left out, since the front matter has the details."
    ]


def test_a_prompts_heading_that_is_not_its_name_is_kept() -> None:
    text = "---\nname: Other\n---\n# Review\n\n## System\n\nBe careful.\n"
    (piece,) = read_prompt_markdown(source_of(text.encode(), "a.md"), remarks())
    assert (piece.record["name"], piece.record["details"]) == ("Other", "# Review")


def test_a_row_of_csv_without_a_name_names_its_line() -> None:
    data = b'name,prompt\n"two\nlines",x\n,nameless\n'
    with pytest.raises(Unreadable, match="no name") as error:
        list(read_prompts_csv(source_of(data, "a.csv"), remarks()))
    assert error.value.line == 4


def test_a_bad_line_of_a_chat_names_itself() -> None:
    data = b'{"user_name": "a", "character_name": "b"}\n{"name": "b", "mes": "hi"}\n{"name": "b", "mes":'
    with pytest.raises(Unreadable) as error:
        list(read_sillytavern(source_of(data, "a.jsonl"), remarks()))
    assert error.value.line == 3


def test_what_the_store_cannot_hold_is_replaced() -> None:
    record, line = storable({"kind": "note", "body": "a\0b\ud800c", "metadata": {"n": float("inf"), "big": 10**400}})
    assert record["body"] == "a\ufffdb\ufffdc"
    assert json.loads(line)["metadata"]["n"] == "inf"
