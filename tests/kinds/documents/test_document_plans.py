"""What documents are asked for, by either database: 1. an index finds it, and no look walks all there are;
2. few answers are waited for, each of which is a round trip to a server, however many documents it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.kinds.documents.outlines import Outlines
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.items import Items
from commonplace.store.rows import FileRecord, FolderChange
from commonplace.text.outline import outline_of

Question = Callable[[Store, int], object]
BODY = "# Tea\n\nGreen.\n\n## Oolong\n\nBlue.\n"
QUESTIONS: dict[str, Question] = {
    "a page": lambda store, item: store.drawer(Outlines).page("c1", limit=5, offset=2),
    "counts": lambda store, item: store.drawer(Outlines).counts(["c1", "c2"]),
    "rows": lambda store, item: store.drawer(Outlines).rows([item]),
    "an outline": lambda store, item: store.drawer(Outlines).find(item),
    "headings": lambda store, item: store.drawer(Outlines).headings_at([(item, 1), (item, 6)]),
    "text": lambda store, item: store.drawer(Outlines).text(item, 0, 5),
    "a docid": lambda store, item: store.drawer(DocumentNames).by_docid("abc", 5),
    "a hash": lambda store, item: store.drawer(DocumentNames).by_hash("abc", 5),
    "a file": lambda store, item: store.drawer(DocumentNames).by_end("c1/7.md", "file", 5),
    "a path": lambda store, item: store.drawer(DocumentNames).by_end("7.md", "path", 5),
    "an end": lambda store, item: store.drawer(DocumentNames).by_end("7.md", "end", 5),
    "any case": lambda store, item: store.drawer(DocumentNames).in_any_case("7.MD", 5, with_ending=True),
    "docids": lambda store, item: store.drawer(DocumentNames).docids([item]),
    "records": lambda store, item: store.drawer(CollectionFiles).records("c1"),
    "versions": lambda store, item: store.drawer(CollectionFiles).versions("c1"),
    "a change": lambda store, item: store.drawer(CollectionFiles).change(
        FolderChange("c1", [], [record("x")], ["gone.md"], ["8.md"])
    ),
}


@pytest.fixture
def filled(store: Store) -> int:
    drafts = [Draft("document", f"{at}.md", parent=f"c{at % 4}", body=BODY, format="markdown") for at in range(400)]
    items = store.drawer(Items).put([prepare(draft) for draft in drafts])
    return items[7].id


# 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_documents_are_asked_for_is_found_by_an_index(
    store: Store, filled: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = store.session
    statements = waited_for(store, lambda: QUESTIONS[name](store, filled), monkeypatch)
    assert statements
    for query, values in statements:
        text = query if isinstance(query, str) else session.tuned(query)
        assert not list(filter(_walks, session.read(_plan, session, text, values))), text


# 2


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_question_waits_for_more_than_two_answers(
    store: Store, filled: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = waited_for(store, lambda: QUESTIONS[name](store, filled), monkeypatch)
    assert len(statements) <= (2 if name in ("a page", "an outline", "a change") else 1)


def test_many_files_wait_for_no_more_answers_than_few(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(count: int) -> Callable[[], object]:
        paths = [f"{at}.md" for at in range(count)]
        writes = [(prepare(Draft("document", path, parent=f"of {count}", body=BODY)), record(path)) for path in paths]
        return lambda: store.drawer(CollectionFiles).change(FolderChange(f"of {count}", writes, [], [], []))

    assert len(waited_for(store, change(90), monkeypatch)) == len(waited_for(store, change(3), monkeypatch))


def test_many_outlines_are_kept_by_one_answer(store: Store, filled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outlines = [(filled + at, 1, outline_of(BODY, "markdown")) for at in range(20)]
    assert len(waited_for(store, lambda: store.drawer(Outlines).keep(outlines), monkeypatch)) == 1


def record(path: str) -> FileRecord:
    return FileRecord(path, 0, 0, 0, b"", 0, "", "", 0)


def waited_for(store: Store, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Return the statements, with their values, whose answers a call waits for."""
    session: Any = store.session
    statements: list[tuple[Any, Any]] = []
    with monkeypatch.context() as watching:
        for verb in ("all", "row"):

            def noted(query: Any, values: Any = (), answer: Any = getattr(session, verb)) -> Any:
                statements.append((query, values))
                return answer(query, values)

            watching.setattr(session, verb, noted)
        call()
    return statements


def _walks(step: str) -> bool:
    """Return whether a step looks at every row of a table."""
    if "Seq Scan" in step:
        return True
    return step.startswith("SCAN ") and not any(given in step for given in ("VIRTUAL TABLE", "page"))


def _plan(session: Any, query: str, values: Any) -> list[str]:
    """Return the steps of a statement. A server would rather walk tables that are small, unless it is told not to."""
    if session.dialect == "sqlite":
        return [str(row[3]) for row in session.all(f"explain query plan {query}", values)]
    session.run("set local enable_seqscan = off")
    return [str(row[0]) for row in session.all(f"explain {query}", values)]
