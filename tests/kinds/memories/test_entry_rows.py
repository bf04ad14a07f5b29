"""How often a server is waited for by the calls on rows of entries, whatever is stored.

What is only sent is not waited for: each answer costs the way there and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.ingest.prepare import prepare
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Past
from commonplace.model import Draft
from commonplace.store.metadata_index import MetadataIndex
from commonplace.store.rows import Write
from opening import open_store

STATUS = ("status",)
BEFORE = Past(1, 7, "before", {}, (), ())


def entry(text: str, status: str) -> Write:
    fields = {"source": "user", "supersedes": [1, 2]}
    return prepare(Draft("memory", "0", "t", body=text, fields=fields, metadata={"status": [status, 1, 0.5]}))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Any]:
    """A store on a server with five entries and an indexed field."""
    store = open_store("postgres", tmp_path)
    store.drawer(MetadataIndex).add(STATUS)
    store.drawer(EntryRows).add([entry(f"said {n}", f"s{n % 2}") for n in range(5)])
    yield store
    store.close()


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        (lambda rows: rows.get([1, 2, 3]), 1),
        (lambda rows: rows.of([1, 2, 3]), 1),
        (lambda rows: rows.latest(["t", "none"], 3), 1),
        (lambda rows: rows.numbers(threads=["t"], source="user"), 1),
        (lambda rows: rows.past([1, 2]), 1),
        (lambda rows: rows.threads(limit=9, offset=0), 2),
        (lambda rows: rows.tally(), 4),
        (lambda rows: rows.supersede(5, [3, 4]), 0),
        (lambda rows: rows.keep_past(1, BEFORE, 9), 0),
        (lambda rows: rows.add([entry("one", "s0")]), 1),
        (lambda rows: rows.add([entry(f"more {n}", f"new {n}") for n in range(20)]), 1),
    ],
    ids=["get", "of", "latest", "numbers", "past", "threads", "tally", "supersede", "keep_past", "add", "add 20"],
)
def test_a_call_waits_for_a_server_as_often_as_it_reads(
    served: Any, monkeypatch: pytest.MonkeyPatch, call: Callable[[EntryRows], object], waits: int
) -> None:
    rows, answers = served.drawer(EntryRows), list[str]()
    for name in ("all", "row"):
        plain = getattr(served.session, name)

        def counted(query: Any, *values: Any, plain: Any = plain) -> Any:
            answers.append(str(query))
            return plain(query, *values)

        monkeypatch.setattr(served.session, name, counted)
    call(rows)
    assert len(answers) == waits, answers
