"""A table's search by meaning: short rows asked about in other words."""

from __future__ import annotations

from typing import Any

import pytest
from table_calls import Calls

from paraphrases import SETS


@pytest.mark.parametrize("name", SETS)
def test_rows_asked_about_in_other_words_are_among_the_first_five(calls: Calls, name: str) -> None:
    pairs = SETS[name]
    calls.table({name: [{"id": number, "text": text} for number, (text, _) in enumerate(pairs)]})
    calls.tool("search", f"/{name}")
    calls.library.embed()
    calls.settle()
    places = [found(calls, query, number) for number, (_, query) in enumerate(pairs)]
    assert sum(places) >= 10


def found(calls: Calls, query: str, number: int) -> bool:
    hits: list[dict[str, Any]] = calls.hits(query, top_k=5)
    return f"/{number}" in [hit["json_path"] for hit in hits]


def test_a_question_by_meaning_alone_is_never_empty(calls: Calls) -> None:
    calls.table({"rows": ["Tea is brewed in a pot.", "Trains leave at nine."]})
    calls.tool("search", "/rows")
    calls.library.embed()
    calls.settle()
    hits = calls.hits("zzyzx qwrtp", top_k=5)
    assert hits
    assert all(hit["score"] < 0.4 for hit in hits)
