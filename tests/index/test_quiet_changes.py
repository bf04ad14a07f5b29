"""Changes that hold nothing for the words: a search passes them by and waits for nobody."""

from __future__ import annotations

from pathlib import Path

from commonplace.index.sealed_files import writer_lock
from commonplace.library import Library
from commonplace.model import Draft
from opening import library_settings


def test_a_search_after_embedding_takes_no_lock(tmp_path: Path) -> None:
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, settings=settings) as library:
        library.put(Draft("note", "tea", body="Oolong wants hot water."))
        library.search("oolong", mode="lexical")
        library.embed()
        folder = library.embedding.folder / "lexical"
    with Library.open(tmp_path, settings=settings) as library, writer_lock(folder, timeout=0):
        assert library.search("oolong", mode="lexical").hits
        assert library.lexical.position() == library.store.last_change()


def test_what_is_written_after_quiet_changes_is_found(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put(Draft("note", "tea", body="Oolong wants hot water."))
        library.search("oolong", mode="lexical")
        library.embed()
        library.search("oolong", mode="lexical")
        library.put(Draft("note", "cake", body="Sponge wants eggs."))
        library.embed()
        assert [hit.uri for hit in library.search("sponge", mode="lexical").hits] == ["notes://cake"]
        assert [hit.uri for hit in library.search("oolong", mode="lexical").hits] == ["notes://tea"]
        assert library.lexical.position() == library.store.last_change()


def test_an_index_that_lacks_only_vectors_is_level_before_anybody_searches(tmp_path: Path) -> None:
    settings = library_settings(tmp_path)
    with Library.open(tmp_path, settings=settings) as library:
        library.put(Draft("note", "tea", body="Oolong wants hot water."))
        library.search("oolong", mode="lexical")
        library.embed()
    with Library.open(tmp_path, settings=settings) as library:
        status = library.status()
        assert status.indexed == status.changes == library.store.last_change()
        library.put(Draft("note", "cake", body="Sponge wants eggs."))
        status = library.status()
        assert status.indexed < status.changes
