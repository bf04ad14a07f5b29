"""What hangs on items: told in the transaction that writes them, loaded at the first write of its kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from commonplace.errors import InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Item
from commonplace.store import hanging
from commonplace.store.base import Store
from commonplace.store.hanging import Hanging
from commonplace.store.items import Items
from commonplace.store.rows import NumberedWrite

MODULE = "module_that_hangs_on_notes"


class Noted(Hanging):
    """Notes down what it was told, and what was stored at that moment."""

    said: list[tuple[object, ...]]

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        items = self._db.drawer(Items).get([write.item_id for write in writes], body=True)
        self.said.append(("added", [item.body for item in items]))
        if any(item.title == "Bad" for item in items):
            raise InvalidInput("No.")

    def changed(self, old: Item, write: NumberedWrite) -> None:
        (item,) = self._db.drawer(Items).get([write.item_id], body=True)
        self.said.append(("changed", old.version, old.title, item.version, item.body))

    def unchanged(self, old: Item, write: NumberedWrite) -> None:
        self.said.append(("unchanged", old.id, write.key))

    def removed(self, item_ids: Sequence[int]) -> None:
        self.said.append(("removed", [item.title for item in self._db.drawer(Items).get(item_ids)]))


class Again(Hanging):
    """Leaves `changed` as it is."""

    said: list[tuple[object, ...]]

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        self.said.append(("added", [write.key for write in writes]))

    def removed(self, item_ids: Sequence[int]) -> None:
        self.said.append(("removed", list(item_ids)))


def draft(title: str, kind: str = "note", key: str | None = None) -> Draft:
    return Draft(kind, key or title.lower(), "", title, f"About {title}.")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[object, ...]]]:
    """What was told. The module of the classes is loaded by nobody but `hanging`."""
    hanging.loaded.cache_clear()
    module, said = ModuleType(MODULE), list[tuple[object, ...]]()
    for kind in (Noted, Again):
        vars(module)[kind.__name__] = type(kind.__name__, (kind,), {"said": said})
    monkeypatch.setattr(hanging, "HANGING", {"note": (f"{MODULE}:Noted",), "media": (f"{MODULE}:Again",)})
    monkeypatch.setitem(sys.modules, MODULE, module)
    yield said
    hanging.loaded.cache_clear()


def test_each_write_is_told_when_it_is_stored_and_each_removal_before_it_goes(
    store: Store, said: list[tuple[object, ...]]
) -> None:
    tea, jug = store.drawer(Items).put([prepare(draft("Tea")), prepare(draft("Jug"))])
    assert said == [("added", ["About Tea.", "About Jug."])]
    store.drawer(Items).put([prepare(draft("Tea"))])
    store.drawer(Items).put([prepare(draft("Green tea", key="tea"))])
    assert said[1:] == [("unchanged", tea.id, "tea"), ("changed", 1, "Tea", 2, "About Green tea.")]
    store.drawer(Items).delete([jug.id, tea.id, 99])
    assert said[3:] == [("removed", ["Jug", "Green tea"])]


def test_what_changes_is_removed_and_added_unless_its_drawer_knows_better(
    store: Store, said: list[tuple[object, ...]]
) -> None:
    (cup,) = store.drawer(Items).put([prepare(draft("Cup", "media"))])
    store.drawer(Items).put([prepare(draft("Large cup", "media", key="cup"))])
    assert said == [("added", ["cup"]), ("removed", [cup.id]), ("added", ["cup"])]


def test_what_a_drawer_refuses_is_not_stored(store: Store, said: list[tuple[object, ...]]) -> None:
    before = store.last_change()
    with pytest.raises(InvalidInput):
        store.drawer(Items).put([prepare(draft("Tea")), prepare(draft("Bad"))])
    assert store.drawer(Items).find("note", "", "tea") is None
    assert store.last_change() == before
    assert store.check() == []


def test_nothing_is_loaded_by_who_reads_or_writes_another_kind(
    store: Store, said: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hanging, "HANGING", {"note": ("no_such_module:Nothing",)})
    store.drawer(Items).put([prepare(draft("Tea", "prompt"))])
    assert store.drawer(Items).find("note", "", "tea") is None
    with pytest.raises(ModuleNotFoundError):
        store.drawer(Items).put([prepare(draft("Tea"))])


def test_what_is_registered_can_be_loaded() -> None:
    for names in hanging.HANGING.values():
        for name in names:
            assert issubclass(hanging.loaded(name), Hanging)
            module = sys.modules[name.partition(":")[0]]
            assert Path(module.__file__ or "").is_file()
