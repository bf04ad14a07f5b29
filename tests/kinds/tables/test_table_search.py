"""The search tool: current, inside its place, complete, whatever was written.

1. A hit is the data's own text at the place it names, and inside the tool's place.
2. After any writes, what the data says is found and nothing else is.
3. Every indexable leaf is found by its own rarest word.
4. What is not covered is not indexed, and what is not searchable is not found by others.
5. The index says how ready it is; a new generation takes the old one's place at once.
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_data import keys, nameable, pointers_of
from table_calls import Calls, at, check_hit, code, refused

from commonplace.kinds.tables import indexing
from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.model import Filter
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from opening import open_library, rows

LONG = "Oolong wants water just off the boil, and a kettle that holds its heat. " * 30


def status(calls: Calls, tool: str = "search") -> dict[str, Any]:
    answer = calls("search_status", tool_id=tool)
    found: dict[str, Any] = answer["tools"][0]["search_index"]
    return found


def test_a_hit_is_complete_and_relative_to_its_tool(calls: Calls, index: str) -> None:
    data = {"a": [{"b": LONG, "name": "kettle", "price": 12.5, "sold": True, "none": None, "empty": ""}], "c": LONG}
    table = calls.table(data)
    calls.tool("search", "/a")
    answer = calls.run("search", query="  off the boil ", top_k=3)
    assert answer["query"] == "  off the boil "
    assert answer["index"] == {"status": "ready", "generation": 1, "chunks_count": 4, "indexed_chunks_count": 4}
    assert [hit["score"] for hit in answer["results"]] == sorted(
        (hit["score"] for hit in answer["results"]), reverse=True
    )
    for hit in answer["results"]:
        check_hit(data, hit, "/a")
        assert hit["chunk"]["table_id"] == table
        for name in ("turbopuffer_namespace", "turbopuffer_doc_id"):
            assert (hit["chunk"][name] is None) == (index == "local")
    record = next(hit for hit in calls.hits("price 12.5") if hit["chunk"]["kind"] == "record")
    assert record["json_path"] == "/0"
    assert record["chunk"]["chunk_text"] == "name: kettle\nprice: 12.5\nsold: true"
    check_hit(data, record, "/a")


def test_the_tools_own_place_is_the_empty_path_and_a_scalar_there_is_a_text(calls: Calls) -> None:
    data = {"a": {"n": 42, "s": "short words", "t": "other"}}
    calls.table(data)
    calls.tool("search", "/a/s", name="string")
    calls.tool("search", "/a/n", name="number")
    calls.tool("search", "/a", name="all")
    (hit,) = calls.hits("short", "string")
    assert (hit["json_path"], hit["chunk"]["kind"], hit["chunk"]["chunk_text"]) == ("", "text", "short words")
    (hit,) = calls.hits("42", "number")
    assert (hit["json_path"], hit["chunk"]["chunk_text"]) == ("", "42")
    paths = {hit["json_path"]: hit["chunk"]["chunk_text"] for hit in calls.hits("short other 42", "all")}
    assert paths == {"/s": "short words", "/n": "42", "": "t: other"}
    calls("tool_delete", tool_id="string")
    calls.settle()
    assert [hit["json_path"] for hit in calls.hits("short", "all")] == ["", "/n"]  # the other is found by meaning


def test_what_is_asked_badly_is_refused(calls: Calls) -> None:
    calls.table({"a": "b"})
    calls.tool("search")
    for arguments, sentence in (
        ({"query": ""}, "query must not be empty"),
        ({"query": "  \n"}, "query must not be blank"),
        ({"query": "x" * 2001}, "at most 2000 characters, not 2001"),
        ({"query": "x", "top_k": 0}, "top_k must be between 1 and 20, not 0"),
        ({"query": "x", "top_k": 21}, "top_k must be between 1 and 20, not 21"),
        ({"query": "x", "weights": 1}, 'search has no argument "weights"'),
        ({}, 'search needs "query"'),
    ):
        assert sentence in refused(calls.run("search", **arguments))


def test_nothing_there_and_nothing_matching_are_empty_lists(calls: Calls) -> None:
    calls.table({"a": {}, "b": "some words"})
    calls.tool("search", "/a")
    answer = calls.run("search", query="words")
    assert (answer["results"], answer["index"]["status"]) == ([], "ready")
    assert answer["index"]["chunks_count"] == 0
    calls("table_update", table_id="t", data={"b": 1})
    assert calls.run("search", query="words")["results"] == []


def test_what_changes_is_found_as_it_is_and_never_as_it_was(calls: Calls) -> None:
    calls.table({"rows": [{"text": f"{word} {LONG[:250]}"} for word in ("alpha", "bravo", "charlie", "delta")]})
    calls.tool("search", "/rows")
    for kind in ("create", "update", "delete"):
        calls.tool(kind, "/rows")
    calls.settle()
    vectors = set(keys_of(calls))
    calls.run("delete", keys=[1])
    assert calls.hits("bravo") == [] or all("bravo" not in hit["chunk"]["chunk_text"] for hit in calls.hits("bravo"))
    assert calls.hits("charlie")[0]["json_path"] == "/1/text"
    assert set(keys_of(calls)) < vectors, "what moved keeps its vector, what went takes its own along"
    calls.run("update", updates=[{"key": 0, "content": {"text": f"echo {LONG[:250]}"}}])
    assert calls.hits("echo")[0]["json_path"] == "/0/text"
    assert all("alpha" not in hit["chunk"]["chunk_text"] for hit in calls.hits("alpha"))
    calls.run("create", elements=[{"content": {"name": "foxtrot"}}])
    assert calls.hits("foxtrot")[0]["json_path"] == "/3"


def keys_of(calls: Calls) -> list[bytes]:
    return [key for (key,) in rows(calls.library.store, "select key from embeddings")]


def test_one_changed_leaf_embeds_that_node_only(calls: Calls) -> None:
    calls.table([{"text": f"{number} {LONG[:300]}"} for number in range(50)])
    calls.tool("search")
    calls.tool("update", "/17")
    calls.run("search", query="boil")
    before = set(keys_of(calls))
    calls.run("update", updates=[{"key": "text", "content": f"zebra {LONG[:300]}"}])
    assert calls.hits("zebra")[0]["json_path"] == "/17/text"
    assert len(set(keys_of(calls)) - before) == 1


@pytest.mark.parametrize("at_once", [0, 10**9])
def test_work_that_is_left_is_never_answered_from_as_it_was(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    from commonplace.kinds.tables import running

    calls.table([f"{word} {LONG[:250]}" for word in ("alpha", "bravo", "charlie")])
    calls.tool("search")
    calls.tool("delete")
    calls.settle()
    monkeypatch.setattr(indexing, "AT_ONCE_BYTES", at_once)
    monkeypatch.setattr(running, "CATCHING_UP_S", 0.0)
    calls.run("delete", keys=[0])
    answer = calls.run("search", query="alpha")
    assert all("alpha" not in hit["chunk"]["chunk_text"] for hit in answer["results"])
    for hit in answer["results"]:
        check_hit(calls.data(), hit, "")
    assert (answer["index"]["status"] == "ready") == bool(at_once)
    calls.settle()
    assert calls.hits("bravo")[0]["json_path"] == "/0"
    assert status(calls)["status"] == "ready"


def test_only_what_is_covered_is_indexed_and_only_searchable_tables_are_found_by_others(calls: Calls) -> None:
    calls.table({"in": {"x": "inside words"}, "out": {"y": "outside words"}}, searchable=False)
    library = calls.library
    assert library.store.drawer(Listing).counts().get("table", 0) == 0
    tool = calls.tool("search", "/in")
    calls.settle()
    assert library.store.drawer(Listing).counts()["table"] == 1
    assert [hit["json_path"] for hit in calls.hits("words")] == [""]
    assert library.search("inside").hits == ()
    calls("table_update", table_id="t", searchable=True)
    calls.settle()
    assert {hit.kind for hit in library.search("outside").hits} == {"table"}
    uri = library.search("outside").hits[0].uri
    assert uri.endswith("//out")
    assert library.get(uri).body == "y: outside words"
    calls("table_update", table_id="t", searchable=False)
    calls.settle()
    assert library.search("inside").hits == ()
    calls("tool_delete", tool_id=tool)
    calls.settle()
    assert library.store.drawer(Listing).counts().get("table", 0) == 0
    assert library.store.check() == []


def test_what_waits_to_be_indexed_is_not_shown_as_it_was(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    calls.table({"teas": [{"name": "oolong"}, {"name": "sencha"}], "pots": ["kettle"]}, searchable=True)
    calls.settle()
    monkeypatch.setattr(indexing, "AT_ONCE_BYTES", -1)

    def found(word: str) -> int:
        return len(calls.library.search(word, mode="lexical").hits)

    def put(at: str, value: Any) -> None:
        assert "error" not in calls("table_update", table_id="t", json_path=at, data=value)

    assert [found(word) for word in ("oolong", "sencha", "kettle")] == [1, 1, 1]
    put("/teas/1/name", "matcha")
    assert [found(word) for word in ("oolong", "sencha", "kettle")] == [1, 0, 1]
    put("/teas", [{"name": "oolong"}])
    assert [found(word) for word in ("sencha", "kettle")] == [0, 1]
    calls.settle()
    assert [found(word) for word in ("oolong", "sencha", "matcha", "kettle")] == [1, 0, 0, 1]


def test_long_lists_of_numbers_and_endless_strings_are_left_out_and_counted(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commonplace.kinds.tables import nodes

    monkeypatch.setattr(nodes, "LONGEST_NODE", 5000)
    calls.table({"numbers": list(range(65)), "few": list(range(64)), "long": "x " * 3000, "fine": "some words"})
    calls.tool("search")
    calls.settle()
    found = status(calls)
    assert (found["status"], found["nodes_count"], found["skipped_count"]) == ("ready", 2, 2)
    assert found["last_error"] == "/long has 6000 characters; at most 5000 are indexed of one place."
    assert calls.hits("words")[0]["chunk"]["chunk_text"] == "fine: some words"


def test_the_state_goes_from_pending_to_ready_and_begins_again_with_another_place(calls: Calls) -> None:
    calls.table({"a": {"x": "words"}, "b": {"y": "words", "z": LONG}})
    created = calls("tool_create", table_id="t", type="search", name="search", json_path="/a")["tool"]
    index = created["metadata"]["search_index"]
    assert (index["status"], index["started_at"], index["indexed_at"]) == ("pending", None, None)
    calls.settle()
    index = status(calls)
    assert (index["status"], index["chunks_count"], index["indexed_chunks_count"]) == ("ready", 1, 1)
    assert index["configured_at"] <= index["started_at"] <= index["indexed_at"]
    moved = calls("tool_update", tool_id="search", json_path="/b")["tool"]["metadata"]["search_index"]
    assert moved["status"] == "pending"
    assert calls.hits("words")[0]["json_path"] == ""
    calls.settle()
    assert (status(calls)["status"], status(calls)["chunks_count"]) == ("ready", 4)
    refusal = calls("tool_update", tool_id="search", metadata={"search_index": {}})
    assert "kept by the server" in refused(refusal)


@pytest.mark.parametrize("change", ["update_tool", "create_tool"])
def test_the_answer_is_pending_however_soon_a_worker_is_done_with_it(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    calls.table({"a": {"x": "words"}, "b": {"y": "words", "z": LONG}})
    calls.tool("search", "/a")
    calls.settle()
    catalog = calls.library.tables.catalog
    made = getattr(catalog, change)

    def overtaken(*given: Any, **more: Any) -> Any:
        tool = made(*given, **more)
        calls.settle()  # as a server's own worker may be, before the answer is put together
        return tool

    monkeypatch.setattr(catalog, change, overtaken)
    if change == "update_tool":
        answer = calls("tool_update", tool_id="search", json_path="/b")
    else:
        answer = calls("tool_create", table_id="t", type="search", name="other", json_path="/b")
    index = answer["tool"]["metadata"]["search_index"]
    assert (index["status"], index["started_at"], index["indexed_at"]) == ("pending", None, None)
    assert status(calls, answer["tool"]["name"])["status"] == "ready"


def test_a_new_generation_takes_the_old_ones_place_and_embeds_nothing_again(calls: Calls) -> None:
    calls.table({"a": LONG, "b": {"c": "words"}})
    calls.tool("search")
    calls.settle()
    before = {hit["chunk"]["id"] for hit in calls.hits("boil words", top_k=20)}
    vectors = sorted(keys_of(calls))
    answer = calls("search_reindex", tool_id="search", force=True)
    assert answer["jobs"][0]["status"] == "pending"
    assert {hit["chunk"]["id"] for hit in calls.hits("boil words", top_k=20)} == before
    calls.settle()
    assert status(calls)["generation"] == 2
    assert {hit["chunk"]["id"] for hit in calls.hits("boil words", top_k=20)} == before
    assert sorted(keys_of(calls)) == vectors
    assert calls("search_cleanup") == {"removed": 0, "kept": 2, "unreachable": 0}
    assert calls.library.store.check() == []


def test_other_chunk_settings_make_a_new_generation(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        calls = Calls(library)
        calls.table({"a": LONG})
        calls.tool("search")
        assert calls.run("search", query="boil")["index"]["chunks_count"] == 3
    sizes = {"tables_chunk_size_chars": 400, "tables_chunk_threshold_chars": 400, "tables_chunk_overlap_chars": 40}
    with open_library(backend, tmp_path, **sizes) as library:
        calls = Calls(library)
        calls.run("search", query="boil")
        calls.settle()
        index = calls.run("search", query="boil")["index"]
        assert (index["generation"], index["status"]) == (2, "ready")
        assert index["chunks_count"] > 5


def test_reindexing_repairs_what_is_missing_and_what_is_too_much(calls: Calls) -> None:
    calls.table({"a": "alpha words", "b": {"c": LONG}})
    calls.tool("search")
    calls.settle()
    library = calls.library
    ids = library.store.drawer(Listing).select(Filter(kinds=("table",))).tolist()
    library.store.drawer(Items).delete(ids[:1])
    calls("search_reindex", table_id="t")
    calls.settle()
    assert calls.hits("alpha")[0]["json_path"] == ""
    assert len(library.store.drawer(Listing).select(Filter(kinds=("table",)))) == len(ids)


def test_a_deleted_table_takes_everything_with_it(calls: Calls) -> None:
    calls.table({"a": LONG})
    calls.tool("search")
    calls.settle()
    assert calls("table_delete", table_id="t")["tools_deleted"] == 1
    assert calls.library.store.drawer(Listing).counts().get("table", 0) == 0
    assert keys_of(calls) == []
    assert calls.library.search("boil").hits == ()
    assert code(calls("table_get", table_id="t")) == "not_found"
    assert calls.library.store.check() == []


# properties

word = st.text(string.ascii_lowercase, min_size=4, max_size=7)


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """JSON whose strings are words, some long."""
    text = st.one_of(
        st.lists(word, min_size=1, max_size=5).map(" ".join),
        st.tuples(st.lists(word, min_size=3, max_size=8), st.integers(10, 60)).map(
            lambda made: " ".join(made[0] * made[1])
        ),
    )
    leaf = st.one_of(text, text, st.integers(-9, 9), st.booleans(), st.none(), st.just(""))
    inner = st.recursive(
        leaf, lambda one: st.one_of(st.lists(one, max_size=4), st.dictionaries(keys(), one, max_size=4)), max_leaves=12
    )
    return draw(
        st.one_of(st.lists(inner, min_size=1, max_size=4), st.dictionaries(keys(), inner, min_size=1, max_size=4))
    )


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    data = draw(documents())
    places = nameable(pointers_of(data))
    step = st.tuples(
        st.sampled_from(["create", "update", "delete"]), st.integers(0, 99), st.integers(0, 99), keys(), documents()
    )
    return data, draw(st.sampled_from(places)), draw(st.booleans()), draw(st.lists(step, max_size=4))


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=15, deadline=None)
@given(world=worlds())
def test_whatever_is_written_search_finds_what_the_data_says_and_nothing_else(calls: Calls, world: Any) -> None:
    data, path, searchable, steps = world
    if calls.library.store.drawer(TableDrawer).tables():
        calls("table_delete", table_id="t")
    calls.table(data, searchable=searchable)
    calls.tool("search", path)
    for what, where, which, key, content in steps:
        write(calls, what, where, which, key, content)
    current = calls.data()
    inside = readable(current, path)
    for wanted in words_of(current)[:6]:
        hits = calls.hits(wanted)
        for hit in hits:
            check_hit(current, hit, path)
        if inside is None:
            assert hits == []
        elif any(wanted in text.split() for text in inside):
            assert any(wanted in hit["chunk"]["chunk_text"].split() for hit in hits), wanted
    assert calls.library.store.check() == []


def write(calls: Calls, what: str, where: int, which: int, key: str, content: Any) -> None:
    """A write somewhere, through a tool of its own. One that does not fit is refused, and that is all."""
    data = calls.data()
    places = [place for place in nameable(pointers_of(data)) if isinstance(at(data, place), dict | list)]
    if not places:
        return
    place = places[where % len(places)]
    holder = at(data, place)
    name = f"w{calls.library.store.last_change()}{what}"
    calls.tool(what, place, name=name)
    if what == "create":
        calls.run(name, elements=[{"key": key, "content": content}])
    elif holder:
        chosen = which % len(holder) if isinstance(holder, list) else list(holder)[which % len(holder)]
        if what == "update":
            calls.run(name, updates=[{"key": chosen, "content": content}])
        else:
            calls.run(name, keys=[chosen])
    calls("tool_delete", tool_id=name)


def readable(data: Any, path: str) -> list[str] | None:
    """The texts inside a place; None where there is no such place."""
    if path not in pointers_of(data):
        return None
    found = [at(data, place) for place in pointers_of(data) if place == path or place.startswith(f"{path}/")]
    return [value for value in found if isinstance(value, str)]


def words_of(data: Any) -> list[str]:
    texts = [value for place in pointers_of(data) if isinstance(value := at(data, place), str)]
    counted = json.dumps(texts)
    return sorted({each for text in texts for each in text.split()}, key=lambda each: (counted.count(each), each))
