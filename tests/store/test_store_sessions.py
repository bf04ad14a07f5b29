"""The store's contract: sessions.

1. A session is made once, whoever asks at once, and goes with all it remembers.
2. What expired and what is beyond the capacity goes when one is made, the least recently used first.
3. A return is remembered whole or not at all; what is unseen is given out once.
4. URIs, lists and queries are bounded, the oldest dropped first.
5. Addresses become ids in one go.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, parse_uri
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.session_marks import MOST_LISTS, MOST_QUERIES, Returned, SessionList, SessionMarks, SessionRow
from kit.answers import present
from opening import OPENED, open_store, place_of


def add(store: Store, session: str, now: int = 0, since: int = 0, most: int = 100) -> SessionRow:
    return store.drawer(SessionMarks).add(session, "tests", now=now, since=since, most=most)


def mark(store: Store, uris: Sequence[str], *, session: str = "s", most: int = 100, unseen: bool = False) -> int | None:
    returned = Returned("tea", uris, "key", SessionList(()), unseen)
    return store.drawer(SessionMarks).mark(session, returned, now=0, most_uris=most)


# 1


def test_a_session_is_made_once_and_found_again(store: Store) -> None:
    assert store.drawer(SessionMarks).find("s") is None
    assert add(store, "s", now=7) == SessionRow("s", "tests", {}, (), 7, 7) == store.drawer(SessionMarks).find("s")
    assert add(store, "s", now=9).created_at == 7
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda now: add(store, "t", now=now), range(16)))
    assert len({row.created_at for row in made}) == 1


def test_a_session_goes_with_all_it_remembers(store: Store) -> None:
    add(store, "s")
    mark(store, ["notes://a"])
    assert store.drawer(SessionMarks).end("s") is True
    assert store.drawer(SessionMarks).end("s") is False
    add(store, "s", now=5)
    assert store.drawer(SessionMarks).find("s") == SessionRow("s", "tests", {}, (), 5, 5)
    assert store.drawer(SessionMarks).seen("s") == []
    assert store.drawer(SessionMarks).kept_list("s", "key") is None
    assert store.check() == []


def test_a_return_to_a_session_that_has_ended_leaves_nothing_behind(store: Store) -> None:
    assert mark(store, ["notes://a"]) == 0
    assert store.drawer(SessionMarks).seen("s") == []
    assert store.check() == []


def test_a_touch_never_goes_back_in_time(store: Store) -> None:
    add(store, "s", now=50)
    store.drawer(SessionMarks).touch("s", 40)
    assert present(store.drawer(SessionMarks).find("s")).used_at == 50
    store.drawer(SessionMarks).touch("s", 60)
    assert present(store.drawer(SessionMarks).find("s")).used_at == 60


# 2


def test_expired_sessions_go_when_one_is_made(store: Store) -> None:
    add(store, "old", now=10)
    mark(store, ["notes://a"], session="old")
    add(store, "kept", now=20)
    add(store, "fresh", now=30, since=20)
    assert [store.drawer(SessionMarks).find(name) is not None for name in ("old", "kept", "fresh")] == [
        False,
        True,
        True,
    ]
    assert store.drawer(SessionMarks).seen("old") == []
    assert store.check() == []


def test_an_expired_session_is_made_anew(store: Store) -> None:
    add(store, "s", now=10)
    mark(store, ["notes://a"])
    assert add(store, "s", now=30, since=20) == SessionRow("s", "tests", {}, (), 30, 30)
    assert store.drawer(SessionMarks).seen("s") == []


def test_beyond_the_capacity_the_least_recently_used_goes(store: Store) -> None:
    for now, name in enumerate("abc"):
        add(store, name, now=now)
    store.drawer(SessionMarks).touch("a", 10)
    add(store, "d", now=11, most=3)
    assert [name for name in "abcd" if store.drawer(SessionMarks).find(name)] == ["a", "c", "d"]
    add(store, "e", now=11, most=1)
    assert [name for name in "abcde" if store.drawer(SessionMarks).find(name)] == ["e"]


# 3


def test_what_another_call_returned_first_is_not_given_out_as_unseen(store: Store) -> None:
    add(store, "s")
    assert mark(store, ["notes://a", "notes://b"], unseen=True) == 2
    refused = Returned("other", ["notes://c", "notes://b"], "other", SessionList(("notes://z",)), unseen=True)
    assert store.drawer(SessionMarks).mark("s", refused, now=99, most_uris=100) is None
    assert store.drawer(SessionMarks).seen("s") == ["notes://a", "notes://b"]
    assert store.drawer(SessionMarks).kept_list("s", "other") is None
    assert present(store.drawer(SessionMarks).find("s")).queries == ("tea",)
    assert present(store.drawer(SessionMarks).find("s")).used_at == 0
    assert mark(store, ["notes://c", "notes://b"]) == 3


CLAIMER = (
    OPENED
    + """
import sys
from commonplace.store.session_marks import Returned, SessionList, SessionMarks

