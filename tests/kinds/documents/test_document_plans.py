"""What documents are asked for, by either database, is found by an index: no look walks all there are."""

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
        FolderChange("c1", [], [FileRecord("x", 0, 0, 0, b"", 0, "", "EMPTY", 0)], ["gone.md"], ["8.md"])
    ),
}


@pytest.fixture
def filled(store: Store) -> int:
    drafts = [Draft("document", f"{at}.md", parent=f"c{at % 4}", body=BODY, format="markdown") for at in range(400)]
    items = store.drawer(Items).put([prepare(draft) for draft in drafts])
    return items[7].id


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_documents_are_asked_for_is_found_by_an_index(
    store: Store, filled: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = store.session  # type: ignore[attr-defined]
    asked: list[tuple[Any, Any]] = []
    for verb in ("all", "row"):
        answer = getattr(session, verb)

        def noted(query: Any, values: Any = (), answer: Any = answer) -> Any:
            asked.append((query, values))
            return answer(query, values)

        monkeypatch.setattr(session, verb, noted)
    QUESTIONS[name](store, filled)
    monkeypatch.undo()
    assert asked
    for query, values in asked:
        text = query if isinstance(query, str) else session.tuned(query)
        plan = session.read(_plan, session, text, values)
        assert not list(filter(_walks, plan)), text


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
