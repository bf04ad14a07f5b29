"""Entries in the order of their times.

1. A listing is what a plain look at every entry gives, whatever the filter and wherever it goes on.
2. What matches among given items is what matches among all.
3. What is known of entries in memory is level with the log.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.ranked_lists import EntryTimes
from commonplace.library import Library
from commonplace.model import Condition, Draft, Entries, Filter
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.rows import Moment
from commonplace.store.sqlite import newest

START = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = st.fixed_dictionaries(
    {
        "thread": st.sampled_from("ab"),
        "source": st.sampled_from(["user", "agent"]),
        "minute": st.integers(0, 5),
        "status": st.sampled_from(["open", "done", None]),
        "tags": st.lists(st.sampled_from(["x", "y"]), unique=True, max_size=2),
    }
)
FILTERS = st.builds(
    Filter,
    kinds=st.sampled_from([("memory",), (), ("note", "memory"), ("note",)]),
    parents=st.sampled_from([(), ("a",), ("a", "b")]),
    tags=st.sampled_from([(), ("x",), ("X", "y")]),
    created_from=st.sampled_from([None, START + timedelta(minutes=2)]),
    created_to=st.sampled_from([None, START + timedelta(minutes=4)]),
    updated_from=st.sampled_from([None, START + timedelta(minutes=3)]),
    updated_to=st.sampled_from([None, START + timedelta(minutes=5)]),
    where=st.sampled_from([(), (Condition(("status",), "eq", "open"),), (Condition(("status",), "not_exists"),)]),
    entries=st.builds(Entries, source=st.sampled_from([None, "user"]), superseded=st.booleans()),
)


def put(library: Library, number: int, entry: dict[str, Any], supersedes: tuple[int, ...] = ()) -> None:
    fields = {"source": entry["source"], **({"supersedes": list(supersedes)} if supersedes else {})}
    metadata = {} if entry["status"] is None else {"status": entry["status"]}
    moment = START + timedelta(minutes=entry["minute"])
    library.put(
        Draft(
            "memory", str(number), parent=entry["thread"], body=f"entry {number}", fields=fields, metadata=metadata,
            tags=tuple(entry["tags"]), created_at=moment, updated_at=moment,
        )
    )  # fmt: skip


@pytest.mark.parametrize("walked", [1, 3, 1000])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.lists(ENTRY, max_size=14), filter=FILTERS, limit=st.integers(1, 6), data=st.data())
def test_a_listing_is_what_a_plain_look_at_everything_gives(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    walked: int,
    entries: list[dict[str, Any]],
    filter: Filter,
    limit: int,
    data: st.DataObject,
) -> None:
    from opening import library_settings

    monkeypatch.setattr(newest, "WALKED", walked)
    folder = tmp_path_factory.mktemp("listing")
    with Library.open(folder, settings=library_settings(folder)) as library:
        library.put(Draft("note", "n", body="no entry", tags=("x",)))
        library.put(Draft("memory", "remembered", parent="a", body="no entry of a thread", tags=("x",)))
        library.memories.sweep()
        for number, entry in enumerate(entries, start=1):
            put(library, number, entry, supersedes=(number - 1,) if number % 5 == 0 else ())
        known = {one.item_id for one in library.store.drawer(EntryRows).times()}
        matching = known & set(library.store.drawer(Listing).select(filter).tolist())
        everything = [
            Moment(item.id, round(item.created_at.timestamp() * 1e6))
            for item in library.store.drawer(Listing).scan(Filter())
        ]
        everything = sorted((one for one in everything), key=lambda one: (-one.created_at, -one.item_id))
        expected = [one for one in everything if one.item_id in matching]
        assert library.store.drawer(Listing).newest(filter, limit=limit) == expected[:limit]
        if everything:
            after = data.draw(st.sampled_from(everything))
            upto = data.draw(st.integers(0, len(everything) + 2))
            place = everything.index(after)
            behind = [one for one in everything[place + 1 :] if one.item_id in matching and one.item_id <= upto]
            assert library.store.drawer(Listing).newest(filter, limit=limit, after=after, upto=upto) == behind[:limit]
        ids = [one.item_id for one in everything]
        assert set(library.store.drawer(Listing).matching(filter, [*ids, 10_000])) == matching


def test_what_is_known_in_memory_is_level_with_the_log(library: Library) -> None:
    library.memories.sweep()
    times = EntryTimes(library.store)
    assert len(times.now().items) == 0
    entry = {"thread": "a", "source": "user", "minute": 1, "status": None, "tags": []}
    library.put(Draft("note", "n", body="no entry"))
    for number in range(1, 6):
        put(library, number, {**entry, "minute": number})
    known = times.now()
    assert [Moment(*pair) for pair in zip(known.items.tolist(), known.created.tolist(), strict=True)] == (
        library.store.drawer(EntryRows).times()
    )
    gone = library.store.drawer(EntryRows).get([3])[0].item_id
    library.store.drawer(Items).delete([gone])
    put(library, 6, entry)
    assert times.now().items.tolist() == [one.item_id for one in library.store.drawer(EntryRows).times()]
    assert times.now().of(known.items).tolist().count(-1) == 1
    assert times.now() is times.now()


def test_a_search_by_an_indexed_field_reads_no_row_that_cannot_match(library: Library) -> None:
    library.memories.sweep()
    wanted = Filter(kinds=("memory",), entries=Entries(), where=(Condition(("status",), "eq", "open"),))
    plan = library.store.drawer(Listing).plan(wanted)
    assert "metadata_holders" in plan
    assert "SCAN items" not in plan