store = opened(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(60):
    returned = Returned("q", [f"notes://{number}", f"notes://{number}b"], "key", SessionList(()), unseen=True)
    if store.drawer(SessionMarks).mark("s", returned, now=0, most_uris=1000) is not None:
        print(number, flush=True)
store.close()
"""
)


@pytest.mark.timeout(100)
def test_of_several_processes_one_gives_an_item_out_as_unseen(backend: str, tmp_path: Path) -> None:
    store = open_store(backend, tmp_path)
    add(store, "s")
    command = [sys.executable, "-c", CLAIMER, place_of(backend, tmp_path)]
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    claimers = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for claimer in claimers:
        assert claimer.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    for claimer in claimers:
        claimer.stdin.write("go\n")  # type: ignore[union-attr]
        claimer.stdin.flush()  # type: ignore[union-attr]
    answers = [claimer.communicate(timeout=90) for claimer in claimers]
    assert [error for _, error in answers] == [""] * 3
    claimed = sorted(int(line) for said, _ in answers for line in said.split())
    assert claimed == list(range(60))
    assert len(store.drawer(SessionMarks).seen("s")) == 120
    store.close()


# 4


def test_uris_are_kept_in_the_order_of_their_last_return(store: Store) -> None:
    add(store, "s")
    assert mark(store, ["a", "b", "c"]) == 3
    assert mark(store, ["a", "d"]) == 4
    assert store.drawer(SessionMarks).seen("s") == ["b", "c", "a", "d"]
    assert mark(store, ["e"], most=3) == 3
    assert store.drawer(SessionMarks).seen("s") == ["a", "d", "e"]


@given(pages=st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), max_size=8), most=st.integers(1, 12))
@settings(max_examples=30)
def test_what_is_seen_is_the_last_of_what_was_returned(
    backend: str, tmp_path_factory: pytest.TempPathFactory, pages: list[list[str]], most: int
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("seen"))
    add(store, "s")
    seen: list[str] = []
    for page in pages:
        for uri in page:
            seen = [other for other in seen if other != uri] + [uri]
        seen = seen[-most:]
        assert mark(store, page, most=most) == len(seen)
        assert store.drawer(SessionMarks).seen("s") == seen
    store.close()


def test_the_last_lists_and_queries_are_remembered(store: Store) -> None:
    add(store, "s")
    for number in range(MOST_LISTS + 5):
        begun = SessionList([f"notes://{number}"], replayed=number % 2 == 1)
        store.drawer(SessionMarks).mark("s", Returned(f"q{number}", [], f"k{number}", begun), now=0, most_uris=9)
        store.drawer(SessionMarks).mark("s", Returned("q0", [], "k0"), now=0, most_uris=9)
    assert store.drawer(SessionMarks).kept_list("s", "k0") == SessionList(["notes://0"])  # in use all the time
    assert store.drawer(SessionMarks).kept_list("s", "k5") is None
    assert [store.drawer(SessionMarks).kept_list("s", f"k{n}") for n in (6, 7)] == [
        SessionList(["notes://6"]),
        SessionList(["notes://7"], True),
    ]
    queries = present(store.drawer(SessionMarks).find("s")).queries
    assert queries == ("q0", *(f"q{n}" for n in range(MOST_LISTS + 4, 0, -1)))[:MOST_QUERIES]


def test_a_list_that_goes_on_is_not_begun_again(store: Store) -> None:
    add(store, "s")
    store.drawer(SessionMarks).mark("s", Returned("q", ["b"], "k", SessionList(["a"])), now=0, most_uris=9)
    store.drawer(SessionMarks).mark("s", Returned("q", ["c"], "k"), now=0, most_uris=9)
    assert store.drawer(SessionMarks).kept_list("s", "k") == SessionList(["a"])
    store.drawer(SessionMarks).mark("s", Returned("q", [], "unknown"), now=0, most_uris=9)
    assert store.drawer(SessionMarks).kept_list("s", "unknown") is None


def test_defaults_are_merged_and_none_removes_one(store: Store) -> None:
    add(store, "s")
    assert store.drawer(SessionMarks).change_defaults("s", {"a": 1, "b": "x"}, 3) == {"a": 1, "b": "x"}
    assert store.drawer(SessionMarks).change_defaults("s", {"a": None, "c": 2.5}, 4) == {"b": "x", "c": 2.5}
    assert present(store.drawer(SessionMarks).find("s")).defaults == {"b": "x", "c": 2.5}
    assert present(store.drawer(SessionMarks).find("s")).used_at == 4


def test_any_text_is_kept_as_a_query(store: Store) -> None:
    add(store, "s")
    for query in ("\ud800", "'; drop table sessions; --", "日本\x00", ""):
        store.drawer(SessionMarks).mark("s", Returned(query, [], "k"), now=0, most_uris=9)
        assert present(store.drawer(SessionMarks).find("s")).queries[0] == query


# 5


def test_addresses_become_ids(store: Store) -> None:
    drafts = [
        Draft("note", "tea", parent="green"),
        Draft("note", "tea", parent="black"),
        Draft("note", 'a/b "c"'),
        Draft("memory", "tea", parent="thread"),
        Draft("document", "x/tea.md", parent="docs"),
        Draft("document", "x/tea.md", parent="other"),
        Draft("message", "tea", parent="c1"),
        Draft("conversation", "c1"),
    ]
    items = store.drawer(Items).put([prepare(draft) for draft in drafts])
    for item in items:
        parts = parse_uri(item.uri)
        assert parts is not None
        assert set(store.drawer(Listing).ids_of([parts])) == {other.id for other in items if other.uri == item.uri}
    everything = [parts for item in items if (parts := parse_uri(item.uri))]
    assert sorted(store.drawer(Listing).ids_of([*everything, ("note", None, "gone"), ("note", "", "tea")])) == [
        i.id for i in items
    ]
    assert store.drawer(Listing).ids_of([]) == []
