"""Entries are named by the ids they had in an mcp-context-server of version 3, in every tool that names entries."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from memory_calls import Tools, entry, refused, stored, there

from context_server import DIGITS, ENTRIES, FIRST, SECOND, THIRD, write_database

UNKNOWN = "0197f0a4c1d27e4f8a5b6c7d8e9f0a1b"


@pytest.fixture
def imported(tools: Tools, tmp_path: Path) -> Tools:
    """Its four entries are 2 to 5 here."""
    stored(tools, text="ours")
    tools.library.memories.import_context_server(write_database(tmp_path / "context.db"))
    return tools


@pytest.mark.parametrize(
    "id", [FIRST, str(UUID(FIRST)), FIRST.upper(), f"memory://{FIRST}", FIRST[:12], f" {FIRST[:12]}\n", "0197F0A3-C1D2"]
)
def test_an_entry_is_read_by_its_id_or_by_its_beginning(imported: Tools, id: str) -> None:
    (found,) = imported("get_context_by_ids", context_ids=[id])["result"]
    assert (found["id"], found["text_content"]) == (2, ENTRIES[0].text)


def test_numbers_and_ids_stand_side_by_side(imported: Tools) -> None:
    found = imported("get_context_by_ids", context_ids=[1, THIRD[:8], "memory://2", FIRST])["result"]
    assert [one["id"] for one in found] == [1, 4, 2]


def test_an_unknown_id_is_said_and_a_beginning_of_several_names_them(imported: Tools) -> None:
    for id in (UNKNOWN, UNKNOWN[:9]):
        for tool, arguments in (
            ("get_context_by_ids", {"context_ids": [id]}),
            ("update_context", {"context_id": id, "text": "x"}),
            ("delete_context", {"context_ids": [1, id]}),
            ("delete_context_batch", {"context_ids": [id]}),
            ("store_context", {"thread_id": "t", "source": "user", "text": "new", "supersedes": id}),
        ):
            answer = imported(tool, **arguments)
            assert refused(answer) == "There is no context entry 0197f0a4….", tool
            assert answer["error"]["code"] == "not_found"
    several = imported("delete_context", context_ids=["0197f0a3"])
    assert refused(several) == (
        f"Several context entries have ids that begin with 0197f0a3: {FIRST} (2), {SECOND} (3). Give one of them."
    )
    assert there(imported) == [1, 2, 3, 4, 5]


def test_digits_alone_are_always_a_number_of_ours(imported: Tools) -> None:
    assert imported("get_context_by_ids", context_ids=[DIGITS])["missing_ids"] == [int(DIGITS)]
    assert imported("get_context_by_ids", context_ids=[DIGITS[:8]])["missing_ids"] == [1970000]
    (found,) = imported("get_context_by_ids", context_ids=[str(UUID(DIGITS))])["result"]
    assert found["text_content"] == "Of digits alone."
    assert refused(imported("get_context_by_ids", context_ids=["0197f0a"])) == "context_id must be a positive integer"


def test_entries_are_changed_replaced_and_deleted_by_their_ids(imported: Tools) -> None:
    assert imported("update_context", context_id=FIRST[:12], text="Green.")["context_id"] == 2
    assert entry(imported, 2).item.body == "Green."
    number = stored(imported, text="newer", supersedes=[SECOND, 1])
    assert set(entry(imported, number).row.supersedes) == {1, 3}
    assert imported("delete_context", context_ids=[THIRD])["deleted_count"] == 1
    assert refused(imported("get_context_by_ids", context_ids=[THIRD])) == "There is no context entry 0198ab34…."


def test_batches_take_ids_and_say_which_are_not_there(imported: Tools) -> None:
    updates = [{"context_id": FIRST, "text": "One."}, {"context_id": UNKNOWN, "text": "Two."}]
    answer = imported("update_context_batch", updates=updates, atomic=False)
    assert [(one["context_id"], one["success"], one["error"]) for one in answer["results"]] == [
        (2, True, None),
        (None, False, "There is no context entry 0197f0a4…."),
    ]
    assert refused(imported("update_context_batch", updates=updates)).endswith("0197f0a4…. at index 1")
    entries = [{"thread_id": "t", "source": "user", "text": "new", "supersedes": [UNKNOWN]}]
    answer = imported("store_context_batch", entries=entries, atomic=False)
    assert answer["results"][0]["error"] == "There is no context entry 0197f0a4…."
