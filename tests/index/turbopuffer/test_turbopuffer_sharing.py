"""turbopuffer shared by several servers on one space, and by several homes.

1. A server that comes to a space takes over what is there: it empties nothing, and sends nothing twice.
2. Who is late overwrites and removes nothing that is newer, and what it leaves behind it removes itself.
3. Homes, and models, keep to namespaces of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commonplace.index.turbopuffer.remote_index import TurbopufferIndex
from commonplace.library import Library, restore
from commonplace.model import Draft
from commonplace.store.embeddings import Embeddings
from opening import library_settings, serving_index, space_of
from postgres_server import LIBRARY_CONNECTIONS, postgres
from support.turbopuffer_followers import Late, second
from support.turbopuffer_server import TurbopufferServer

TEA = Draft("note", "tea", title="About tea", body="Oolong wants water just off the boil.", tags=("hot",))


@pytest.fixture
def server() -> Iterator[TurbopufferServer]:
    with serving_index("turbopuffer") as server:
        assert server is not None
        yield server


@pytest.fixture
def library(server: TurbopufferServer, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "one", settings=library_settings(tmp_path / "one")) as library:
        yield library


def level(library: Library) -> None:
    library.embed()
    library.lexical.catch_up()


def uris(library: Library, query: str, **more: Any) -> list[str]:
    return [hit.uri for hit in library.search(query, **more).hits]


def sent(server: TurbopufferServer) -> list[str]:
    return [row["id"] for logged in server.requests("write") for row in logged.body.get("upsert_rows", ())]


def removed(server: TurbopufferServer) -> list[Any]:
    """All that any request asked to be removed."""
    deletes = [id for logged in server.requests("write") for id in logged.body.get("deletes", ())]
    filters = [logged.body for logged in server.requests("write") if "delete_by_filter" in logged.body]
    return [*deletes, *filters, *server.requests("delete")]


# several servers


def test_servers_that_share_a_space_empty_nothing_and_send_nothing_twice(
    server: TurbopufferServer, tmp_path: Path
) -> None:
    def opened(name: str) -> Library:
        given = {"store": postgres().app, "store_connections": LIBRARY_CONNECTIONS, "turbopuffer_prefix": "shared"}
        return Library.open(tmp_path / name, space_of(tmp_path), library_settings(tmp_path / name, **given))

    with opened("one") as one, opened("two") as two:
        one.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}.") for n in range(20))
        one.embed()
        assert len(uris(one, "oolong", limit=50)) == 20
        server.log.clear()
        before = server.rows()
        assert len(uris(two, "oolong", limit=50)) == 20
        assert (sent(server), removed(server), server.rows()) == ([], [], before)
        two.put(replace(TEA, key="0", body="Espresso."))
        two.delete("notes://1")
        two.embed()
        for each in (two, one, two):
            assert len(uris(each, "oolong", mode="lexical", limit=50)) == 18
            assert uris(each, "espresso", mode="lexical") == ["notes://0"]
            assert each.doctor() == []
        assert sum(map(len, server.rows().values())) == 19
        one.rebuild()
        assert len(uris(two, "oolong", mode="lexical", limit=50)) == 18


def test_a_server_without_its_ledger_compares_instead_of_sending(library: Library, server: TurbopufferServer) -> None:
    library.put_many(replace(TEA, key=str(n), body=f"Oolong number{n}.") for n in range(20))
    level(library)
    before = server.rows()
    for path in library.folder.glob("index-*/turbopuffer-lexical/ledger.db*"):
        path.unlink()
    server.log.clear()
    assert len(uris(library, "oolong", limit=50)) == 20
    assert (sent(server), removed(server), server.rows()) == ([], [], before)


def test_what_an_earlier_state_left_goes_and_what_is_of_a_later_one_stays(
    library: Library, server: TurbopufferServer, tmp_path: Path
) -> None:
    library.put(TEA)
    level(library)
    ((name, found),) = server.rows().items()
    (like,) = found.values()
    old, new = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
    rows = [{**like, "id": old, "version": 1}, {**like, "id": new, "version": 1_000}]
    server.answer("write", name, {"upsert_rows": rows}, {}, stale=False)
    other = second(library, tmp_path / "two")
    assert other.catch_up() == library.store.last_change()
    assert set(server.rows()[name]) == {like["id"], new}
    assert other.check() == []


def test_a_late_server_overwrites_nothing_newer(library: Library, server: TurbopufferServer, tmp_path: Path) -> None:
    library.put(TEA)
    level(library)
    for path in library.folder.glob("index-*/turbopuffer-lexical/ledger.db*"):
        path.unlink()
    server.namespaces.clear()

    def meanwhile() -> None:
        library.put(replace(TEA, tags=("cold",)))
        library.lexical.catch_up()

    late = second(library, tmp_path / "two", Late(meanwhile))
    late.catch_up()
    (found,) = server.rows().values()
    assert [row["tags"] for row in found.values()] == [["cold"]]
    late.catch_up()
    assert [row["tags"] for row in next(iter(server.rows().values())).values()] == [["cold"]]


def test_a_late_server_removes_nothing_newer(library: Library, server: TurbopufferServer, tmp_path: Path) -> None:
    other: TurbopufferIndex | None = None

    def meanwhile() -> None:
        library.put(TEA)
        library.lexical.catch_up()

    library.put(TEA)
    level(library)
    other = second(library, tmp_path / "two", Late(meanwhile))
    other.catch_up()  # takes over, and writes nothing
    library.put(replace(TEA, body="Espresso."))
    other.catch_up()  # removes the tea, which is back before it does
    (found,) = server.rows().values()
    assert any("oolong" in row["content"] for row in found.values())
    other.catch_up()
    library.lexical.catch_up()
    assert uris(library, "oolong", mode="lexical") == ["notes://tea"]
    assert len(next(iter(server.rows().values()))) == 1


def test_what_a_late_server_brings_back_it_removes_itself(
    library: Library, server: TurbopufferServer, tmp_path: Path
) -> None:
    def meanwhile() -> None:
        library.delete("notes://tea")
        library.lexical.catch_up()

    library.put_many([TEA, replace(TEA, key="other", body="Cocoa.")])
    level(library)
    server.namespaces.clear()
    late = second(library, tmp_path / "two", Late(meanwhile))
    late.catch_up()
    late.catch_up()
    assert [row["item"] for row in next(iter(server.rows().values())).values()] == [2]


# whose a namespace is


def test_two_homes_with_one_prefix_keep_apart(server: TurbopufferServer, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("one", "two")]
    for home in homes:
        with Library.open(home, settings=library_settings(home, turbopuffer_prefix="")) as library:
            library.put(replace(TEA, key=home.name))
            library.embed()
            assert uris(library, "oolong") == [f"notes://{home.name}"]
    for home in homes:
        with Library.open(home, settings=library_settings(home, turbopuffer_prefix="")) as library:
            library.rebuild()
            assert uris(library, "oolong") == [f"notes://{home.name}"]
    assert sum(map(len, server.rows().values())) == 2


def test_vectors_of_another_model_are_in_namespaces_of_their_own_until_the_store_forgets_the_model(
    library: Library, server: TurbopufferServer
) -> None:
    library.put(TEA)
    level(library)
    (before,) = server.rows()
    first = library.store.drawer(Embeddings).models()[0]
    other = library.store.drawer(Embeddings).add_model("another", "another", 4)
    index = library.lexical
    assert isinstance(index, TurbopufferIndex)
    index.use("another", 4)
    index.catch_up()
    assert len(server.rows()) == 2
    assert before in server.rows()
    index.use(first.fingerprint, first.dims)
    assert index.catch_up() == library.store.last_change()
    assert len(server.rows()) == 2
    library.store.drawer(Embeddings).drop_model(other.id)
    index.drop_left()
    assert list(server.rows()) == [before]
    assert uris(library, "oolong") == ["notes://tea"]


@pytest.mark.parametrize("later", [0, 40])
def test_a_backup_restored_under_an_open_library_has_namespaces_of_its_own(
    library: Library, server: TurbopufferServer, tmp_path: Path, later: int
) -> None:
    library.put(TEA)
    library.backup(tmp_path / "backup.db")
    library.put_many(replace(TEA, key=f"gone{n}") for n in range(20))
    library.embed()
    assert len(uris(library, "oolong", limit=50)) == 21
    (before,) = server.rows()
    restore(tmp_path / "backup.db", library.settings.home, library.folder.name, library.settings)
    library.put_many(replace(TEA, key=f"new{n}", body="Espresso.") for n in range(later))
    library.embed()
    assert uris(library, "oolong", mode="lexical", limit=50) == ["notes://tea"]
    assert {name: len(rows) for name, rows in server.rows().items() if name != before} == {
        library.lexical.places([1 << 20])[1 << 20][0]: 1 + later
    }
    assert library.doctor() == []
