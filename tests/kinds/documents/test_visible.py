"""Which collections a caller sees, and by which names."""

from __future__ import annotations

import pytest

from commonplace.errors import NotFound
from commonplace.kinds.documents.visible import Declared, Visible
from commonplace.tools.tool import View


def one(alias: str, key: str, scope: str = "global", name: str = "") -> Declared:
    return Declared(alias, f"pkg:file:///{key}", key, scope, name, "1.0", f"About {key}.")  # type: ignore[arg-type]


DECLARED = [
    one("api", "project-api", "project", "Reference"),
    one("zz", "shared", "project"),
    one("api", "global-api", name="Reference"),
    one("aa", "shared"),
    one("Guide", "guide-1", name="Handbook"),
]


def test_a_collection_is_called_by_its_project_alias_its_global_one_or_its_id() -> None:
    shown = Visible.of(DECLARED).collections
    assert [(each.label, each.key) for each in shown] == [
        ("Guide", "guide-1"),
        ("api", "project-api"),
        ("pkg:file:///global-api", "global-api"),
        ("zz", "shared"),
    ]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("api", "project-api"),
        ("API", "project-api"),
        ("aa", "shared"),
        ("pkg:file:///global-api", "global-api"),
        ("PKG:FILE:///GLOBAL-API", "global-api"),
        ("Handbook", "guide-1"),
        ("handbook", "guide-1"),
        ("guide", "guide-1"),
        ("Reference", None),  # two are called so
        ("guide-1", None),
        ("", None),
    ],
)
def test_names_are_looked_up_in_turn_and_exactly_first(name: str, key: str | None) -> None:
    found = Visible.of(DECLARED).get(name)
    assert (found.key if found else None) == key


def test_narrowing_never_widens() -> None:
    view = View().only(["api", "guide", "nothing"])
    assert {each.key for each in Visible.of(DECLARED, view).collections} == {"project-api", "guide-1"}
    assert {each.key for each in Visible.of(DECLARED, view.only(["zz", "Handbook"])).collections} == {"guide-1"}
    assert Visible.of(DECLARED, view.only(["zz"])).collections == ()
    assert view.only([]) == view


def test_an_unknown_name_is_refused_with_those_that_are_visible() -> None:
    visible = Visible.of(DECLARED, View().only(["guide"]))
    with pytest.raises(NotFound) as refused:
        visible.find("api")
    assert refused.value.code == "collection_not_found"
    assert refused.value.details["collections"] == ["Guide"]
    assert str(refused.value).startswith('Collection "api" not found.\n')
