"""JSON is kept exactly or refused, with where it went wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from json_data import values

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.tables import values as reading
from commonplace.kinds.tables.shredding import dumps
from commonplace.kinds.tables.values import check, read
from commonplace.model import JSON


@given(values())
def test_a_value_comes_back_from_its_text(value: JSON) -> None:
    text = dumps(value)
    assert dumps(read(text)) == text
    assert json.loads(text) == value
    check(value)


def test_big_integers_and_the_order_of_keys_are_kept() -> None:
    text = '{"b":1,"a":[123456789012345678901234567890,-0.5,1e3],"":{"z":null,"y":"\\u0000é"}}'
    assert list(read(text)) == ["b", "a", ""]
    assert read(text)["a"][0] == 123456789012345678901234567890
    digits = "9" * 4300
    assert dumps(read(digits)) == digits


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a":{"b":1,\n"b":2}}', 'content has the key "b" twice in one object at /a, line 2.'),
        ('{"a":[1,NaN]}', "content has NaN, which JSON cannot hold at /a/1, line 1."),
        ("[\n\n-Infinity]", "content has -Infinity, which JSON cannot hold at /0, line 3."),
        ('{"x/y":[0,1e999]}', "content has a number too large to be kept; use a string at /x~1y/1, line 1."),
        ("9" * 4301, "more than 4300 digits"),
        ('["\\ud800"]', "content has a lone surrogate, which is no character at /0."),
        ('{"\\udc00":1}', "lone surrogate"),
        ("[" * 101 + "]" * 101, "nested more than 100 deep"),
        ("[" * 1000 + "]" * 1000, "nested more than 100 deep"),
        ("[" * 100_000 + "]" * 100_000, "nested more than 100 deep"),
        ('{"a":1,}', "content is not JSON"),
        ("", "content is not JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(text)
    assert sentence in str(refusal.value)


def test_a_hundred_levels_are_deep_enough() -> None:
    deep = "[" * 100 + "]" * 100
    assert dumps(read(deep)) == deep


def test_values_that_came_another_way_are_checked_alike() -> None:
    for value in (float("nan"), [float("inf")], {"a": "\ud800"}, {1: 2}, 10**4301, object()):
        with pytest.raises(InvalidInput):
            check(value)


def test_more_than_the_largest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST", 10)
    with pytest.raises(TooLarge, match="64 MiB"):
        read('"aaaaaaaaaaaaaaaa"')
    with pytest.raises(TooLarge):
        check(["aaaaaaaaaaaaaaaa"])
