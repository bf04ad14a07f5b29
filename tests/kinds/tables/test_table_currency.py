"""What was read before is never written back: rows are read again in the transaction that changes them.

1. A table's version never goes back, whoever notes something else about it.
2. A key that was rotated stays so; two changes of different fields both last.
3. What goes with a table or a tool is that of the table as it is.
4. A version that is told is never newer than the data it is told with, and a hit never older than its generation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from table_calls import Calls

from commonplace.errors import NotFound
from commonplace.kinds.tables.data_drawer import DataDrawer
from commonplace.kinds.tables.searching import TableSearch
from commonplace.model import Filter
from commonplace.store.listing import Listing


def test_noting_the_model_keeps_what_was_written_meanwhile(calls: Calls) -> None:
    calls.table({"a": "words"})
    tables = calls.library.tables
    sizes = tables.table("t").basis.partition(";")[0]
    tables.rows.change_table(replace(tables.table("t"), basis=f"{sizes};"))
    seen = tables.table("t")
    calls("table_update", table_id="t", data={"a": "other words"})
    calls.settle()
    assert tables.catalog.basis != seen.basis
    tables.catalog.refresh(seen)
    now = tables.table("t")
    assert (now.version, now.basis) == (2, tables.catalog.basis)
    assert now.size == len('{"a":"other words"}')


def test_tidying_up_keeps_what_was_written_meanwhile(calls: Calls) -> None:
    calls.table({"a": "words"})
    tables = calls.library.tables
    calls("search_reindex", table_id="t", force=True)
    while tables.table("t").leaving is None:
        assert tables.jobs.step()
    seen = tables.table("t")
    (job,) = tables.job_rows.jobs()
    calls("table_update", table_id="t", data={"a": "other words"})
    for _ in range(3):
        tables.jobs._tidy(job, seen)
    now = tables.table("t")
    assert (now.version, now.leaving) == (2, None)


def test_a_rotated_key_stays_rotated_and_both_of_two_changes_last(calls: Calls) -> None:
    instances = calls.library.tables.instances
    seen, first = instances.create("front")
    _, second = instances.update(seen, {"rotate_key": True})
    instances.update(seen, {"description": "renewed"})
    assert second is not None
    assert instances.admitted("front", first) is None
    found = instances.admitted("front", second)
    assert found is not None
    assert found.description == "renewed"


def test_changes_of_a_tool_by_two_callers_both_last(calls: Calls) -> None:
    calls.table({"a": "words", "b": "more"})
    calls.tool("search")
    tables = calls.library.tables
    seen = tables.tool("search")
    calls.settle()
    tables.catalog.update_tool(seen, {"name": "find"})
    found = tables.catalog.update_tool(seen, {"description": "Finds."})
    assert (found.name, found.description) == ("find", "Finds.")
    assert tables.tool("find").indexed_at is not None


def test_a_tool_or_instance_that_is_gone_does_not_come_back(calls: Calls) -> None:
    calls.table({"a": "words"})
    calls.tool("search")
    tables = calls.library.tables
    tool = tables.tool("search")
    instance, _ = tables.instances.create("front")
    calls("tool_delete", tool_id="search")
    calls("instance_delete", instance_id="front")
    for change in (
        lambda: tables.catalog.update_tool(tool, {"name": "find"}),
        lambda: tables.catalog.delete_tool(tool),
        lambda: tables.instances.update(instance, {"description": "x"}),
        lambda: tables.instances.bind(instance, []),
        lambda: tables.instances.delete(instance),
    ):
        with pytest.raises(NotFound, match="any more"):
            change()
    assert (
        tables.rows.tools(),
        tables.instance_rows.instances(),
        tables.instance_rows.bindings(),
    ) == ([], [], [])


def nodes_of(calls: Calls, table: str) -> list[int]:
    found: list[int] = calls.library.store.drawer(Listing).select(Filter(kinds=("table",), parents=(table,))).tolist()
    return found


def next_generation(calls: Calls) -> None:
    calls("search_reindex", table_id="t", force=True)
    calls.settle()


def test_a_table_is_deleted_with_the_generation_it_has_now(calls: Calls) -> None:
    table = calls.table({"a": "words"})
    seen = calls.library.tables.table("t")
    next_generation(calls)
    calls.library.tables.catalog.delete_table(seen)
    assert nodes_of(calls, table) == []
    with pytest.raises(NotFound, match="any more"):
        calls.library.tables.catalog.delete_table(seen)


@pytest.mark.parametrize("dry_run", [True, False])
def test_cleaning_up_knows_the_generation_there_is_now(calls: Calls, dry_run: bool) -> None:
    table = calls.table({"a": "words"})
    tables = calls.library.tables
    seen = tables.table("t")
    next_generation(calls)
    assert tables.cleanup(seen, dry_run=dry_run) == (0, 1)
    assert len(nodes_of(calls, table)) == 1


def test_a_tool_that_is_made_while_a_generation_is_built_is_indexed_in_it(calls: Calls) -> None:
    calls.table({"a": "words"}, searchable=False)
    tables = calls.library.tables
    seen = tables.table("t")
    next_generation(calls)
    tables.catalog.create_tool(seen, "search", "search", {})
    calls.settle()
    assert [hit["json_path"] for hit in calls.hits("words")] == [""]


def test_a_search_that_a_new_generation_overtakes_answers_from_that_one(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls.table({"a": "old words"})
    calls.tool("search")
    calls.settle()
    plain = TableSearch.find

    def overtaken(self: TableSearch, *given: Any) -> Any:
        found = plain(self, *given)
        monkeypatch.setattr(TableSearch, "find", plain)
        next_generation(calls)
        calls("table_update", table_id="t", data={"a": "new words"})
        return found

    monkeypatch.setattr(TableSearch, "find", overtaken)
    answer = calls.run("search", query="words")
    assert [hit["chunk"]["chunk_text"] for hit in answer["results"]] == ["a: new words"]
    assert answer["index"]["generation"] == 2


@pytest.mark.parametrize(
    "read",
    [
        lambda calls: calls("table_get", table_id="t"),
        lambda calls: calls.run("get_all_data"),
        lambda calls: calls.run("query_data", query="@"),
    ],
    ids=["table_get", "get_all_data", "query_data"],
)
def test_a_version_is_never_newer_than_the_data_it_is_told_with(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, read: Callable[[Calls], dict[str, Any]]
) -> None:
    calls.table({"n": 1})
    calls.tool("get_all_data")
    calls.tool("query_data")
    plain = DataDrawer.text

    def overtaken(self: Any, *given: Any, **named: Any) -> Any:
        found = plain(self, *given, **named)
        monkeypatch.setattr(DataDrawer, "text", plain)
        calls("table_update", table_id="t", data={"n": 2})
        return found

    monkeypatch.setattr(DataDrawer, "text", overtaken)
    answer = read(calls)
    assert answer["version"] <= answer["data"]["n"]
