"""Merge patches: the appendix of RFC 7396, line by line, and what it implies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.ingest.prepare import merge

APPENDIX = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("target", "patch", "result"), APPENDIX)
def test_the_appendix_of_the_rfc_holds(target: str, patch: str, result: str) -> None:
    assert merge(json.loads(target), json.loads(patch)) == json.loads(result)


def test_nulls_inside_lists_stay() -> None:
    assert merge({"a": 1}, {"a": [None, {"b": None}]}) == {"a": [None, {"b": None}]}


@given(VALUES, VALUES)
def test_a_patch_applied_twice_changes_nothing_more_and_its_target_nothing_at_all(
    target: object, patch: object
) -> None:
    before = json.dumps(target, sort_keys=True)
    once = merge(target, patch)
    assert merge(once, patch) == once
    assert json.dumps(target, sort_keys=True) == before
