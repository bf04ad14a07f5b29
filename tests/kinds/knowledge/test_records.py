"""The interchange record.

1. A record goes in and comes out, and exporting, importing into an empty home and exporting again gives the same bytes.
2. Identity: uid, then id, then what it says; a prompt's name. Numbers are counted per kind and never given twice.
3. What is wrong with a record is one sentence, and nothing of it is stored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.kinds.knowledge.records import References, delete_record, put_record, records
from commonplace.store.base import Store
from commonplace.store.import_sources import ImportSource, ImportSources
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from kit.answers import present
from opening import open_store

NOTE = {"kind": "note", "title": "Tea", "body": "Oolong"}
ALL: list[dict[str, Any]] = [
    {
        **NOTE,
        "id": "tea",
        "tags": [" Garden", "garden", "b"],
        "metadata": {"bed": 3},
        "created_at": "2023-04-02T07:10:00Z",
        "updated_at": "2024-03-01T18:00:00.5+02:00",
        "version": 7,
    },
    {
        "kind": "character",
        "id": 4,
        "name": "Alice",
        "description": "A pirate.",
        "alternate_greetings": ["Ahoy", ""],
        "lorebook": {"name": "Seas", "entries": [{"keys": ["sea"], "content": "Salt.", "enabled": False}]},
        "extensions": {"x": {"y": [1, None]}},
        "avatar": {"mime_type": "image/png", "base64": "iVBORw0KGgo="},
        "tags": ["sea"],
    },
    {
        "kind": "conversation",
        "title": "Talk",
        "character": "alice",
        "messages": [
            {"sender": "Me", "content": "Hello", "metadata": {"n": 1}},
            {"sender": "Alice", "content": "Arr", "timestamp": "2024-01-01T10:00:00Z", "parent_id": "x"},
        ],
    },
    {
        "kind": "media",
        "title": "Film",
        "media_type": "video",
        "cues": [
            {"start_ms": 5000, "end_ms": 6000, "text": "two", "speaker": "Zoë"},
            {"start_ms": 0, "end_ms": 900, "text": "one\nline"},
        ],
    },
    {
        "kind": "media",
        "title": "Paper",
        "media_type": "pdf",
        "url": "https://example.org/p",
        "chunks": [{"text": "first", "page": 1, "uuid": "u1"}, {"text": "second", "page": 2}],
    },
    {"kind": "prompt", "name": "Greet", "user_prompt": "Hi {{who}}", "tags": ["hello"]},
]


def lines(store: Store) -> list[str]:
    return [json.dumps(record, ensure_ascii=False) for record in records(store)]


def test_export_import_export_gives_the_same_bytes(store: Store, backend: str, tmp_path: Path) -> None:
    for record in ALL:
        assert put_record(store, record).status == "created"
    out = lines(store)
    assert [json.loads(line)["kind"] for line in out] == [
        "character", "note", "media", "media", "conversation", "prompt",
    ]  # fmt: skip
    (tmp_path / "other").mkdir()
    other = open_store(backend, tmp_path / "other")
    try:
        for line in out:
            put = put_record(other, json.loads(line))
            assert (put.status, put.warnings) == ("created", ())
        assert lines(other) == out
        for line in out:
            assert put_record(other, json.loads(line)).status == "unchanged"
        assert lines(other) == out
        assert other.check() == store.check() == []
    finally:
        other.close()


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_TITLE = _TEXT.filter(str.strip)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"kind": st.just("note"), "title": _TITLE, "body": _TEXT, "tags": st.lists(_TEXT, max_size=3)}
        )
        | st.fixed_dictionaries(
            {
                "kind": st.just("media"),
                "title": _TITLE,
                "media_type": st.sampled_from(["video", "pdf"]),
                "cues": st.lists(
                    st.fixed_dictionaries(
                        {"start_ms": st.integers(0, 99), "end_ms": st.integers(0, 99), "text": _TEXT}
                    ),
                    max_size=4,
                ),
            }
        )
        | st.fixed_dictionaries(
            {
                "kind": st.just("conversation"),
                "title": _TITLE,
                "messages": st.lists(st.fixed_dictionaries({"sender": _TITLE, "content": _TEXT}), max_size=4),
            }
        ),
        max_size=4,
    )
)
def test_any_records_survive_the_round_trip(tmp_path_factory: pytest.TempPathFactory, given: list[Any]) -> None:
    one, two = (open_store("sqlite", tmp_path_factory.mktemp("home")) for _ in range(2))
    try:
        for record in given:
            put_record(one, record)
        for line in lines(one):
            put_record(two, json.loads(line))
        assert lines(one) == lines(two)
        assert one.check() == two.check() == []
    finally:
        one.close()
        two.close()


def test_the_same_record_again_changes_nothing(store: Store) -> None:
    for record in ALL:
        first = put_record(store, record)
        again = put_record(store, record)
        assert (again.status, again.uri, again.version) == ("unchanged", first.uri, first.version)


def test_a_record_without_a_name_is_known_by_its_title_and_content(store: Store) -> None:
    first = put_record(store, NOTE)
    assert put_record(store, NOTE).uri == first.uri
    assert put_record(store, {**NOTE, "body": "other"}).status == "created"
    assert put_record(store, {**NOTE, "title": "TEA"}).status == "created"


def test_an_id_names_an_item_where_there_is_no_uid(store: Store) -> None:
    put_record(store, {**NOTE, "id": "a"})
    changed = put_record(store, {**NOTE, "id": "a", "body": "new"})
    assert (changed.status, changed.version, changed.uri) == ("updated", 2, "notes://a")
    assert put_record(store, {**NOTE, "id": "b"}).status == "created"


def test_an_unknown_uid_is_a_new_item_and_references_follow_a_taken_id(store: Store) -> None:
    put_record(store, {"kind": "character", "id": 1, "name": "Bob"})
    references = References()
    uid = "3f0c1a52-7c1d-4b6e-9f57-0d2c1b7a9e11"
    other = put_record(store, {"kind": "character", "id": 1, "uid": uid, "name": "Eve"}, references=references)
    assert (other.status, other.uri) == ("created", "characters://2")
    put_record(store, {"kind": "conversation", "id": "c", "title": "T", "character_id": 1}, references=references)
    found = {record["id"]: record for record in records(store, ("conversation",))}
    assert found["c"]["character_id"] == 2
    assert put_record(store, {"kind": "character", "uid": uid, "name": "Eva"}).uri == "characters://2"


def test_a_prompt_is_known_by_its_name_whatever_its_case(store: Store) -> None:
    put_record(store, {"kind": "prompt", "name": "Greet", "details": "one"})
    again = put_record(store, {"kind": "prompt", "name": "greet", "details": "two"})
    assert (again.status, again.uri, again.version) == ("updated", "prompts://1", 2)


def test_numbers_are_counted_per_kind_and_never_given_twice(store: Store) -> None:
    film = {"kind": "media", "title": "A", "media_type": "video"}
    assert put_record(store, film).uri == "media://1"
    assert put_record(store, {"kind": "prompt", "name": "P"}).uri == "prompts://1"
    assert put_record(store, {**film, "id": 7, "title": "B"}).uri == "media://7"
    delete_record(store, {"kind": "media", "id": 7})
    assert put_record(store, {**film, "title": "C"}).uri == "media://8"
    assert put_record(store, {**film, "title": "D", "id": "a.b~c"}).uri == "media://a.b~c"


def test_deleted_true_deletes_and_takes_the_messages_along(store: Store) -> None:
    put_record(store, {"kind": "conversation", "id": "c", "title": "T", "messages": [{"sender": "a", "content": "b"}]})
    assert put_record(store, {"kind": "conversation", "id": "c", "deleted": True}).status == "deleted"
    assert store.drawer(Listing).counts() == {}
    assert put_record(store, {"kind": "conversation", "id": "c", "deleted": True}).status == "unchanged"


def test_a_deleted_character_leaves_its_conversations_without_one(store: Store) -> None:
    put_record(store, {"kind": "character", "name": "Bob"})
    put_record(store, {"kind": "conversation", "id": "c", "title": "T", "character_id": 1})
    delete_record(store, {"kind": "character", "id": 1})
    assert next(records(store, ("conversation",)))["character_id"] is None


def test_missing_times_are_those_that_are_there(store: Store) -> None:
    put_record(store, {**NOTE, "updated_at": "2024-03-01"})
    note = next(records(store, ("note",)))
    assert note["created_at"] == note["updated_at"] == "2024-03-01T00:00:00Z"


def test_roles_come_from_names_and_then_from_who_speaks_first(store: Store) -> None:
    said = [{"sender": name, "content": "x"} for name in ("Ann", "Bot", "Ann", "Carl", "Human", "system")]
    put_record(store, {"kind": "conversation", "title": "T", "messages": said})
    made = next(records(store, ("conversation",)))["messages"]
    assert [message["role"] for message in made] == ["user", "assistant", "user", "assistant", "user", "system"]


def test_unknown_fields_are_kept_in_metadata_with_a_warning(store: Store) -> None:
    put = put_record(store, {**NOTE, "colour": "red", "metadata": {"a": 1}})
    assert put.warnings == ('"colour" is no field of a note; kept in metadata.',)
    assert next(records(store, ("note",)))["metadata"] == {"colour": "red", "a": 1}


def test_cues_are_sorted_and_one_that_runs_backwards_lasts_no_time(store: Store) -> None:
    cues = [{"start_ms": 9, "end_ms": 3, "text": "b"}, {"start_ms": 1, "end_ms": 2, "text": "a"}]
    put = put_record(store, {"kind": "media", "title": "F", "media_type": "video", "cues": cues})
    assert put.warnings == ("1 cue ends before the start; the end was set to the start.",)
    made = next(records(store, ("media",)))
    assert made["body"] == "a\nb"
    assert [(cue["start_ms"], cue["end_ms"]) for cue in made["cues"]] == [(1, 2), (9, 9)]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({}, '"kind" must be one of note, media, conversation, character, prompt.'),
        ({"kind": "note"}, 'note needs "title".'),
        ({"kind": "media", "title": "x"}, 'media needs "media_type".'),
        ({"kind": "character"}, 'character needs "name".'),
        ({"kind": "prompt", "name": " "}, 'prompt needs "name".'),
        ({**NOTE, "tags": "a"}, "tags must be a list of strings."),
        ({**NOTE, "metadata": []}, "metadata must be an object."),
        ({**NOTE, "uid": "x"}, "uid must be a UUID, such as 3f0c1a52-7c1d-4b6e-9f57-0d2c1b7a9e11."),
        ({**NOTE, "created_at": "soon"}, 'created_at "soon" is not an ISO 8601 date'),
        (
            {"kind": "media", "title": "x", "media_type": "pdf", "body": "abc", "chunks": [{"text": "z"}]},
            "The text of chunks.0 is not in the body",
        ),
        (
            {"kind": "media", "title": "x", "media_type": "pdf", "cues": [{"start_ms": 1}]},
            'cues.0 needs "start_ms", "end_ms" and "text".',
        ),
        (
            {"kind": "media", "title": "x", "media_type": "pdf", "chunks": [{"text": "a", "page": "iv"}]},
            "page must be a whole number from 0.",
        ),
        (
            {"kind": "media", "title": "x", "media_type": "pdf", "chunks": [{"text": "a", "uuid": 5}]},
            "uuid must be a string.",
        ),
        ({"kind": "conversation", "title": "x", "messages": [{"sender": "a"}]}, 'messages.0 needs "content".'),
        ({"kind": "character", "name": "x", "avatar": {"base64": "!"}}, "avatar.base64 is not base64."),
    ],
)
def test_a_bad_record_is_refused_in_a_sentence_and_leaves_nothing(
    store: Store, record: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        put_record(store, record)
    assert str(refused.value).startswith(sentence)
    assert store.drawer(Listing).counts() == {}


@given(
    st.dictionaries(st.sampled_from([*ALL[0], *ALL[1], *ALL[3]]), st.none() | st.integers() | _TEXT | st.lists(_TEXT))
)
def test_whatever_a_record_holds_it_is_stored_or_refused(
    tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]
) -> None:
    store = open_store("sqlite", tmp_path_factory.mktemp("home"))
    try:
        for kind in ("note", "media", "conversation", "character", "prompt"):
            try:
                put_record(store, {**record, "kind": kind})
            except CommonplaceError:
                continue
        assert store.check() == []
        list(records(store))
    finally:
        store.close()


@pytest.mark.parametrize(
    ("body", "chunks", "places"),
    [
        (None, ["same", "same", "one two", "two"], [(0, 4), (6, 10), (12, 19), (21, 24)]),
        ("one two three one", ["one", "one"], [(0, 3), (14, 17)]),
        ("one two three", ["one two", "two three"], [(0, 7), (4, 13)]),
        ("one two three", ["one", "one two"], [(0, 3), (0, 7)]),
    ],
)
def test_chunks_that_say_the_same_stand_where_each_of_them_does(
    store: Store, body: str | None, chunks: list[str], places: list[tuple[int, int]]
) -> None:
    given = [{"text": text, "page": page} for page, text in enumerate(chunks, start=1)]
    put_record(store, {"kind": "media", "title": "x", "media_type": "pdf", "body": body, "chunks": given})
    (record,) = records(store)
    assert [(chunk["start"], chunk["end"]) for chunk in record["chunks"]] == places


def test_a_version_no_store_can_count_on_from_is_not_kept(store: Store) -> None:
    put_record(store, {**NOTE, "version": 2**70})
    assert next(records(store))["version"] == 1


def test_where_an_item_came_from_is_remembered_until_it_goes(store: Store) -> None:
    put = put_record(store, NOTE)
    sources = store.drawer(ImportSources)
    sources.keep(ImportSource("note", "/a.md", "0", b"h", put.item_id, 1))
    assert sources.find("note", "/a.md", "0") == ImportSource("note", "/a.md", "0", b"h", put.item_id, 1)
    sources.keep(ImportSource("note", "/a.md", "0", b"g", put.item_id, 2))
    assert present(sources.find("note", "/a.md", "0")).hash == b"g"
    assert sources.of(put.item_id) == [ImportSource("note", "/a.md", "0", b"g", put.item_id, 2)]
    store.drawer(Items).delete([put.item_id])
    assert sources.find("note", "/a.md", "0") is None
