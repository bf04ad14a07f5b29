"""Metadata filters from arguments to a Filter: contracts/memory.md, section 6.

What a filter means once it is well formed is proved in tests/store/test_store_filters.py; here, that what is malformed
never runs and that every problem of it is named.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_calls import Tools, stored

from commonplace.errors import InvalidInput
from commonplace.kinds.memories.metadata import OPERATORS, Malformed, conditions, parse_path
from commonplace.kinds.memories.tools.search_calls import search_filter
from commonplace.model import Condition, Filter

ALL = ", ".join(OPERATORS)
IDS = {"key": "k", "operator": "eq", "value": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("status", ("status",)),
        ("a.b.c", ("a", "b", "c")),
        (r"a\.b", ("a.b",)),
        (r"a\\.b", ("a\\", "b")),
        (r"a\\\.b", ("a\\.b",)),
        ("metadata.metadata", ("metadata", "metadata")),
        (" spaced name ", (" spaced name ",)),
        ("ключ.名", ("ключ", "名")),
        ('quo"te.$.0', ('quo"te', "$", "0")),
    ],
)
def test_paths_are_names_parted_by_dots(text: str, names: tuple[str, ...]) -> None:
    assert parse_path(text) == names


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a[0]", "a\n", "a\\", "\\x", "a\x7f", "[", "\x85"])
def test_a_path_that_cannot_be_parsed_is_malformed(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a (path|backslash) "):
        parse_path(text)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="[]"), min_size=1), min_size=1)
)
def test_any_names_can_be_written_as_a_path(names: list[str]) -> None:
    path = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in names)
    assert parse_path(path) == tuple(names)


def test_both_ways_of_filtering_are_one_list() -> None:
    found = conditions(
        {"status": "open", r"a\.b": True},
        [{"key": "n", "operator": "gte", "value": 5}, {"key": "x", "value": "y", "case_sensitive": True}],
    )
    assert found == (
        Condition(("status",), "eq", "open"),
        Condition(("a.b",), "eq", True),
        Condition(("n",), "gte", 5),
        Condition(("x",), "eq", "y", case_sensitive=True),
    )


@pytest.mark.parametrize("operator", ["exists", "not_exists", "is_null", "is_not_null"])
@pytest.mark.parametrize("value", [{}, {"value": None}, {"value": True}, {"value": None, "case_sensitive": False}])
def test_operators_without_a_value_take_none_null_or_true_and_what_is_so_anyway(
    operator: str, value: dict[str, Any]
) -> None:
    assert not isinstance(conditions({}, [{"key": "k", "operator": operator, **value}]), Malformed)


@pytest.mark.parametrize(
    ("filter", "problem"),
    [
        ({"key": "k", "operator": "like", "value": 1}, f'.operator: unknown operator "like"; use one of {ALL}'),
        ({"key": "k", "operator": "EQ", "value": 1}, f'.operator: unknown operator "EQ"; use one of {ALL}'),
        ({"key": "k", "operator": 5, "value": 1}, f".operator: unknown operator of that kind; use one of {ALL}"),
        ({**IDS, "colour": 1}, ': unknown field "colour"'),
        ({"value": 1}, ".key: is required"),
        ({"key": None, "value": 1}, ".key: is required"),
        ({"key": 7, "value": 1}, ".key: must be a string"),
        ({"key": "a..b", "value": 1}, ".key: a path has no empty segment"),
        ({"key": "", "value": 1}, ".key: a path cannot be empty"),
        ({"key": "k"}, ".value: eq needs a value"),
        ({"key": "k", "value": None}, ".value: null cannot be compared; use the is_null operator"),
        ({"key": "k", "value": [1]}, ".value: a list cannot be compared; use the in or array_contains operator"),
        ({"key": "k", "value": {}}, ".value: an object cannot be compared; name one of its members with a dot"),
        ({"key": "k", "value": float("nan")}, ".value: a number that is not finite cannot be compared"),
        ({"key": "k", "operator": "gt", "value": True}, ".value: gt compares numbers and strings, not booleans"),
        ({"key": "k", "operator": "lte", "value": None}, ".value: lte compares numbers and strings, not null"),
        ({"key": "k", "operator": "in", "value": []}, ".value: in needs a non-empty list"),
        ({"key": "k", "operator": "in", "value": "a"}, ".value: in needs a non-empty list"),
        ({"key": "k", "operator": "not_in", "value": [1, None]}, ".value: not_in takes scalars: null cannot be"),
        ({"key": "k", "operator": "in", "value": [1] * 1001}, ".value: in takes at most 1000 members, not 1001"),
        ({"key": "k", "operator": "contains", "value": ""}, ".value: contains needs a non-empty string"),
        ({"key": "k", "operator": "starts_with", "value": 5}, ".value: starts_with needs a non-empty string"),
        ({"key": "k", "operator": "is_null", "value": "x"}, ".value: is_null takes no value"),
        ({"key": "k", "operator": "exists", "value": False}, ".value: exists takes no value"),
        ({"key": "k", "operator": "array_contains", "value": ["a"]}, ".value: a list cannot be compared"),
        ({**IDS, "case_sensitive": "yes"}, ".case_sensitive: must be true or false"),
        ({**IDS, "include_missing": True}, ".include_missing: goes with ne and not_in only, not with eq"),
        ({"key": "k", "operator": "is_null", "case_sensitive": True}, ".case_sensitive: is_null compares nothing"),
        ("status", ": must be an object with key, operator and value"),
        (None, ": must be an object with key, operator and value"),
    ],
)
def test_a_malformed_filter_is_named_with_its_place(filter: Any, problem: str) -> None:
    found = conditions({}, [IDS, filter])
    assert isinstance(found, Malformed)
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"metadata_filters[1]{problem}")


def test_as_many_names_as_there_may_be_are_answered_and_more_are_told(tools: Tools) -> None:
    stored(tools, metadata={f"k{number}": number for number in range(500)})
    many = {f"k{number}": number for number in range(501)}
    assert tools("search_context", metadata={name: many[name] for name in list(many)[:500]})["count"] == 1
    answer = tools("search_context", metadata=many)
    assert answer["validation_errors"] == ["metadata: takes at most 500 names, not 501"]


def test_every_problem_of_every_filter_is_listed() -> None:
    found = conditions(
        {"owner": None, "a..b": {}},
        [{"operator": "like", "colour": 1, "include_missing": 3}, {"key": "k", "operator": "gt", "value": None}],
    )
    assert isinstance(found, Malformed)
    assert [problem.split(":")[0] for problem in found.problems] == [
        "metadata.owner", "metadata.a..b", "metadata.a..b", "metadata_filters[0]", "metadata_filters[0].key",
        "metadata_filters[0].operator", "metadata_filters[0].include_missing", "metadata_filters[1].value",
    ]  # fmt: skip
    assert found.problems[0] == "metadata.owner: null cannot be compared; use the is_null operator"


def test_a_search_with_malformed_filters_answers_with_them(tools: Tools) -> None:
    stored(tools, metadata={"k": 1})
    given = {"metadata_filters": [{"key": "k", "operator": "like", "value": 1}], "metadata": {"owner": None}}
    for name in ("search_context", "fts_search_context", "semantic_search_context", "hybrid_search_context"):
        answer = tools(name, **given, **({} if name == "search_context" else {"query": "text"}))
        assert (answer["results"], answer["count"], answer["error"]) == ([], 0, "Metadata filter validation failed")
        assert answer["validation_errors"] == [
            "metadata.owner: null cannot be compared; use the is_null operator",
            f'metadata_filters[0].operator: unknown operator "like"; use one of {ALL}',
        ]


def test_tags_and_dates_become_a_filter() -> None:
    found = search_filter({"tags": [" Green  TEA ", ""], "start_date": "2025-01-01", "end_date": "2025-01-01"})
    assert isinstance(found, Filter)
    assert found.tags == ("green tea",)
    assert (found.created_to - found.created_from).seconds == 86_399  # type: ignore[operator]
    assert search_filter({"tags": []}).tags == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tags": [" ", ""]}, "tags must contain at least one non-blank tag"),
        (
            {"start_date": "2025-02-01", "end_date": "2025-01-01"},
            "Invalid date range: start_date (2025-02-01) is after end_date (2025-01-01)",
        ),
        (
            {"end_date": "20250101"},
            'Invalid end_date format: "20250101". Use ISO 8601 format (e.g., "2025-11-29" or "2025-11-29T10:00:00")',
        ),
    ],
)
def test_what_cannot_be_a_filter_is_an_error(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        search_filter(given)
    assert str(caught.value) == sentence
