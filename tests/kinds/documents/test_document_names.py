"""Names of documents follow the items, whatever is done to them."""

from __future__ import annotations

import hashlib
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.ingest.prepare import prepare
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.model import Draft
from commonplace.store.base import Store
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from opening import open_store

components = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=4)
paths = st.lists(components, min_size=1, max_size=4).map("/".join)


def document(key: str, parent: str = "c", kind: str = "document") -> Draft:
    return Draft(kind, key, parent=parent, title="t", body=f"body of {key}")


def test_names_come_and_go_with_documents(store: Store) -> None:
    first, _ = store.drawer(Items).put([prepare(document("a/b.md")), prepare(document("n", kind="note"))])
    assert store.drawer(DocumentNames).all() == ([first.id], ["c/a/b.md"])
    assert store.drawer(DocumentNames).docids([first.id]) == {first.id: hashlib.sha256(b"c/a/b.md").hexdigest()[:6]}
    assert [name.file for name in store.drawer(DocumentNames).by_end("b.md", "end", 5)[0]] == ["c/a/b.md"]
    assert store.drawer(Items).body_sizes([first.id]) == {first.id: len("body of a/b.md")}
    assert store.drawer(Embeddings).documents_lacking(None) == 1
    assert store.drawer(Embeddings).documents_lacking(None, ["other"]) == 0
    assert store.check() == []
    store.drawer(Items).delete([first.id])
    assert store.drawer(DocumentNames).all() == ([], [])
    assert store.drawer(DocumentNames).by_end("b.md", "end", 5) == ([], 0)
    assert store.check() == []


@given(st.sets(paths, min_size=1, max_size=12), paths)
def test_an_end_is_found_by_whole_components(
    backend: str, tmp_path_factory: pytest.TempPathFactory, keys: set[str], end: str
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("names"))
    try:
        store.drawer(Items).put([prepare(document(key)) for key in keys])
        for wanted in (end, *keys, next(iter(keys)).split("/")[-1]):
            names, total = store.drawer(DocumentNames).by_end(wanted, "end", 100)
            expected = {key for key in keys if normalize("NFC", f"c/{key}").endswith("/" + normalize("NFC", wanted))}
            assert {name.path for name in names} == expected
            assert total == len(expected)
        assert store.check() == []
    finally:
        store.close()


def test_a_document_is_found_whatever_the_case_and_without_its_ending(store: Store) -> None:
    keys = ("Areas/Vim.md", "Areas/vim.TXT", "old/VIM", "Ärger/v1.2.md", ".env", "a/.Env", "neovim.md")
    store.drawer(Items).put([prepare(document(key, "Vault")) for key in keys])

    def found(path: str, *, with_ending: bool, limit: int = 9) -> tuple[list[str], int]:
        names, total = store.drawer(DocumentNames).in_any_case(path, limit, with_ending=with_ending)
        return [name.path for name in names], total

    assert found("vim.MD", with_ending=True) == (["Areas/Vim.md"], 1)
    assert found("vim", with_ending=True) == (["old/VIM"], 1)
    assert found("VIM", with_ending=False) == (["old/VIM", "Areas/Vim.md", "Areas/vim.TXT"], 3)
    assert found("VIM", with_ending=False, limit=1) == (["old/VIM"], 3)
    assert found("vault/areas/vim.md", with_ending=True) == (["Areas/Vim.md"], 1)
    assert found("ault/areas/vim.md", with_ending=True) == ([], 0)
    assert found("ärger/V1.2", with_ending=False) == (["Ärger/v1.2.md"], 1)
    assert found("ärger/V1.2", with_ending=True) == ([], 0)
    assert found(".ENV", with_ending=True) == ([".env", "a/.Env"], 2)
    assert store.check() == []
