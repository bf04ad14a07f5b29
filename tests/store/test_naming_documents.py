"""Names of documents follow the items, whatever is done to them."""

from __future__ import annotations

import hashlib
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.ingest.prepare import prepare
from commonplace.model import Draft
from commonplace.store.base import Store
from opening import open_store

components = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=4)
paths = st.lists(components, min_size=1, max_size=4).map("/".join)


def document(key: str, parent: str = "c", kind: str = "document") -> Draft:
    return Draft(kind, key, parent=parent, title="t", body=f"body of {key}")


def test_names_come_and_go_with_documents(store: Store) -> None:
    first, _ = store.put([prepare(document("a/b.md")), prepare(document("n", kind="note"))])
    assert store.document_files() == ([first.id], ["c/a/b.md"])
    assert store.docids([first.id]) == {first.id: hashlib.sha256(b"c/a/b.md").hexdigest()[:6]}
    assert [name.file for name in store.documents_by_end("b.md", "end", 5)[0]] == ["c/a/b.md"]
    assert store.body_sizes([first.id]) == {first.id: len("body of a/b.md")}
    assert store.unembedded_documents(None) == 1
    assert store.unembedded_documents(None, ["other"]) == 0
    assert store.check() == []
    store.delete([first.id])
    assert store.document_files() == ([], [])
    assert store.documents_by_end("b.md", "end", 5) == ([], 0)
    assert store.check() == []


@given(st.sets(paths, min_size=1, max_size=12), paths)
def test_an_end_is_found_by_whole_components(
    backend: str, tmp_path_factory: pytest.TempPathFactory, keys: set[str], end: str
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("names"))
    try:
        store.put([prepare(document(key)) for key in keys])
        for wanted in (end, *keys, next(iter(keys)).split("/")[-1]):
            names, total = store.documents_by_end(wanted, "end", 100)
            expected = {key for key in keys if normalize("NFC", f"c/{key}").endswith("/" + normalize("NFC", wanted))}
            assert {name.path for name in names} == expected
            assert total == len(expected)
        assert store.check() == []
    finally:
        store.close()
