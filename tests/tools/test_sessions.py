"""Sessions over a real library (contracts/knowledge.md, section 9).

1. A handle is a session, made on first use; `new` and issued ids cannot be guessed; a bad handle is refused.
2. A session ends when it is unused for long, when others need the room, and when it is told to.
3. Pages of one list tile it, whatever is seen between them; what is seen is left out of the next list.
4. When all matches are seen they are shown again; `dedupe: false` leaves nothing out.
5. Calls at the same time, in threads and processes, never give an item out twice as unseen.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from commonplace.errors import InvalidInput
from commonplace.library import Library
from commonplace.model import Draft, Page
from commonplace.store.base import Store
from commonplace.store.session_marks import MOST_LISTS, SessionMarks
from commonplace.tools.sessions import SearchAnswer, Session, SessionReport, Sessions, deduped
from kit.answers import present
from opening import library_settings, open_library

TOPICS = ["tea", "tea water", "tea water kettle", "kettle", "kettle tea tea", "garden"]
DRAFTS = [Draft("note", f"n{n}", body=f"{TOPICS[n % 6]} {'leaf ' * (n % 4)} x{n}") for n in range(30)]
MATCHES = {"tea": 20, "kettle": 15, "garden": 5, "nothing": 0}


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(store: Store, tmp_path: Path, clock: Clock) -> Sessions:
    return Sessions(store, library_settings(tmp_path, session_max=3, session_max_uris=10), clock)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("filled")
    with Library.open(folder, settings=library_settings(folder)) as library:
        library.put_many(DRAFTS)
        yield library


def search(
    library: Library, session: Session | None, query: str, limit: int = 5, offset: int = 0, **more: Any
) -> tuple[Page, SessionReport | None]:
    """What a surface does."""

    def run(without: frozenset[str]) -> SearchAnswer[Page]:
        page = library.search(query, mode="lexical", limit=limit, offset=offset, exclude=without)
        return SearchAnswer(page, [hit.uri for hit in page.hits], page.found, page.skipped)

    return deduped(session, run, query=query, listing=[query], offset=offset, **more)


def uris(page: Page) -> list[str]:
    return [hit.uri for hit in page.hits]


# 1


def test_a_handle_is_one_session_for_everyone_who_knows_it(sessions: Sessions) -> None:
    assert sessions.find("mine") is None
    opened = sessions.open("mine", "a client")
    assert (opened.id, opened.client, opened.defaults, opened.recent_queries) == ("mine", "a client", {}, ())
    assert sessions.open("mine", "another") == opened == sessions.find("mine")


def test_new_and_issued_ids_cannot_be_guessed(sessions: Sessions) -> None:
    minted = {sessions.open("new").id, sessions.open("new").id, sessions.issue()}
    assert len(minted) == 3
    assert all(len(id) >= 32 for id in minted)
    assert all(sessions.find(id) for id in minted)
    assert sessions.find("new") is None
    assert sessions.issue("from-a-transport", "client") == "from-a-transport"
    assert present(sessions.find("from-a-transport")).client == "client"
    sessions.issue("from-a-transport", "another")  # who goes on with it
    assert present(sessions.find("from-a-transport")).client == "another"
    sessions.issue("from-a-transport")
    assert present(sessions.find("from-a-transport")).client == "another"


@pytest.mark.parametrize("handle", ["", "a b", "a/b", "é", "x" * 129, "a\n", "../x", "\ud800"])
def test_a_bad_handle_is_refused_with_a_sentence(sessions: Sessions, handle: str) -> None:
    with pytest.raises(InvalidInput, match=r"session must be 1 to 128 characters of A-Z") as bad:
        sessions.open(handle)
    assert bad.value.details == {"argument": "session"}
    assert sessions.find(handle) is None
    assert sessions.end(handle) is False


def test_any_handle_of_the_contract_is_a_session(sessions: Sessions) -> None:
    for handle in ("x", "A.b_c:d-9", "x" * 128):
        assert sessions.open(handle).id == handle


def test_a_client_may_call_itself_anything(sessions: Sessions) -> None:
    assert sessions.open("a", "\ud800 " + "x" * 500).client == "? " + "x" * 198


# 2


def test_a_session_that_is_not_used_ends(sessions: Sessions, clock: Clock) -> None:
    sessions.open("s")
    clock.now += 3600
    assert sessions.find("s") is not None
    clock.now += 1
    assert sessions.find("s") is None
    assert sessions.end("s") is False


def test_a_session_that_is_used_goes_on_and_is_not_written_each_time(
    sessions: Sessions, clock: Clock, store: Store
) -> None:
    began = sessions.open("s").used_at
    clock.now += 59
    assert sessions.open("s").used_at == began == present(store.drawer(SessionMarks).find("s")).used_at
    for _ in range(5):
        clock.now += 3000
        sessions.open("s")
        assert present(store.drawer(SessionMarks).find("s")).used_at == clock.now * 1_000_000
    clock.now += 3000
    present(sessions.find("s")).touch()
    clock.now += 3000
    assert sessions.find("s") is not None


def test_an_ended_handle_begins_anew(sessions: Sessions, clock: Clock, filled: Library) -> None:
    session = sessions.open("s").set_defaults({"max_tokens": 9})
    search(filled, session, "tea")
    assert sessions.end("s") is True
    assert sessions.find("s") is None
    assert sessions.open("s").defaults == {}
    assert search(filled, sessions.open("s"), "tea")[1] == SessionReport("s", 5, 0, False)
    clock.now += 4000
    assert search(filled, sessions.open("s"), "tea")[1] == SessionReport("s", 5, 0, False)


def test_beyond_the_capacity_the_least_recently_used_goes(sessions: Sessions, clock: Clock, store: Store) -> None:
    for name in ("a", "b", "c"):
        sessions.open(name)
        clock.now += 100
    sessions.open("a")
    sessions.open("d")
    assert [name for name in "abcd" if sessions.find(name)] == ["a", "c", "d"]
    assert store.check() == []


def test_a_session_is_shared_by_all_who_open_the_space(library: Library, backend: str, tmp_path: Path) -> None:
    library.put_many(DRAFTS)
    first, _ = search(library, library.sessions.open("s"), "tea")
    with open_library(backend, tmp_path) as other:
        second, told = search(other, other.sessions.find("s"), "tea")
        assert not set(uris(first)) & set(uris(second))
        assert told == SessionReport("s", 10, 5, False)
        other.sessions.end("s")
    assert library.sessions.find("s") is None


def test_defaults_are_merged_moved_into_range_and_removed(sessions: Sessions) -> None:
    session = sessions.open("s").set_defaults({"snippet_length": 5, "order_by": "recent"})
    assert (session.defaults, session.clamped) == ({"snippet_length": 20, "order_by": "recent"}, {"snippet_length"})
    session = session.set_defaults({"order_by": None, "max_tokens": 100})
    assert (session.defaults, session.clamped) == ({"snippet_length": 20, "max_tokens": 100}, frozenset())
    assert present(sessions.find("s")).defaults == session.defaults
    with pytest.raises(InvalidInput):
        session.set_defaults({"max_tokens": 7, "limit": 3})
    assert present(sessions.find("s")).defaults == session.defaults


# 3 and 4


def test_without_a_session_nothing_is_left_out_or_remembered(filled: Library) -> None:
    once, told = search(filled, None, "tea")
    again, _ = search(filled, None, "tea")
    assert uris(once) == uris(again)
    assert told is None


def test_what_was_returned_is_left_out_of_the_next_list(filled: Library, sessions: Sessions) -> None:
    session = sessions.open("s")
    tea, told = search(filled, session, "tea", limit=3)
    assert present(told).record() == {"id": "s", "seen": 3, "skipped": 0, "replayed": False}
    kettle, told = search(filled, session, "kettle", limit=4)
    whole = [hit.uri for hit in filled.search("kettle", mode="lexical", limit=100).hits]
    assert uris(kettle) == [uri for uri in whole if uri not in uris(tea)][:4]
    assert told == SessionReport("s", 7, len(set(whole) & set(uris(tea))), False)
    assert present(sessions.find("s")).recent_queries == ("kettle", "tea")


def test_a_query_is_remembered_without_marking_anything(sessions: Sessions, store: Store) -> None:
    session = sessions.open("s")
    for query in (*(f"q{n}" for n in range(25)), "q9"):
        session.asked(query)
    assert present(sessions.find("s")).recent_queries == ("q9", *(f"q{n}" for n in range(24, 5, -1) if n != 9), "q5")
    assert store.drawer(SessionMarks).seen("s") == []


def test_candidates_that_were_not_returned_are_not_seen(filled: Library, sessions: Sessions) -> None:
    def run(without: frozenset[str]) -> SearchAnswer[Page]:
        page = filled.search("tea", mode="lexical", limit=9, exclude=without)
        return SearchAnswer(page, uris(page)[:2], page.found, page.skipped)  # the rest did not fit the budget

    page, told = deduped(sessions.open("s"), run, query="tea", listing="tea", offset=0)
    assert present(told).seen == 2
    assert uris(search(filled, sessions.open("s"), "tea", limit=7)[0]) == uris(page)[2:]


def test_a_partly_seen_page_is_not_filled_up_and_then_all_is_shown_again(filled: Library, sessions: Sessions) -> None:
    session = sessions.open("s")
    assert search(filled, session, "garden", limit=3)[1] == SessionReport("s", 3, 0, False)
    page, told = search(filled, session, "garden", limit=4)
    assert (len(page.hits), page.more, told) == (2, False, SessionReport("s", 5, 3, False))
    for _ in range(2):
        page, told = search(filled, session, "garden", limit=4)
        assert (len(page.hits), page.more, told) == (4, True, SessionReport("s", 5, 0, True))
    rest, told = search(filled, session, "garden", limit=4, offset=4)
    assert (len(rest.hits), told) == (1, SessionReport("s", 5, 0, True))
    assert len({*uris(page), *uris(rest)}) == 5


def test_all_seen_is_told_from_past_the_end_and_from_no_match(filled: Library, sessions: Sessions) -> None:
    session = sessions.open("s")
    search(filled, session, "garden", limit=5)
    assert search(filled, session, "garden", limit=5, offset=50)[1] == SessionReport("s", 5, 0, False)
    assert search(filled, session, "nothing")[1] == SessionReport("s", 5, 0, False)
    search(filled, session, "kettle", limit=1)
    fresh = deduped(
        session,
        lambda without: SearchAnswer(
            len(without), [], *_counts(filled.search("garden", mode="lexical", exclude=without))
        ),
        query="garden",
        listing="another list",
        offset=3,
    )
    assert fresh == (0, SessionReport("s", 6, 0, True))


def _counts(page: Page) -> tuple[int, int]:
    return page.found, page.skipped


def test_without_dedupe_nothing_is_left_out_but_it_becomes_seen(filled: Library, sessions: Sessions) -> None:
    session = sessions.open("s")
    first, _ = search(filled, session, "tea")
    again, told = search(filled, session, "tea", dedupe=False)
    assert (uris(again), told) == (uris(first), SessionReport("s", 5, 0, False))
    assert present(search(filled, session, "garden", dedupe=False)[1]).seen == 10
    assert present(search(filled, session, "garden")[1]).replayed is True


def test_the_oldest_returned_are_forgotten_first(filled: Library, sessions: Sessions, store: Store) -> None:
    session = sessions.open("s")
    tea = [uri for offset in (0, 5, 10) for uri in uris(search(filled, session, "tea", offset=offset)[0])]
    assert store.drawer(SessionMarks).seen("s") == tea[5:]
    search(filled, session, "garden", limit=2, most_uris=12)
    assert len(store.drawer(SessionMarks).seen("s")) == 12
    search(filled, session, "garden", limit=2, offset=2)
    assert len(store.drawer(SessionMarks).seen("s")) == 10


class Paging(RuleBasedStateMachine):
    """Any order of first pages, later pages and repetitions, against the contract written out in plain Python."""

    library: Library
    names = 0

    @initialize(most=st.sampled_from([10, 14, 500]))
    def begin(self, most: int) -> None:
        Paging.names += 1
        self.session = self.library.sessions.open(f"paging-{Paging.names}")
        self.most = most
        self.seen: list[str] = []
        self.lists: dict[str, tuple[list[str], bool]] = {}  # in the order of use

    @rule(query=st.sampled_from(list(MATCHES)), limit=st.integers(1, 8), dedupe=st.sampled_from([True, True, False]))
    def first_page(self, query: str, limit: int, dedupe: bool) -> None:
        self.check(query, limit, 0, dedupe)

    @rule(
        query=st.sampled_from(list(MATCHES)),
        limit=st.integers(1, 8),
        offset=st.integers(1, 21),
        dedupe=st.sampled_from([True, True, True, False]),
    )
    def later_page(self, query: str, limit: int, offset: int, dedupe: bool) -> None:
        self.check(query, limit, offset, dedupe)

    @rule(query=st.sampled_from(["tea", "kettle", "garden"]), limit=st.integers(1, 8))
    def all_pages(self, query: str, limit: int) -> None:
        seen, found, offset = set(self.seen), list[str](), 0
        while True:
            page, _ = self.check(query, limit, offset, True)
            found += uris(page)
            offset += len(page.hits)
            if not page.more:
                break
        whole = self.whole(query)
        assert found == ([uri for uri in whole if uri not in seen] or whole)

    def whole(self, query: str) -> list[str]:
        return uris(self.library.search(query, mode="lexical", limit=100))

    def check(self, query: str, limit: int, offset: int, dedupe: bool) -> tuple[Page, SessionReport | None]:
        whole = self.whole(query)
        known = self.lists.pop(query, None) if offset else None
        without, replayed = known or (list(self.seen), False)
        if not dedupe:
            shown, told_replayed = whole, False
            self.remember(query, known or ([], False))
        else:
            shown = [uri for uri in whole if uri not in without]
            if known is None and whole and not shown:
                shown, without, replayed = whole, [], True
            told_replayed = replayed
            self.remember(query, (without, replayed))
        page, told = search(self.library, self.session, query, limit, offset, dedupe=dedupe, most_uris=self.most)
        assert uris(page) == shown[offset : offset + limit]
        assert page.more is (len(shown) > offset + limit)
        for uri in uris(page):
            self.seen = [other for other in self.seen if other != uri] + [uri]
        self.seen = self.seen[-self.most :]
        assert told == SessionReport(self.session.id, len(self.seen), len(whole) - len(shown), told_replayed)
        return page, told

    def remember(self, query: str, entry: tuple[list[str], bool]) -> None:
        self.lists.pop(query, None)
        self.lists[query] = entry
        assert len(self.lists) <= MOST_LISTS


def test_pages_tile_whatever_happens_between_them(filled: Library) -> None:
    machine = type("Machine", (Paging,), {"library": filled})
    case = machine.TestCase  # type: ignore[attr-defined]
    case.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
    case("runTest").runTest()


# 5


def test_threads_that_share_a_session_never_give_an_item_out_twice(filled: Library) -> None:
    together, given_out = threading.Barrier(6), list[str]()

    def work(_: int) -> None:
        session = filled.sessions.open("shared-by-threads")
        together.wait(30)
        while True:
            page, told = search(filled, session, "tea", limit=2)
            if present(told).replayed:
                return
            given_out.extend(uris(page))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert len(given_out) == len(set(given_out)) == MATCHES["tea"]


READER = """
import sys
from pathlib import Path
from commonplace.library import Library
from commonplace.tools.sessions import SearchAnswer, deduped
from commonplace.settings import Settings

