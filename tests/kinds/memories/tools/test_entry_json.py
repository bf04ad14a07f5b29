"""Entries out as JSON Lines and in again: a second export is the first, byte for byte."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memory_calls import Tools, stored

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.entry_imports import Imported
from commonplace.kinds.memories.tools import entry_json
from commonplace.kinds.memories.tools.entry_json import export_lines
from commonplace.library import Library


def import_file(library: Library, path: Path, **options: bool) -> Imported:
    with path.open("rb") as file:
        return entry_json.import_file(library, file, **options)


def test_a_second_export_is_byte_identical(tools: Tools, open_tools: Callable[..., Tools], tmp_path: Path) -> None:
    image = {"data": base64.b64encode(b"picture").decode(), "metadata": {"alt": "é"}}
    first = stored(
        tools, text="one\nzwei 三", tags=["b", "a"], metadata={"z": 1, "a": [None, 1.5, "é"]}, images=[image]
    )
    stored(tools, text="two", source="agent", ttl_seconds=1000, supersedes=first)
    gone = stored(tools, text="three", thread_id="other")
    stored(tools, text="four", thread_id="other", source="agent")
    tools("update_context", context_id=first, text="uno")
    tools("delete_context", context_ids=[gone])
    lines = list(export_lines(tools.library))
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 4]
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    other = open_tools()
    assert import_file(other.library, path).stored == 3
    assert list(export_lines(other.library)) == lines
    assert import_file(other.library, path).already == 3
    assert other.library.doctor() == []


def test_entries_of_two_places_are_joined_under_new_numbers(
    tools: Tools, open_tools: Callable[..., Tools], tmp_path: Path
) -> None:
    first = stored(tools, text="the meeting is on Monday")
    stored(tools, text="the meeting is on Tuesday", source="agent", supersedes=first)
    away = stored(tools, text="the lift is broken", thread_id="house")
    stored(tools, text="the lift works", thread_id="news", supersedes=away)
    lines = list(export_lines(tools.library))
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join([*reversed(lines[:2]), lines[3]]), encoding="utf-8")
    other = open_tools()
    for number in range(1, 5):
        stored(other, text=f"quite another thing, number {number}", thread_id="mine")
    with pytest.raises(InvalidInput, match=r"Entry 2 is taken by another entry here.*--renumber"):
        import_file(other.library, path)
    assert import_file(other.library, path, renumber=True, dry_run=True).stored == 3
    assert other.library.memories.find() == [1, 2, 3, 4]
    done = import_file(other.library, path, renumber=True)
    assert done.numbers == {2: 5, 1: 6, 4: 7}
    tuesday, monday, lift = other.library.memories.entries([5, 6, 7])
    assert (monday.row.superseded_by, tuesday.row.supersedes) == (5, (6,))
    everything = {record["key"]: record["fields"] for record in map(json.loads, other.library.export())}
    assert [everything[key].get("supersedes") for key in "567"] == [[6], None, None]
    assert lift.row.supersedes == ()  # what it replaced did not come along; its number is somebody else's here
    assert all(entry.row.superseded_by is None for entry in other.library.memories.entries([1, 2, 3, 4]))
    assert (import_file(other.library, path, renumber=True).already, other.library.doctor()) == (3, [])


def test_what_replaces_an_entry_that_is_here_already_finds_it_under_its_number_here(
    tools: Tools, open_tools: Callable[..., Tools], tmp_path: Path
) -> None:
    first = stored(tools, text="the meeting is on Monday")
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(export_lines(tools.library)), encoding="utf-8")
    other = open_tools()
    stored(other, text="mine", thread_id="mine")
    assert import_file(other.library, path, renumber=True).numbers == {1: 2}
    stored(tools, text="the meeting is on Tuesday", source="agent", supersedes=first)
    path.write_text("\n".join(export_lines(tools.library)), encoding="utf-8")
    done = import_file(other.library, path, renumber=True)
    assert (done.already, done.numbers) == (1, {2: 3})
    assert [entry.row.superseded_by for entry in other.library.memories.entries([1, 2, 3])] == [None, 3, None]


def test_one_thread_can_be_exported_alone(tools: Tools) -> None:
    stored(tools, text="a")
    stored(tools, text="b", thread_id="other")
    assert [json.loads(line)["text_content"] for line in export_lines(tools.library, "other")] == ["b"]


def test_the_thread_of_a_line_is_trimmed(tools: Tools, tmp_path: Path) -> None:
    stored(tools, text="a", thread_id="tea")
    path = tmp_path / "memory.jsonl"
    path.write_text(next(export_lines(tools.library)).replace('"tea"', '" tea "'), encoding="utf-8")
    tools("delete_context", context_ids=[1])
    assert import_file(tools.library, path).stored == 1
    assert tools.library.memories.find(threads=["tea"]) == [1]


def test_what_comes_through_a_pipe_is_stored_and_not_only_counted(
    tools: Tools, open_tools: Callable[..., Tools]
) -> None:
    stored(tools, text="a")
    stored(tools, text="b")
    lines = list(export_lines(tools.library))
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "w", encoding="utf-8") as pipe:
            pipe.write("\n".join(lines))

    writer = threading.Thread(target=write)
    writer.start()
    other = open_tools()
    with open(reading, "rb") as pipe:
        assert entry_json.import_file(other.library, pipe).stored == 2
    writer.join()
    assert list(export_lines(other.library)) == lines


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{}", "it has no 'id'"),
        (b"nothing", "Expecting value: .*"),
        (b"[]", "it is no JSON object"),
        (b"[" * 100_000, "it is nested too deep"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b'{"id": 0}', "it has no 'thread_id'"),
    ],
    ids=["nothing in it", "no JSON", "a list", "endless", "no text", "a number alone"],
)
def test_a_line_that_is_no_entry_is_named_and_nothing_is_stored(
    tools: Tools, tmp_path: Path, line: bytes, why: str
) -> None:
    stored(tools, text="a")
    path = tmp_path / "memory.jsonl"
    good = next(export_lines(tools.library))
    tools("delete_context", context_ids=[1])
    path.write_bytes(good.encode() + b"\n" + line + b"\n")
    with pytest.raises(InvalidInput, match=rf"^Line 2 is no exported entry: {why}\. Nothing was imported\.$"):
        import_file(tools.library, path)
    assert tools.library.memories.find() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 1 << 63}, {"id": True}, {"version": 0}, {"version": 1 << 63}, {"version": "1"},
        {"supersedes": [1 << 63]}, {"supersedes": ["1"]}, {"thread_id": " "}, {"thread_id": 7}, {"text_content": None},
        {"summary": 5},
        {"metadata": []}, {"tags": "abc"}, {"tags": [1]},
        {"images": [{"data": "", "mime_type": None}]}, {"images": 5}, {"images": [5]},
        {"supersedes": 5}, {"created_at": 5},
    ],
    ids=str,
)  # fmt: skip
def test_a_field_that_no_entry_has_makes_a_line_none(tools: Tools, tmp_path: Path, wrong: dict[str, Any]) -> None:
    stored(tools, text="a")
    stored(tools, text="b")
    good, other = export_lines(tools.library)
    tools("delete_context", context_ids=[1, 2])
    path = tmp_path / "memory.jsonl"
    path.write_text(f"{good}\n{json.dumps({**json.loads(other), **wrong})}\n", encoding="utf-8")
    told = r"^Line 2 is no exported entry: (its|a|Invalid) .+\. Nothing was imported\.$"
    with pytest.raises(InvalidInput, match=told):
        import_file(tools.library, path)
    assert tools.library.memories.find() == []
