"""The quick yes beside jsonschema: it says yes exactly where jsonschema finds nothing wrong.

1. For the arguments of every tool there is, right and wrong ones.
2. A keyword it does not know is never taken for followed.
3. What is wrong with a list is told of its first entries: a caller may send millions.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from commonplace.errors import InvalidInput
from commonplace.profiles.registry import PROFILES, profile
from commonplace.tools.arguments import Signature, accepts, check
from commonplace.tools.schema import Schema, obj, one_or_many
from commonplace.tools.schema import texts as listed
from schemas import ANYTHING, arguments

TOOLS = {
    f"{name} {tool.name}": tool.input
    for name in PROFILES
    for tool in (*profile(name).tools, *profile(name).unlisted, *profile(name).aliases)
}
texts = st.text(max_size=5) | st.just("x" * 300)


@pytest.mark.parametrize("wild", [False, True])
@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_what_is_accepted_is_what_jsonschema_finds_nothing_wrong_with(wild: bool, data: st.DataObject) -> None:
    schema = TOOLS[data.draw(st.sampled_from(sorted(TOOLS)))]
    value = data.draw(arguments(schema, texts, wild=wild) | ANYTHING)
    assert accepts(schema, value) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "integer"}, [0, 5.0, -(10**30)], [True, 5.5, "5", None, float("inf")]),
        ({"type": "number"}, [0, 0.5], [False, "0.5", None]),
        ({"type": ["string", "null"]}, ["", None], [0, False, []]),
        ({"minimum": 1, "maximum": 3}, [1, 2.5, "no number", True, None], [0, 3.5, -1]),
        ({"minLength": 1, "maxLength": 2}, ["a", "🍵🍵", 7, ["x", "y", "z"]], ["", "abc"]),
        ({"minItems": 1, "maxItems": 2}, [[0], "abc", {}], [[], [1, 2, 3]]),
        ({"items": {"type": "string"}}, [[], ["a"], "a", {"a": 1}], [["a", 1]]),
        ({"enum": ["a", "b"]}, ["a"], ["c", 1, None, ["a"]]),
        ({"required": ["a"]}, [{"a": None}, [], "a"], [{}, {"b": 1}]),
        ({"properties": {"a": {"type": "string"}}}, [{}, {"a": ""}, {"b": 1}, 1], [{"a": 1}]),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            [{}, {"a": 1}, []],
            [{"b": 1}, {"a": 1, "b": 1}],
        ),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a", ["a"]], [1, [1]]),
    ],
)
def test_each_keyword_is_about_its_own_kind_of_value(schema: Any, right: list[Any], wrong: list[Any]) -> None:
    judged = [Draft202012Validator(schema).is_valid(value) for value in (*right, *wrong)]
    assert [accepts(schema, value) for value in (*right, *wrong)] == judged
    assert judged == [True] * len(right) + [False] * len(wrong)


@pytest.mark.parametrize("more", [{"pattern": "^a"}, {"format": "date"}, {"const": "a"}, {"$ref": "#"}])
def test_a_keyword_that_is_not_known_is_left_to_jsonschema(more: dict[str, str]) -> None:
    assert not accepts({"type": "string", **more}, "abc")


@pytest.mark.parametrize(
    "schema", [listed("Some."), listed("Some.", maxItems=100), one_or_many("Some.", 100)], ids=["any", "few", "or one"]
)
def test_a_list_of_a_million_wrong_entries_is_refused_for_little(schema: Schema) -> None:
    signature = Signature(obj(some=schema))
    begun = time.process_time()
    with pytest.raises(InvalidInput, match="some"):
        check("tool", signature, {"some": [1] * 1_000_000})
    assert time.process_time() - begun < 10  # a minute, and gigabytes, where each of them is told
    assert len(signature.problems({"some": [1] * 1000})) < 20


def test_an_entry_that_is_wrong_is_told_with_its_place_wherever_it_stands() -> None:
    with pytest.raises(InvalidInput, match=r"some\.5000 must be a string, not 1\."):
        check("tool", Signature(obj(some=listed("Some."))), {"some": [*["a"] * 5000, 1]})