folder = Path(sys.argv[1])
settings = Settings(home=folder, models=folder, model="static", store=sys.argv[3])
with Library.open(folder, sys.argv[2], settings) as library:
    def run(without):
        page = library.search("tea", mode="lexical", limit=2, exclude=without)
        return SearchAnswer(page, [hit.uri for hit in page.hits], page.found, page.skipped)

    session = library.sessions.open("shared")
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        page, told = deduped(session, run, query="tea", listing="tea", offset=0)
        if told.replayed:
            break
        print(*(hit.uri for hit in page.hits), flush=True)
"""


@pytest.mark.timeout(110)
def test_processes_that_share_a_session_never_give_an_item_out_twice(library: Library, tmp_path: Path) -> None:
    library.put_many(DRAFTS)
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    place = [str(tmp_path), library.folder.name, library.settings.store]
    readers = [subprocess.Popen([sys.executable, "-c", READER, *place], **pipes) for _ in range(3)]
    for reader in readers:
        assert reader.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    for reader in readers:
        reader.stdin.write("go\n")  # type: ignore[union-attr]
        reader.stdin.flush()  # type: ignore[union-attr]
    answers = [reader.communicate(timeout=90) for reader in readers]
    assert [error for _, error in answers] == [""] * 3
    given_out = [uri for said, _ in answers for uri in said.split()]
    assert len(given_out) == len(set(given_out)) == MATCHES["tea"]
