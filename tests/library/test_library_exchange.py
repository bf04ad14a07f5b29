"""`export` and `import_`: everything that hangs on an item comes along, and nothing that is here is written over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.drawer import Records
from commonplace.kinds.knowledge.records import put_record
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Image, New, Revision
from commonplace.library import Library
from commonplace.model import Draft, Filter, Span
from commonplace.store.attachments import Attachments
from commonplace.store.lasting_names import LastingNames
from commonplace.store.rows import Attachment
from opening import open_library


@pytest.fixture
def elsewhere(backend: str, tmp_path: Path) -> Iterator[Library]:
    with open_library(backend, tmp_path / "elsewhere") as other:
        yield other


def _records(library: Library) -> list[dict[str, object]]:
    return [json.loads(line) for line in library.export()]


def _fill(library: Library) -> None:
    cues = [{"start_ms": 1000, "end_ms": 4000, "text": "Hello there", "speaker": "Ann"}]
    put_record(library.store, {"kind": "media", "title": "Talk", "media_type": "video", "cues": cues})
    put_record(library.store, {"kind": "character", "name": "Zoë", "description": "a baker", "system_prompt": "Bake."})
    put_record(library.store, {"kind": "prompt", "name": "P", "user_prompt": "do it"})
    put_record(library.store, {"kind": "conversation", "title": "C", "messages": [{"role": "user", "content": "hi"}]})
    put_record(library.store, {"kind": "note", "id": "tea", "title": "Tea", "body": "Oolong.", "version": 7})
    library.put(Draft("note", "n", parent="book", body="a\nb", metadata={"x": 1.0, "y": [None]}, tags=("B", "a")))
    paged = Span("page two", 9, 17, 2, 2, ("Two",), {"page": 2})
    library.put(Draft("document", "d.pdf", parent="docs", title="D", body="page one\npage two", spans=(paged,)))
    image = Attachment(hashlib.sha256(b"png").digest(), "image/png", b"png")
    library.store.drawer(Attachments).attach(library.get("notes://tea").id, [(image, {"alt": "cup"})])
    library.memories.store([New("th", "agent", "one"), New("th", "user", "two " * 900, expires_at=_LATER)])
    library.memories.store([New("th", "agent", "three", supersedes=(1,))])
    library.memories.revise([Revision(3, text="three again")])
    library.memories.store([New("th", "user", "seen", images=(Image(_PIXEL, "image/png", {"alt": "dot"}),))])


_PIXEL = b"\x89PNG\r\n\x1a\n"
_LATER = datetime(2096, 1, 1, tzinfo=UTC)


def test_an_export_read_by_an_empty_library_is_exported_again_the_same(library: Library, elsewhere: Library) -> None:
    _fill(library)
    lines = list(library.export())
    assert elsewhere.import_(lines) == len(lines)
    assert list(elsewhere.export()) == lines
    assert elsewhere.import_(lines) == len(lines)  # a second time changes nothing
    assert list(elsewhere.export()) == lines
    assert elsewhere.status().chunks == library.status().chunks
    assert elsewhere.doctor() == []


def test_cues_parts_versions_and_histories_come_along(library: Library, elsewhere: Library) -> None:
    _fill(library)
    elsewhere.import_(library.export())
    for uri in ("media://1", "characters://1", "docs://docs/d.pdf", "memory://2"):
        before, after = library.get(uri).id, elsewhere.get(uri).id
        here, there = library.store.drawer(Records), elsewhere.store.drawer(Records)
        assert here.places([before])[before] == there.places([after])[after], uri
        assert here.cues(before) == there.cues(after), uri
    assert elsewhere.get("notes://tea").version == 7
    (entry,) = elsewhere.store.drawer(EntryRows).get([3])
    assert [past.body for past in elsewhere.store.drawer(EntryRows).past([entry.item_id])[entry.item_id]] == ["three"]
    assert elsewhere.store.drawer(EntryRows).get([1])[0].superseded_by == 3
    assert elsewhere.store.drawer(EntryRows).get([4])[0].images == 1
    (character,) = elsewhere.store.drawer(LastingNames).named("character", "zoë")
    assert elsewhere.store.drawer(LastingNames).uids([character]) == {
        character: library.store.drawer(LastingNames).uids([library.get("characters://1").id])[
            library.get("characters://1").id
        ]
    }


def test_an_older_entry_that_comes_after_the_one_that_replaces_it_is_replaced_all_the_same(
    library: Library, elsewhere: Library
) -> None:
    library.memories.store([New("th", "agent", "one")])
    library.memories.store([New("th", "agent", "two", supersedes=(1,))])
    elsewhere.import_(reversed(list(library.export())))
    assert elsewhere.store.drawer(EntryRows).get([1])[0].superseded_by == 2


def test_an_item_that_has_lost_its_cues_or_pictures_loses_them_where_it_was_imported_before(
    library: Library, elsewhere: Library
) -> None:
    _fill(library)
    elsewhere.import_(library.export())
    put_record(library.store, {"kind": "media", "id": 1, "title": "Talk", "media_type": "video", "body": "As text"})
    library.store.drawer(Attachments).attach(library.get("notes://tea").id, [])
    library.memories.revise([Revision(4, images=())])
    lines = list(library.export())
    elsewhere.import_(lines)
    assert [json.loads(line) | {"past": None} for line in elsewhere.export()] == [
        json.loads(line) | {"past": None} for line in lines
    ]
    assert elsewhere.doctor() == []


def test_an_entry_whose_predecessor_is_gone_replaces_no_other_of_that_number(
    library: Library, elsewhere: Library
) -> None:
    library.memories.store([New("th", "agent", "one")])
    library.memories.store([New("th", "agent", "two", supersedes=(1,))])
    library.delete("memory://1")
    elsewhere.memories.store([New("another", "agent", "ours")])
    elsewhere.import_(library.export())
    assert elsewhere.store.drawer(EntryRows).get([1])[0].superseded_by is None


def test_what_is_said_about_everything_comes_along(library: Library, elsewhere: Library) -> None:
    library.folders.set_context(None, "", "All of it is about bread.")
    library.put(Draft("note", "n", body="rye"))
    lines = list(library.export())
    assert elsewhere.import_(lines) == 2
    assert [said.text for said in elsewhere.folders.contexts()] == ["All of it is about bread."]
    assert list(elsewhere.export()) == lines
    assert len(list(library.export(Filter(kinds=("note",))))) == 1


def test_what_others_change_or_delete_during_an_export_is_whole_or_absent(library: Library, elsewhere: Library) -> None:
    for name in ("One", "Two", "Three"):
        put_record(library.store, {"kind": "character", "name": name, "description": "as it was"})
    lines = library.export()
    first = next(lines)
    put_record(library.store, {"kind": "character", "id": 2, "name": "Two", "system_prompt": "quite another one now"})
    library.delete("characters://3")
    assert elsewhere.import_([first, *lines]) == 2
    assert elsewhere.get("characters://2").fields["system_prompt"] == "quite another one now"
    assert elsewhere.status().items == {"character": 2}


@pytest.mark.parametrize("thread", ["th", "another"])
def test_a_memory_whose_number_is_taken_stops_an_import_and_leaves_the_one_that_is_here(
    thread: str, library: Library, elsewhere: Library
) -> None:
    library.memories.store([New("th", "agent", "theirs")])
    elsewhere.memories.store([New(thread, "agent", "ours")])
    with pytest.raises(
        InvalidInput, match=r"^Line 1 .*memory 1 has other content here.*0 items before it were imported"
    ):
        elsewhere.import_(library.export())
    assert elsewhere.get("memory://1").body == "ours"


def test_a_character_whose_number_is_taken_stops_an_import_and_leaves_the_one_that_is_here(
    library: Library, elsewhere: Library
) -> None:
    put_record(library.store, {"kind": "character", "name": "Theirs"})
    put_record(elsewhere.store, {"kind": "character", "name": "Ours"})
    with pytest.raises(InvalidInput, match="character 1 has other content here"):
        elsewhere.import_(library.export())
    assert elsewhere.get("characters://1").title == "Ours"


def test_a_number_that_was_imported_and_deleted_is_not_given_again(library: Library, elsewhere: Library) -> None:
    put_record(library.store, {"kind": "character", "name": "Gone"})
    elsewhere.import_(library.export())
    elsewhere.delete("characters://1")
    assert put_record(elsewhere.store, {"kind": "character", "name": "Next"}).uri == "characters://2"


def test_the_nodes_of_tables_are_neither_written_nor_read(library: Library, elsewhere: Library) -> None:
    library.put(Draft("table", "/items/0", parent="t1", body="name: tea", fields={"pointer": "/items/0"}))
    assert _records(library) == []
    line = json.dumps({"kind": "table", "parent": "t1", "key": "/items/0", "body": "name: tea"})
    assert elsewhere.import_([line]) == 0
    assert elsewhere.status().items == {}


def test_what_has_expired_is_not_exported(library: Library) -> None:
    library.memories.store([New("th", "agent", "soon over", expires_at=_LATER)])
    draft = Draft("memory", "1", parent="th", body="over", fields={"source": "agent", "expires_at": 1})
    library.put(draft)
    assert _records(library) == []


@pytest.mark.parametrize(("line", "lacks"), [('{"text": "a memory"}', "kind"), ('{"kind": "note"}', "key")])
def test_a_line_of_something_else_is_told_what_it_lacks(line: str, lacks: str, library: Library) -> None:
    with pytest.raises(InvalidInput, match=f"^Line 1 is no exported item: it has no '{lacks}'. 0 items"):
        library.import_([line])


def test_a_line_that_is_no_object_is_told_so(library: Library) -> None:
    with pytest.raises(InvalidInput, match=r"^Line 1 is no exported item: it is no JSON object\. 0 items"):
        library.import_(["[1]"])


@pytest.mark.parametrize(
    "line",
    [
        "5",
        "[]",
        "{",
        "[" * 100_000,
        '{"kind": ["note"], "key": "a"}',
        '{"kind": "note", "key": 5}',
        '{"kind": "context", "text": 5}',
        '{"kind": "context", "text": " "}',
        '{"kind": "note", "key": "a", "tags": "abc"}',
        '{"kind": "note", "key": "a", "fields": null}',
        '{"kind": "note", "key": "a", "title": "\\ud800"}',
        '{"kind": "note", "key": "a", "body": "ab", "passages": [[-2, -1, 1, 1, [], null]]}',
        '{"kind": "note", "key": "a", "body": "ab", "passages": [["x"]]}',
        '{"kind": "note", "key": "a", "version": "x"}',
        '{"kind": "media", "key": "1", "cues": [[1]]}',
        '{"kind": "memory", "key": "x", "parent": "t", "body": "b", "fields": {"source": "user"}}',
        '{"kind": "memory", "key": "1", "parent": "t", "body": "b", "fields": {"source": "user", "expires_at": "x"}}',
        '{"kind": "memory", "key": "1", "parent": "t", "body": "b", "fields": {"source": "user", "supersedes": ["x"]}}',
        '{"kind": "memory", "key": "99999999999999999999", "parent": "t", "fields": {"source": "user"}}',
        '{"kind": "note", "key": "a", "version": 1000000000000000000000}',
        '{"kind": "note", "key": "a", "version": 1e999}',
        '{"kind": "note", "key": "a", "created_at": "0001-01-01T00:00:00+14:00"}',
        '{"kind": "note", "key": "a", "updated_at": "9999-12-31T23:59:59-14:00"}',
        '{"kind": "note", "key": "a", "body": "ab", "passages": [[0, 1, 1, 1000000000000000000000, [], null]]}',
        '{"kind": "note", "key": "a", "body": "ab", "passages": [[true, 1, 1, 1, [], null]]}',
        '{"kind": "note", "key": "a", "body": "ab", "attachments": [{"media_type": "a\\u0000", "data": ""}]}',
        '{"kind": "memory", "key": "1", "parent": "t", "body": "b",'
        ' "fields": {"source": "user", "expires_at": 1000000000000000000000}}',
        '{"kind": "memory", "key": "1", "parent": "t", "body": "b", "fields": {"source": "user"},'
        ' "past": [[1000000000000000000000, 1, "", {}, [], []]]}',
    ],
)
def test_a_line_that_is_something_else_is_named_and_what_was_before_it_is_in(line: str, library: Library) -> None:
    good = json.dumps({"kind": "note", "key": "good", "body": "good"})
    with pytest.raises(InvalidInput, match=r"^Line 2 is no exported item: .*[^.]\. 1 items before it were imported\.$"):
        library.import_([good, line])
    assert library.status().items == {"note": 1}
