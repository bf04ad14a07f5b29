"""JSON Pointers: every key has one, and what is none is refused with a hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.kinds.tables.pointers import is_inside, parse, relative, render
from commonplace.store.facets import around

keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda key: key != "-")
tokens = st.lists(st.one_of(keys, st.sampled_from(["", "~", "/", "~1", "~01", "0", "a/b"])), max_size=6).map(tuple)


@given(tokens)
def test_a_place_comes_back_from_its_pointer(place: tuple[str, ...]) -> None:
    assert parse(render(place)) == place


@given(tokens, tokens)
def test_inside_is_told_by_tokens(place: tuple[str, ...], more: tuple[str, ...]) -> None:
    assert is_inside((*place, *more), place)
    assert relative(render((*place, *more)), render(place)) == render(more)
    assert is_inside(place, (*place, *more)) == (not more)


@given(tokens)
def test_a_place_is_around_itself_and_the_whole_is_around_everything(place: tuple[str, ...]) -> None:
    found = around(render(place))
    assert found == [render(place[:end]) for end in range(len(place) + 1)]


def test_a_name_that_begins_alike_is_not_inside() -> None:
    assert is_inside(parse("/stock/3"), parse("/stock"))
    assert not is_inside(parse("/stockroom"), parse("/stock"))
    assert parse("/") == ("",)
    assert parse("") == ()
    assert parse("/~01") == ("~1",)


@pytest.mark.parametrize(
    ("pointer", "hint"),
    [
        ("stock", "begin with a slash"),
        ("#/stock", "leave the # out"),
        ("/a~2", "~0 for ~"),
        ("/a~", "~0 for ~"),
        ("/list/-", "use an index"),
    ],
)
def test_what_is_no_pointer_is_refused_with_a_hint(pointer: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match="json_path must be a JSON Pointer") as refusal:
        parse(pointer)
    assert hint in str(refusal.value)
    assert refusal.value.details["argument"] == "json_path"
