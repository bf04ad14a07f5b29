"""An import against a real store.

1. A second import changes nothing; an edited file updates its item; a deleted item comes back anew.
2. An edit in the library stays while its file does, and is replaced with a warning when the file changes.
3. A file goes in whole or not at all; --strict and --dry-run keep nothing.
4. Folders and archives: what is hidden, linked or unknown is passed over, what points outside is refused.
5. What `records` writes goes into an empty home and comes out the same, byte for byte.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from import_samples import GOLDEN, docx, epub, packed, pdf, png, text_chunk, zipped

from commonplace.errors import InvalidInput
from commonplace.ingest.imports.import_file import Record, Remarks
from commonplace.ingest.imports.import_inputs import ArchiveLimits
from commonplace.ingest.imports.import_run import ImportOptions, Put, Summary, import_paths
from commonplace.ingest.imports.json_lines import import_lines
from commonplace.ingest.imports.transcripts import parse_vtt
from commonplace.kinds.knowledge.media import TranscriptRequest, transcript
from commonplace.kinds.knowledge.records import RecordOutcome, References, put_record, records
from commonplace.model import Item
from commonplace.store import SqliteStore
from commonplace.store.items import Items
from opening import open_store
from unprivileged import unprivileged

LIMITS = ArchiveLimits(1 << 20)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store("sqlite", tmp_path / "home")
    yield opened
    opened.close()


def putting(store: SqliteStore) -> Put:
    references = References()

    def put(record: Record, target: Item | None) -> RecordOutcome:
        return put_record(store, record, target=target, references=references)

    return put


def imported(store: SqliteStore, kind: str, *paths: Path, limits: ArchiveLimits = LIMITS, **options: Any) -> Summary:
    return import_paths(store, putting(store), kind, paths, limits, ImportOptions(**options))


def lines(store: SqliteStore) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records(store)).encode()


def put_lines(store: SqliteStore, data: bytes, **options: Any) -> Summary:
    return import_lines(store, putting(store), io.BytesIO(data), "in.jsonl", ImportOptions(**options))


def statuses(summary: Summary) -> list[str]:
    return [item["status"] for item in summary.items]


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "notes" / "tea.md"
    path.parent.mkdir()
    path.write_text("# Tea\n\nOolong.\n", "utf-8")
    return path


def test_a_second_import_changes_nothing(store: SqliteStore, note: Path) -> None:
    first = imported(store, "notes", note.parent)
    assert first.line() == "created 1, updated 0, unchanged 0, skipped 0, failed 0"
    before = store.last_change()
    again = imported(store, "notes", note)
    assert statuses(again) == ["unchanged"]
    assert again.items[0]["uri"] == first.items[0]["uri"]
    assert store.last_change() == before


def test_an_edited_file_updates_the_item_it_made(store: SqliteStore, note: Path) -> None:
    uri = imported(store, "notes", note).items[0]["uri"]
    note.write_text("# Green tea\n\nEighty degrees.\n", "utf-8")
    again = imported(store, "notes", note)
    assert again.items == [{"uri": uri, "status": "updated", "path": str(note)}]
    (record,) = records(store)
    assert (record["title"], record["version"]) == ("Green tea", 2)
    assert not again.warnings


def test_an_edit_in_the_library_outlives_a_file_that_stays(store: SqliteStore, note: Path) -> None:
    imported(store, "notes", note)
    (record,) = records(store)
    put_record(store, {**record, "body": "My own words.", "version": 2})
    assert statuses(imported(store, "notes", note)) == ["unchanged"]
    assert next(records(store))["body"] == "My own words."
    note.write_text("# Tea\n\nSencha.\n", "utf-8")
    again = imported(store, "notes", note)
    assert statuses(again) == ["updated"]
    assert "that change was replaced" in again.warnings[0].reason
    assert next(records(store))["body"] == "# Tea\n\nSencha.\n"


@pytest.mark.parametrize("named", [True, False])
def test_what_the_library_had_before_is_replaced_with_a_warning(store: SqliteStore, note: Path, named: bool) -> None:
    put_record(store, {"kind": "note", "id": "mine", "title": "Tea", "body": "# Tea\n\nOolong.\n", "tags": ["own"]})
    if named:
        note.write_text("---\nid: mine\n---\n# Tea\n\nOolong.\n", "utf-8")
    done = imported(store, "notes", note)
    assert done.items == [{"uri": "notes://mine", "status": "updated", "path": str(note)}]
    assert [one.reason for one in done.warnings] == [
        "notes://mine was in the library already; what it said was replaced."
    ]
    moved = note.rename(note.with_name("moved.md"))
    assert imported(store, "notes", moved, tags=("more",)).warnings == []


def test_an_edit_outlives_a_file_that_says_the_same_under_another_name(
    store: SqliteStore, note: Path, tmp_path: Path
) -> None:
    chats = tmp_path / "may.json"
    chats.write_bytes((GOLDEN / "claude.json").read_bytes())
    for kind, path in (("notes", note), ("chats", chats)):
        uri = imported(store, kind, path).items[0]["uri"]
        (record,) = (one for one in records(store) if uri.endswith(f"://{one['id']}"))
        put_record(store, {**record, "tags": ["mine"]})
        renamed = path.rename(path.with_stem("june"))
        again = imported(store, kind, renamed)
        assert again.items[0] == {"uri": uri, "status": "unchanged", "path": str(renamed)}
        assert again.warnings == []
    assert {tuple(record["tags"]) for record in records(store)} == {("mine",)}
    note.with_stem("june").write_text("# Tea\n\nSencha.\n", "utf-8")
    assert "that change was replaced" in imported(store, "notes", note.with_stem("june")).warnings[0].reason


def test_an_item_deleted_in_the_library_is_created_anew(store: SqliteStore, note: Path) -> None:
    first = imported(store, "notes", note).items[0]["uri"]
    put_record(store, {"kind": "note", "id": first.removeprefix("notes://"), "deleted": True})
    assert list(records(store)) == []
    assert statuses(imported(store, "notes", note)) == ["created"]


def test_a_moved_file_is_known_by_its_title_and_text(store: SqliteStore, note: Path, tmp_path: Path) -> None:
    uri = imported(store, "notes", note).items[0]["uri"]
    moved = note.rename(tmp_path / "elsewhere.md")
    again = imported(store, "notes", moved)
    assert again.items == [{"uri": uri, "status": "unchanged", "path": str(moved)}]


def test_files_that_were_alike_are_items_of_their_own_once_they_differ(store: SqliteStore, tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "todo.md", tmp_path / "b" / "todo.md"
    for path in (first, second):
        path.parent.mkdir()
        path.write_text("# Todo\n", "utf-8")
    assert statuses(imported(store, "notes", tmp_path)) == ["created", "unchanged"]
    first.write_text("# Todo\n\nmilk\n", "utf-8")
    assert statuses(imported(store, "notes", first)) == ["created"]
    second.write_text("# Todo\n\nbread\n", "utf-8")
    assert statuses(imported(store, "notes", tmp_path)) == ["unchanged", "updated"]
    assert {record["body"] for record in records(store)} == {"# Todo\n\nmilk\n", "# Todo\n\nbread\n"}


def test_a_moved_file_that_is_edited_updates_its_item(store: SqliteStore, note: Path, tmp_path: Path) -> None:
    uri = imported(store, "notes", note).items[0]["uri"]
    moved = note.rename(tmp_path / "elsewhere.md")
    imported(store, "notes", moved)
    moved.write_text("# Tea\n\nSencha.\n", "utf-8")
    assert imported(store, "notes", moved).items == [{"uri": uri, "status": "updated", "path": str(moved)}]


def test_a_path_is_the_same_however_it_is_written(store: SqliteStore, note: Path, tmp_path: Path) -> None:
    around = tmp_path / "notes" / ".." / "notes"
    uri = imported(store, "notes", around).items[0]["uri"]
    note.write_text("# Tea\n\nSencha.\n", "utf-8")
    assert imported(store, "notes", note).items == [{"uri": uri, "status": "updated", "path": str(note)}]
    (tmp_path / "a.zip").write_bytes(zipped({"b.md": "one"}))
    uri = imported(store, "notes", tmp_path / "notes" / ".." / "a.zip").items[0]["uri"]
    (tmp_path / "a.zip").write_bytes(zipped({"b.md": "two"}))
    assert imported(store, "notes", tmp_path / "a.zip").items[0]["uri"] == uri


def test_of_two_pieces_of_a_name_in_one_file_the_first_is_kept(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,prompt\nPlan,one\nplan,two\nPlan,one\n", "utf-8")
    done = imported(store, "prompts", path)
    assert done.line() == "created 1, updated 0, unchanged 1, skipped 1, failed 0"
    assert str(done.warnings[0]) == f'{path}:3: the name "plan" is there more than once; the first was kept.'
    before = store.last_change()
    assert imported(store, "prompts", path).line() == "created 0, updated 0, unchanged 2, skipped 1, failed 0"
    assert store.last_change() == before
    assert [record["user_prompt"] for record in records(store)] == ["one"]


def test_two_files_of_one_id_are_told(store: SqliteStore, tmp_path: Path) -> None:
    first, second = tmp_path / "a.md", tmp_path / "b.md"
    first.write_text("---\nid: x1\n---\none", "utf-8")
    second.write_text("---\nid: x1\n---\ntwo", "utf-8")
    done = imported(store, "notes", tmp_path)
    assert statuses(done) == ["created", "updated"]
    assert str(done.warnings[0]) == f"{second}: notes://x1 is also what {first} is; what came from there was replaced."
    assert imported(store, "notes", tmp_path).warnings == []


def test_an_explicit_id_is_the_item_wherever_the_file_is(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nid: x1\n---\none", "utf-8")
    (tmp_path / "b.md").write_text("---\nid: x1\n---\ntwo", "utf-8")
    assert imported(store, "notes", tmp_path / "a.md").items[0]["uri"] == "notes://x1"
    assert statuses(imported(store, "notes", tmp_path / "b.md")) == ["updated"]


def test_messages_and_conversations_are_known_again(store: SqliteStore) -> None:
    first = imported(store, "chats", GOLDEN / "chatgpt.json", GOLDEN / "claude.json", GOLDEN / "pairs.json")
    assert (statuses(first), first.skipped, first.exit_code) == (["created"] * 4, 1, 0)
    before = store.last_change()
    again = imported(store, "chats", GOLDEN / "chatgpt.json", GOLDEN / "claude.json", GOLDEN / "pairs.json")
    assert (statuses(again), again.skipped) == (["unchanged"] * 4, 1)
    assert store.last_change() == before


def test_a_chat_is_linked_to_the_character_of_its_name(store: SqliteStore) -> None:
    imported(store, "characters", GOLDEN / "card-v2.json")
    imported(store, "chats", GOLDEN / "pairs.json", GOLDEN / "Mira - night.jsonl")
    chats = [record for record in records(store) if record["kind"] == "conversation"]
    assert [chat["character_id"] for chat in chats] == [1, 1]
    assert {chat["metadata"]["character"] for chat in chats} == {"Mira"}


def test_a_chat_of_nobody_known_keeps_the_name_without_complaint(store: SqliteStore) -> None:
    done = imported(store, "chats", GOLDEN / "Mira - night.jsonl")
    (chat,) = records(store)
    assert (chat["character_id"], chat["metadata"], done.warnings) == (None, {"character": "Mira"}, [])


def test_the_name_of_a_prompt_is_its_identity(store: SqliteStore, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.csv"
    first.write_text('[{"name": "Plan", "prompt": "a"}, {"name": "Other", "prompt": "o"}]', "utf-8")
    second.write_text("title,prompt\nplan,b\n", "utf-8")
    assert statuses(imported(store, "prompts", first)) == ["created", "created"]
    done = imported(store, "prompts", second)
    assert done.items[0] | {"path": ""} == {"uri": "prompts://1", "status": "updated", "path": ""}
    first.write_text('[{"name": "Other", "prompt": "o"}, {"name": "Third", "prompt": "t"}]', "utf-8")
    assert statuses(imported(store, "prompts", first)) == ["unchanged", "created"]


def test_an_avatar_is_kept_with_its_character(store: SqliteStore, tmp_path: Path) -> None:
    image = png(text_chunk("chara", packed({"name": "Ada", "first_mes": "Yes?"})))
    (tmp_path / "ada.png").write_bytes(image)
    imported(store, "characters", tmp_path / "ada.png")
    (record,) = records(store)
    assert record["avatar"]["mime_type"] == "image/png"
    assert statuses(imported(store, "characters", tmp_path / "ada.png")) == ["unchanged"]


def test_a_file_goes_in_whole_or_not_at_all(store: SqliteStore, tmp_path: Path) -> None:
    bad = tmp_path / "a.csv"
    bad.write_text("name,prompt\ngood,x\n,nameless\n", "utf-8")
    good = tmp_path / "b.csv"
    good.write_text("name,prompt\nfine,x\n", "utf-8")
    done = imported(store, "prompts", tmp_path)
    assert done.line() == "created 1, updated 0, unchanged 0, skipped 0, failed 1"
    assert str(done.errors[0]) == f"{bad}:3: this row has no name."
    assert [record["name"] for record in records(store)] == ["fine"]
    assert done.exit_code == 1


def test_a_large_export_that_ends_early_leaves_nothing(store: SqliteStore, tmp_path: Path) -> None:
    conversation = json.loads((GOLDEN / "chatgpt.json").read_text("utf-8"))[0]
    path = tmp_path / "conversations.json"
    whole = json.dumps([conversation | {"conversation_id": f"c{n}"} for n in range(600)])
    path.write_text(whole[:-200], "utf-8")
    assert path.stat().st_size > 1 << 20
    done = imported(store, "chats", path, limits=ArchiveLimits(1 << 30))
    assert (done.items, done.exit_code) == ([], 1)
    assert "no JSON" in done.errors[0].reason
    assert list(records(store)) == []
    path.write_text(whole, "utf-8")
    assert imported(store, "chats", path, limits=ArchiveLimits(1 << 30)).count("created") == 600


def test_strict_keeps_nothing_when_anything_failed(store: SqliteStore, note: Path) -> None:
    (note.parent / "bad.md").write_bytes(b"a\0b")
    done = imported(store, "notes", note.parent, strict=True)
    assert (done.exit_code, done.items, list(records(store))) == (1, [], [])
    assert str(done.errors[0]).endswith(
        "bad.md: this is not a note; commonplace import notes takes .md, .markdown and .txt files."
    )
    (note.parent / "bad.md").unlink()
    assert imported(store, "notes", note.parent, strict=True).count("created") == 1


def test_strict_with_a_missing_path_is_a_failure(store: SqliteStore, note: Path) -> None:
    done = imported(store, "notes", note, note.parent / "missing.md", strict=True)
    assert (done.exit_code, done.items, list(records(store))) == (1, [], [])


def test_what_was_said_of_a_file_that_failed_is_kept(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(text_chunk("chara", b"!")))
    done = imported(store, "characters", tmp_path / "a.png")
    assert "holds no card" in done.warnings[0].reason
    assert "carries no character card" in done.errors[0].reason


def test_a_dry_run_says_what_would_be_and_keeps_nothing(store: SqliteStore, note: Path) -> None:
    done = imported(store, "notes", note, dry_run=True)
    assert (statuses(done), list(records(store)), store.last_change()) == (["created"], [], 0)
    assert statuses(imported(store, "notes", note)) == ["created"]


def test_options_say_what_a_medium_is(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "talk.srt"
    path.write_bytes((GOLDEN / "talk.srt").read_bytes())
    fields = {
        "media_type": "podcast",
        "title": "The talk",
        "url": "https://x.example",
        "created_at": "2020-01-01T00:00:00Z",
    }
    imported(store, "media", path, tags=("one", "two"), fields=fields)
    (record,) = records(store)
    assert {name: record[name] for name in fields} == fields
    assert record["tags"] == ["one", "two"]
    (tmp_path / "b.txt").write_text("words", "utf-8")
    with pytest.raises(InvalidInput, match="Name one file"):
        imported(store, "media", tmp_path, fields={"title": "x"})


def test_every_kind_of_document_is_found_in_a_folder(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.epub").write_bytes(epub())
    (tmp_path / "b.docx").write_bytes(docx())
    (tmp_path / "c.pdf").write_bytes(pdf("Words"))
    (tmp_path / "d.html").write_bytes((GOLDEN / "page.html").read_bytes())
    (tmp_path / "e.vtt").write_bytes((GOLDEN / "lecture.vtt").read_bytes())
    (tmp_path / "e.mp3").write_bytes(b"sound")
    (tmp_path / "f.mp4").write_bytes(b"picture")
    (tmp_path / "g.xyz").write_bytes(b"unknown")
    done = imported(store, "media", tmp_path)
    assert done.line() == "created 5, updated 0, unchanged 0, skipped 1, failed 0"
    assert [str(one) for one in done.warnings] == [
        f"{tmp_path / 'f.mp4'}: audio and video come in through their transcript: import its .srt, .vtt or "
        "Whisper .json file instead."
    ]
    types = {record["title"]: record["media_type"] for record in records(store)}
    assert types["e"] == "audio"
    named = imported(store, "media", tmp_path / "f.mp4")
    assert (named.exit_code, len(named.errors)) == (1, 1)


def test_what_is_hidden_linked_or_unknown_is_passed_over(store: SqliteStore, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / ".git", root / "sub", outside):
        folder.mkdir(parents=True)
    for path in (root / ".git" / "a.md", root / ".b.md", root / "sub" / "c.md", outside / "d.md", root / "e.xyz"):
        path.write_text(path.name, "utf-8")
    os.symlink(outside, root / "link")
    os.symlink(outside / "d.md", root / "d.md")
    assert [item["path"] for item in imported(store, "notes", root).items] == [str(root / "sub" / "c.md")]


def test_a_pipe_is_refused_and_not_taken_for_an_empty_file(store: SqliteStore) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb", buffering=0) as pipe:
        pipe.write(b"# Tea\n\nOolong.\n")
        done = imported(store, "notes", Path(f"/dev/fd/{reading}"))
    assert (statuses(done), done.skipped) == ([], 0)
    assert "it is a pipe or a device" in str(done.errors[0])


def test_a_file_whose_name_is_no_utf_8_comes_in(store: SqliteStore, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_text("espresso", "utf-8")
    for status in ("created", "unchanged"):
        done = imported(store, "notes", tmp_path)
        assert (statuses(done), done.errors) == ([status], [])
        assert json.dumps(done.shown(), ensure_ascii=False).encode()
    assert [record["title"] for record in records(store)] == ["caf\\udce9"]
    missing = imported(store, "notes", path.with_suffix(".md"))
    assert str(missing.errors[0]).encode().endswith(b"caf\\udce9.md: there is no such file or folder.")


def test_an_export_is_read_out_of_its_archive(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    conversations = (GOLDEN / "chatgpt.json").read_bytes()
    files = {
        "conversations.json": conversations,
        "user.json": '{"id": 1}',
        "chat.html": "<html>",
        "__MACOSX/x.json": "{}",
    }
    path.write_bytes(zipped(files))  # type: ignore[arg-type]
    done = imported(store, "chats", path)
    assert done.line() == "created 2, updated 0, unchanged 0, skipped 3, failed 0"
    assert done.items[0]["path"] == f"{path}/conversations.json"
    assert statuses(imported(store, "chats", path)) == ["unchanged"] * 2


@pytest.mark.parametrize("archived", [True, False])
def test_what_lies_beside_an_export_is_read_or_named(store: SqliteStore, tmp_path: Path, archived: bool) -> None:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    files = {
        "conversations.json": (GOLDEN / "chatgpt.json").read_bytes(),
        "user.json": b'{"id": 1}',
        "broken.json": b'{"messages": [',
        "a/more.json": json.dumps({"title": "Beside", "messages": said}).encode(),
        "chat.dat": json.dumps({"title": "Of no known ending", "messages": said}).encode(),
        "a/scans.json": b"[1, 2]",
        **{f"picture {number}.png": b"\x89PNG" for number in range(9)},
        "a/picture.png": b"\x89PNG",
    }
    path = tmp_path / ("export.zip" if archived else "export")
    if archived:
        path.write_bytes(zipped(files))
    else:
        (path / "a").mkdir(parents=True)
        for name, data in files.items():
            (path / name).write_bytes(data)
    done = imported(store, "chats", path)
    assert {item["path"].removeprefix(f"{path}/") for item in done.items} == {
        "conversations.json", "a/more.json", "chat.dat",
    }  # fmt: skip
    told = {problem.path.removeprefix(str(path)).lstrip("/"): problem.reason for problem in done.warnings}
    assert told["user.json"].startswith("this is not a chat; commonplace import chats takes exports of ChatGPT")
    assert told["user.json"].endswith(", so it was left out.")
    assert told["a/scans.json"].startswith("this is not a chat;")
    assert told[""] == (
        "picture 0.png, picture 1.png, picture 2.png, picture 3.png, picture 4.png and 4 more hold no chats "
        "and were left out."
    )
    assert told["a"] == "picture.png holds no chats and was left out."
    assert [problem.path.removeprefix(f"{path}/") for problem in done.errors] == ["broken.json"]
    assert (done.skipped, done.exit_code) == (13, 1)


@pytest.mark.parametrize("name", ["../evil.md", "/etc/evil.md", "a/../../evil.md", "C:\\evil.md", "a\\..\\..\\evil.md"])
def test_an_archive_that_points_outside_is_refused(store: SqliteStore, tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"fine.md": "fine", name: "evil"}))
    done = imported(store, "notes", path)
    assert (done.items, done.exit_code) == ([], 1)
    assert "points outside the archive" in done.errors[0].reason


def test_a_link_in_an_archive_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert "is a link" in imported(store, "notes", path).errors[0].reason


def test_archives_and_files_past_the_limit_fail(store: SqliteStore, tmp_path: Path) -> None:
    big, bomb = tmp_path / "big.md", tmp_path / "bomb.zip"
    big.write_bytes(b"x" * 1001)
    bomb.write_bytes(zipped({f"{n}.md": b"x" * 1000 for n in range(5)}))
    done = imported(store, "notes", big, bomb, limits=ArchiveLimits(1000))
    assert [error.path for error in done.errors] == [str(bomb), str(big)]
    assert "more than 4,000 bytes" in done.errors[0].reason
    assert "import_max_bytes" in done.errors[1].reason


def test_a_damaged_entry_fails_alone(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.md", "the first note")
        archive.writestr("b.md", "the second note")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"the first note", b"the worst note", 1))
    done = imported(store, "notes", path)
    assert [item["path"] for item in done.items] == [f"{path}/b.md"]
    assert "damaged" in done.errors[0].reason


def test_of_a_pdf_that_its_archive_has_damaged_that_is_said(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.pdf", pdf(*(f"page {number} " * 20 for number in range(200))))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (error,) = imported(store, "media", path).errors
    assert error.reason == "it is damaged inside its archive."


@pytest.mark.parametrize(
    ("kind", "name", "data", "noun"),
    [
        ("chats", "a.json", b'{"what": 1}', "a chat"),
        ("chats", "a.txt", b"words", "a chat"),
        ("media", "a.json", b'{"what": 1}', "a transcript or document"),
        ("media", "a.bin", b"\0\1", "a transcript or document"),
        ("characters", "a.json", b"[1]", "a character card"),
        ("characters", "a.txt", b"words", "a character card"),
        ("prompts", "a.bin", b"words", "a prompt"),
        ("notes", "a.pdf", b"%PDF", "a note"),
    ],
)
def test_what_is_not_of_the_kind_says_what_the_kind_takes(
    store: SqliteStore, tmp_path: Path, kind: str, name: str, data: bytes, noun: str
) -> None:
    (tmp_path / name).write_bytes(data)
    done = imported(store, kind, tmp_path / name)
    assert done.exit_code == 1
    assert done.errors[0].reason.startswith(f"this is not {noun}; commonplace import {kind} takes ")


def test_an_empty_file_is_skipped(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"")
    (tmp_path / "b.md").write_bytes(b" \r\n\t")
    done = imported(store, "notes", tmp_path)
    assert (done.line(), done.exit_code) == ("created 0, updated 0, unchanged 0, skipped 2, failed 0", 0)


def test_nothing_to_read_is_exit_2(store: SqliteStore, tmp_path: Path) -> None:
    assert imported(store, "notes", tmp_path).exit_code == 2
    assert imported(store, "notes", tmp_path / "nowhere").exit_code == 2


def test_a_forced_format_wins(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "talk.log"
    path.write_bytes((GOLDEN / "talk.srt").read_bytes())
    assert imported(store, "media", path, format="text").count("created") == 1
    assert next(records(store))["media_type"] == "txt"
    with pytest.raises(InvalidInput, match="no format csv"):
        imported(store, "media", path, format="csv")


def test_the_reader_is_chosen_by_content_before_the_name(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_bytes((GOLDEN / "lecture.vtt").read_bytes())
    imported(store, "media", path)
    assert next(records(store))["cues"][0]["speaker"] == "Ada Lovelace"


def test_json_that_is_not_utf8_is_read_like_any_text(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"messages": [{"role": "user", "content": "Café"}]}'.encode("cp1252"))
    done = imported(store, "chats", path)
    assert next(records(store))["title"] == "Café"
    assert "Windows-1252" in done.warnings[0].reason
    path.write_bytes('{"messages": [{"role": "user", "content": "Tee über"}]}'.encode("utf-16"))
    assert statuses(imported(store, "chats", path)) == ["updated"]


def test_a_folder_that_may_not_be_read_is_said(store: SqliteStore, note: Path, tmp_path: Path) -> None:
    closed = note.parent / "closed"
    closed.mkdir(mode=0)
    try:
        with unprivileged(tmp_path):
            done = imported(store, "notes", note.parent)
    finally:
        closed.chmod(0o700)
    assert (len(done.items), [str(error) for error in done.errors]) == (1, [f"{closed}: it may not be read."])


def test_progress_rises_to_the_end(store: SqliteStore, tmp_path: Path) -> None:
    conversation = json.loads((GOLDEN / "chatgpt.json").read_text("utf-8"))[0]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([conversation | {"conversation_id": f"c{n}"} for n in range(900)]), "utf-8")
    told: list[tuple[int, int]] = []
    import_paths(
        store, putting(store), "chats", [path], ArchiveLimits(1 << 30), ImportOptions(), lambda *at: told.append(at)
    )
    assert len(told) > 3
    assert told[-1] == (path.stat().st_size // 1024,) * 2


_spoken = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=20).filter(
    lambda text: text.strip() == text and "-->" not in text
)
_cues = st.lists(
    st.tuples(
        st.integers(0, 10**8),
        st.integers(0, 10**6),
        st.lists(_spoken, min_size=1, max_size=3),
        st.none() | st.just("Ada"),
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_cues)
def test_what_a_transcript_writes_is_imported_again(store: SqliteStore, said: list[Any]) -> None:
    cues = [
        {"start_ms": start, "end_ms": start + length, "text": "\n".join(lines)} | ({"speaker": who} if who else {})
        for start, length, lines, who in sorted(said, key=lambda cue: cue[0])
    ]
    put_record(store, {"kind": "media", "id": "talk", "title": "Talk", "media_type": "video", "cues": cues})
    item = store.drawer(Items).find("media", "", "talk")
    assert item is not None
    written = str(transcript(store, item, TranscriptRequest("vtt")).content)
    assert [cue.shown() for cue in parse_vtt(written, Remarks("a.vtt"))] == cues


# JSON Lines


def test_a_bad_line_fails_alone_and_is_named(store: SqliteStore) -> None:
    data = b'{"kind": "note", "title": "a"}\n\nnot json\n{"kind": "media", "title": "x"}\n[1]\n\xff\n'
    data += b'{"kind": "note", "title": "b"}'
    done = put_lines(store, data)
    assert done.line() == "created 2, updated 0, unchanged 0, skipped 0, failed 4"
    assert [error.line for error in done.errors] == [3, 4, 5, 6]
    assert str(done.errors[1]) == 'in.jsonl:4: media needs "media_type".'
    assert done.exit_code == 1


@pytest.mark.parametrize("named", [{"character_id": 1}, {"character": "Mira"}])
def test_a_conversation_may_come_before_its_character(store: SqliteStore, named: dict[str, Any]) -> None:
    put_record(store, {"kind": "character", "id": 1, "name": "Somebody else"})
    file = [
        {"kind": "conversation", "id": "c", "title": "Talk", **named},
        {"kind": "nothing"},
        {"kind": "conversation", "id": "d"},
        {"kind": "character", "id": 1, "uid": "8f14e45f-ceea-467f-9575-4b8c1a2b3c4d", "name": "Mira"},
        {"kind": "note", "title": "a"},
    ]
    done = put_lines(store, "\n".join(map(json.dumps, file)).encode())
    assert [item["uri"].partition("://")[0] for item in done.items] == ["chats", "characters", "notes"]
    assert ([error.line for error in done.errors], done.warnings) == ([2, 3], [])
    (talk,) = records(store, ("conversation",))
    assert talk["character_id"] == 2


@pytest.mark.parametrize("wrong", [{"version": "3"}, {"version": -1}, {"version": True}, {"deleted": "yes"}])
def test_a_version_or_deletion_that_is_none_fails_its_line(store: SqliteStore, wrong: dict[str, Any]) -> None:
    done = put_lines(store, json.dumps({"kind": "note", "title": "a", **wrong}).encode())
    assert next(iter(wrong)) in done.errors[0].reason
    assert list(records(store)) == []


def test_lines_are_strict_and_dry_too(store: SqliteStore) -> None:
    good, bad = b'{"kind": "note", "title": "a"}\n', b"{}\n"
    assert statuses(put_lines(store, good, dry_run=True)) == ["created"]
    assert put_lines(store, good + bad, strict=True).items == []
    assert list(records(store)) == []


def test_a_line_may_delete(store: SqliteStore) -> None:
    put_lines(store, b'{"kind": "note", "id": "a", "title": "a"}\n')
    done = put_lines(store, b'{"kind": "note", "id": "a", "deleted": true}\n')
    assert (statuses(done), list(records(store))) == (["deleted"], [])


def _fill(store: SqliteStore, folder: Path) -> None:
    folder.mkdir()
    (folder / "c.pdf").write_bytes(pdf("One page", "Another page"))
    (folder / "a.epub").write_bytes(epub())
    (folder / "ada.png").write_bytes(png(text_chunk("chara", packed({"name": "Ada", "first_mes": "Yes?"}))))
    (folder / "talk.mp3").write_bytes(b"sound")
    for kind, names in {
        "notes": ["compost.md", "bread.markdown", "tea.txt"],
        "characters": ["card-v1.json", "card-v2.json", "card-v3.json", "card.md"],
        "chats": ["chatgpt.json", "claude.json", "Mira - night.jsonl", "pairs.json", "messages.json"],
        "media": ["talk.srt", "lecture.vtt", "talk-whisper.json", "page.html"],
        "prompts": ["prompts.json", "prompts.csv", "review.md"],
    }.items():
        done = imported(store, kind, *(GOLDEN / name for name in names))
        assert not done.errors, done.errors
    for kind, name in (("media", "c.pdf"), ("media", "a.epub"), ("characters", "ada.png")):
        assert not imported(store, kind, folder / name).errors


def test_everything_goes_into_an_empty_home_and_comes_out_the_same(store: SqliteStore, tmp_path: Path) -> None:
    _fill(store, tmp_path / "files")
    (number,) = {record["id"] for record in records(store) if record.get("name") == "Ada" and record.get("avatar")}
    put_lines(store, json.dumps({"kind": "character", "id": number, "deleted": True}).encode())  # leaves a gap
    exported = lines(store)
    assert exported.count(b"\n") > 15
    other = open_store("sqlite", tmp_path / "other")
    try:
        done = put_lines(other, exported)
        assert (done.errors, done.warnings) == ([], [])
        assert set(statuses(done)) == {"created"}
        assert lines(other) == exported
        assert set(statuses(put_lines(other, exported))) == {"unchanged"}
        assert lines(other) == exported
    finally:
        other.close()


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_title = _text.filter(str.strip)
_notes = st.fixed_dictionaries(
    {"kind": st.just("note"), "title": _title, "body": _text},
    optional={
        "tags": st.lists(_title, max_size=3),
        "metadata": st.dictionaries(_text, st.integers(-9, 9) | _text, max_size=2),
        "created_at": st.datetimes().map(lambda when: when.isoformat() + "Z"),
        "version": st.integers(1, 50),
    },
)
_chats = st.fixed_dictionaries(
    {
        "kind": st.just("conversation"),
        "title": _title,
        "messages": st.lists(st.fixed_dictionaries({"sender": _title, "content": _text}), max_size=3),
    }
)
_prompts = st.fixed_dictionaries({"kind": st.just("prompt"), "name": _title, "user_prompt": _text})


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_notes | _chats | _prompts, max_size=5))
def test_any_records_go_round(tmp_path_factory: pytest.TempPathFactory, given_records: list[Record]) -> None:
    folder = tmp_path_factory.mktemp("round")
    first, second = open_store("sqlite", folder / "a"), open_store("sqlite", folder / "b")
    try:
        put_lines(first, "\n".join(json.dumps(record) for record in given_records).encode())
        exported = lines(first)
        assert put_lines(second, exported).errors == []
        assert lines(second) == exported
    finally:
        first.close()
        second.close()
