"""Folders are followed by the servers of a library: one of them at a time, whichever door it has, until it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from filelock import FileLock, Timeout
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.locks import WATCH_LOCK
from commonplace.library import Library, restore
from commonplace.server import background as watching
from commonplace.server.background import Watching
from commonplace.server.libraries import Libraries
from commonplace.space import space_folder
from kit.forked import forked, forked_server
from opening import library_settings
from serving import environment_of, process

PATIENCE_S = 60.0
QUIET_S = 3.0
"""How long nothing is to happen: longer than a server needs to begin to watch and to find a change."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    """A folder of notes that the home's library has read."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n", "utf-8")
    with Library.open(home, settings=library_settings(home)) as library:
        library.add_folder(root)
    return root


def until(so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # the bound of a wait for another process, not a guess at its speed


def documents(home: Path, name: str = "notes") -> set[str]:
    """The paths a library knows, seen by nobody but the store."""
    with Library.open(home, settings=library_settings(home)) as library:
        return set(library.store.drawer(CollectionFiles).versions(name))


def is_watched(home: Path, space: str = "default") -> bool:
    lock = FileLock(space_folder(home, space) / WATCH_LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def with_agent(home: Path, talk: Callable[[Client], Awaitable[None]], *options: str) -> None:
    server = StdioServerParameters(**forked_server("mcp", *options), env=environment_of(home))

    async def main() -> None:
        with anyio.fail_after(2 * PATIENCE_S):
            async with Client(stdio_client(server)) as client:
                await talk(client)

    anyio.run(main)


async def found(client: Client, query: str) -> list[str]:
    answer = await client.call_tool("search", {"query": query, "mode": "lexical"})
    assert not answer.is_error, answer.content
    content: Any = answer.structured_content
    return [hit["uri"] for hit in content["results"]]


# each door


def test_a_note_written_while_an_agent_talks_is_found_changed_and_gone(home: Path, root: Path) -> None:
    async def talk(client: Client) -> None:
        async def is_found(query: str) -> bool:
            return bool(await found(client, query))

        assert not await is_found("quetzal")
        (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        while not await is_found("quetzal"):
            await anyio.sleep(0.05)  # between two looks, within the time the agent has
        (root / "bird.md").write_text("# Bird\n\nA hoopoe, on second thought.\n", "utf-8")
        while not await is_found("hoopoe"):
            await anyio.sleep(0.05)
        assert not await is_found("quetzal")
        (root / "bird.md").unlink()
        while await is_found("hoopoe"):
            await anyio.sleep(0.05)

    with_agent(home, talk)


def test_a_folder_that_is_added_while_an_agent_talks_is_followed_from_then_on(home: Path, tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()

    async def talk(client: Client) -> None:
        assert not await found(client, "quetzal")
        with Library.open(home, settings=library_settings(home)) as library:
            library.add_folder(tmp_path / "late")
        (tmp_path / "late" / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        while not await found(client, "quetzal"):
            await anyio.sleep(0.05)

    with_agent(home, talk)


def test_a_new_note_has_its_vectors_where_documents_have_theirs(home: Path, root: Path) -> None:
    with Library.open(home, settings=library_settings(home)) as library:
        library.embed()
    with process({**environment_of(home), "COMMONPLACE_BACKGROUND": "false"}):
        (root / "bird.md").write_text("# Bird\n\nA quetzal sat on the fence.\n", "utf-8")
        until(lambda: "bird.md" in documents(home))

        def pending() -> int:
            with Library.open(home, settings=library_settings(home)) as library:
                return library.embedding.coverage().pending

        until(lambda: pending() == 0)


def test_documents_that_nobody_has_had_embedded_get_no_vectors_by_being_watched(home: Path, root: Path) -> None:
    with process(environment_of(home)):
        (root / "bird.md").write_text("# Bird\n\nA quetzal sat on the fence.\n", "utf-8")
        until(lambda: "bird.md" in documents(home))
    with Library.open(home, settings=library_settings(home)) as library:
        assert library.embedding.chosen is None


def test_a_server_that_nobody_asks_anything_watches(home: Path, root: Path) -> None:
    with process(environment_of(home)):
        (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        until(lambda: "bird.md" in documents(home))


def test_a_note_is_found_over_http(home: Path, root: Path) -> None:
    with process(environment_of(home)) as server, httpx2.Client(timeout=PATIENCE_S) as client:

        def hits() -> Any:
            address = server.address.replace("/mcp", "/api/v1/tools/search")
            return client.post(address, json={"query": "quetzal", "mode": "lexical"}).json()["results"]

        assert hits() == []
        (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        until(hits)


@pytest.mark.parametrize("way", ["option", "setting"])
def test_watching_can_be_switched_off(home: Path, root: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(client: Client) -> None:
        (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        with anyio.move_on_after(QUIET_S):
            while not await found(client, "quetzal"):
                await anyio.sleep(0.2)
        assert not await found(client, "quetzal")
        assert not is_watched(home)

    if way == "setting":
        monkeypatch.setenv("COMMONPLACE_WATCH", "false")
    with_agent(home, talk, *(["--no-watch"] if way == "option" else []))


# one at a time


@contextmanager
def waiting_server(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`commonplace mcp` whose client has said hello and nothing more."""
    command = forked("mcp")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment_of(home), stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        server.stdin.write(f"{json.dumps(hello)}\n".encode())
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline()
        try:
            yield server
        finally:
            server.kill()


def test_another_server_takes_over_from_one_that_was_killed(home: Path, root: Path) -> None:
    with waiting_server(home) as first:
        until(lambda: is_watched(home))
        with waiting_server(home) as second:
            (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
            until(lambda: "bird.md" in documents(home))
            first.kill()
            first.wait(PATIENCE_S)
            (root / "fish.md").write_text("# Fish\n\nA coelacanth.\n", "utf-8")
            until(lambda: "fish.md" in documents(home))
            assert second.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None], ids=["terminated", "interrupted", "left"])
def test_watching_keeps_no_server_from_ending(home: Path, root: Path, number: signal.Signals | None) -> None:
    with waiting_server(home) as server:
        until(lambda: is_watched(home))
        if number is None:
            assert server.stdin is not None
            server.stdin.close()
        else:
            server.send_signal(number)
        assert server.wait(PATIENCE_S) == 0
        assert server.stderr is not None
        assert server.stderr.read() == b""
    assert not is_watched(home)


def test_a_server_starts_without_what_the_watching_loads() -> None:
    looked = (
        "import sys; from commonplace.server import mcp, service; "
        "print({'watchfiles', 'filelock', 'commonplace.kinds.documents.folders.library_folders'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# spaces


@pytest.fixture
def libraries(home: Path) -> Iterator[Libraries]:
    opened = Libraries(library_settings(home))
    yield opened
    opened.close()


@pytest.fixture
def watcher(libraries: Libraries, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    monkeypatch.setattr(watching, "SETTLE_S", 0.0)
    monkeypatch.setattr(watching, "MOST_SPACES", 2)
    found = Watching(libraries)
    yield found
    found.close()


def filled(libraries: Libraries, tmp_path: Path, space: str) -> Path:
    root = tmp_path / f"{space}-notes"
    root.mkdir()
    (root / "a.md").write_text(f"# {space}\n", "utf-8")
    with libraries.borrow(space) as library:
        library.add_folder(root, "notes")
    return root


def paths(libraries: Libraries, space: str) -> set[str]:
    with libraries.borrow(space) as library:
        return set(library.store.drawer(CollectionFiles).versions("notes"))


def test_the_spaces_used_last_are_watched_and_no_more_than_some(
    libraries: Libraries, watcher: Watching, home: Path, tmp_path: Path
) -> None:
    roots = {space: filled(libraries, tmp_path, space) for space in ("anna", "ben", "carl")}
    for space in roots:
        watcher.visit(space)
    until(lambda: [is_watched(home, space) for space in roots] == [False, True, True])
    for space in ("ben", "carl"):
        (roots[space] / "b.md").write_text("# More\n", "utf-8")
        until(lambda space=space: "b.md" in paths(libraries, space))  # type: ignore[misc]
    watcher.visit("ben")
    (roots["anna"] / "b.md").write_text("# More\n", "utf-8")
    watcher.visit("anna")
    until(lambda: "b.md" in paths(libraries, "anna"))
    until(lambda: not is_watched(home, "carl"))
    assert is_watched(home, "ben")


def test_a_folder_that_goes_and_comes_is_followed_again(
    libraries: Libraries, watcher: Watching, tmp_path: Path
) -> None:
    root = filled(libraries, tmp_path, "anna")
    watcher.visit("anna")
    (root / "b.md").write_text("# More\n", "utf-8")
    until(lambda: "b.md" in paths(libraries, "anna"))
    root.rename(tmp_path / "away")
    (tmp_path / "away" / "c.md").write_text("# Much more\n", "utf-8")
    (tmp_path / "away").rename(root)
    until(lambda: "c.md" in paths(libraries, "anna"))
    (root / "a.md").unlink()
    until(lambda: "a.md" not in paths(libraries, "anna"))


def test_a_home_that_is_taken_away_is_not_made_again_and_followed_when_it_is_back(
    libraries: Libraries, watcher: Watching, home: Path, tmp_path: Path
) -> None:
    root = filled(libraries, tmp_path, "anna")
    watcher.visit("anna")
    (root / "b.md").write_text("# More\n", "utf-8")
    until(lambda: "b.md" in paths(libraries, "anna"))
    home.rename(tmp_path / "away")
    for number in range(30):
        (root / f"{number}.md").write_text("# Page\n", "utf-8")
        time.sleep(0.05)  # over several turns of the watcher
    assert not list(home.rglob("*.db"))  # an index that was just being written may be

    def put_back() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        with suppress(OSError):
            (tmp_path / "away").rename(home)
        return (home / "spaces" / "anna" / "library.db").exists()

    until(put_back)
    until(lambda: "29.md" in paths(libraries, "anna"))


def test_a_library_that_is_given_up_is_closed(libraries: Libraries, watcher: Watching, tmp_path: Path) -> None:
    filled(libraries, tmp_path, "anna")
    watcher.visit("anna")
    until(lambda: is_watched(libraries._settings.home, "anna"))
    watcher.close()
    libraries.close()
    assert libraries.peek("anna") is None


def test_a_library_that_was_restored_is_watched_as_it_is_now(
    libraries: Libraries, watcher: Watching, home: Path, tmp_path: Path
) -> None:
    root = filled(libraries, tmp_path, "anna")
    with libraries.borrow("anna") as library:
        library.backup(tmp_path / "backup")
    watcher.visit("anna")
    for name in ("b.md", "c.md", "d.md"):  # the first may still come from the look that makes sure of the beginning
        (root / name).write_text("# More\n", "utf-8")
        until(lambda name=name: name in paths(libraries, "anna"))  # type: ignore[misc]
    restore(tmp_path / "backup", home, "anna", library_settings(home))
    until(lambda: paths(libraries, "anna") == {"a.md", "b.md", "c.md", "d.md"})
    with libraries.borrow("anna") as library:
        assert {hit.item.key for hit in library.search("more").hits} == {"b.md", "c.md", "d.md"}


def test_a_folder_that_is_just_being_added_is_left_to_who_adds_it(
    libraries: Libraries, watcher: Watching, home: Path, tmp_path: Path
) -> None:
    root = filled(libraries, tmp_path, "anna")
    watcher.visit("anna")
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "c.md").write_text("# Late\n", "utf-8")
    with libraries.borrow("anna") as library:
        library.folders.add(tmp_path / "late")
        (root / "b.md").write_text("# More\n", "utf-8")
        until(lambda: "b.md" in paths(libraries, "anna"))
        assert library.folders.update("late").added == 1
        (tmp_path / "late" / "d.md").write_text("# Later\n", "utf-8")
        until(lambda: "d.md" in library.store.drawer(CollectionFiles).versions("late"))


def test_a_folder_that_was_read_before_looks_were_noted_is_followed(
    libraries: Libraries, watcher: Watching, home: Path, tmp_path: Path
) -> None:
    root = filled(libraries, tmp_path, "anna")
    shutil.rmtree(home / "spaces" / "anna" / "looks")
    watcher.visit("anna")
    (root / "b.md").write_text("# More\n", "utf-8")
    until(lambda: "b.md" in paths(libraries, "anna"))


def test_whatever_goes_wrong_does_not_end_it(
    libraries: Libraries,
    watcher: Watching,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = filled(libraries, tmp_path, "anna")
    monkeypatch.setattr(watching, "AGAIN_S", 0.05)
    with libraries.borrow("anna") as library, monkeypatch.context() as patch:

        def breaks(*arguments: object, **more: object) -> bool:
            raise RuntimeError("the roof is leaking")

        patch.setattr(library.folders, "watch", breaks)
        watcher.visit("anna")
        until(lambda: "the roof is leaking" in caplog.text)
    (root / "b.md").write_text("# More\n", "utf-8")
    until(lambda: "b.md" in paths(libraries, "anna"))


def test_a_folder_of_another_machine_is_left_alone_where_servers_share_a_database(tmp_path: Path) -> None:
    """Its path may be another folder here: none of its documents is to go for that."""
    from opening import space_of
    from postgres_server import LIBRARY_CONNECTIONS, postgres

    space, shared = space_of(tmp_path), {"store": postgres().app, "store_connections": LIBRARY_CONNECTIONS}
    here, there = tmp_path / "here", tmp_path / "there"
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("# A\n", "utf-8")
    with Library.open(here, space, library_settings(here, **shared)) as library:
        library.add_folder(root, "notes")
    mine = tmp_path / "mine"
    mine.mkdir()
    elsewhere = Libraries(library_settings(there, **shared))
    with elsewhere.borrow(space) as library:
        library.add_folder(mine, "mine")
    (root / "a.md").unlink()
    (mine / "b.md").write_text("# B\n", "utf-8")
    watcher = Watching(elsewhere)
    try:
        watcher.visit(space)
        with elsewhere.borrow(space) as library:
            until(lambda: "b.md" in library.store.drawer(CollectionFiles).versions("mine"))
            (mine / "c.md").write_text("# C\n", "utf-8")
            until(lambda: "c.md" in library.store.drawer(CollectionFiles).versions("mine"))
            assert set(library.store.drawer(CollectionFiles).versions("notes")) == {"a.md"}
            library.folders.update("notes")  # somebody here says that it is the same folder
            (root / "d.md").write_text("# D\n", "utf-8")
            until(lambda: "d.md" in library.store.drawer(CollectionFiles).versions("notes"))
    finally:
        watcher.close()
        elsewhere.close()


def test_the_children_of_a_server_do_not_hold_its_lock(home: Path, root: Path) -> None:
    opened = Libraries(library_settings(home))
    watcher = Watching(opened)
    watcher.visit("default")
    try:
        until(lambda: is_watched(home))
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            watcher.close()
            assert not is_watched(home)
        finally:
            child.communicate(os.linesep.encode())
    finally:
        watcher.close()
        opened.close()


# what is said of it


def test_status_says_when_a_folder_was_read_and_that_it_is_level_only_when_it_is(home: Path, root: Path) -> None:
    def printed() -> str:
        command = forked("status")
        return subprocess.run(command, env=environment_of(home), capture_output=True, text=True, check=True).stdout

    async def talk(client: Client) -> None:
        async def said() -> Any:
            answer = await client.call_tool("status", {})
            return answer.structured_content

        await found(client, "tea")
        first = await said()
        assert (first["level"], first["folders"]["notes"]["level"]) == (True, True)
        assert f"    {root}, read " in printed()
        assert ", level\n" in printed()
        (root / "bird.md").write_text("# Bird\n\nA quetzal.\n", "utf-8")
        behind = await said()
        assert (behind["level"], behind["folders"]["notes"]["level"]) == (False, False)
        assert behind["folders"]["notes"]["looked_at"] == first["folders"]["notes"]["looked_at"]
        assert " and changed since: `commonplace update notes` brings it level\n" in printed()
        with Library.open(home, settings=library_settings(home)) as library:
            library.folders.update("notes")
            assert library.search("quetzal").hits
        await found(client, "quetzal")
        again = await said()
        assert (again["level"], again["folders"]["notes"]["level"]) == (True, True)
        assert again["folders"]["notes"]["looked_at"] >= behind["folders"]["notes"]["looked_at"]
        root.rename(root.with_name("away"))
        away = await said()
        assert away["level"] is False
        assert away["folders"]["notes"]["trouble"].startswith("The folder of collection notes cannot be read")
        assert "cannot be read" in printed()

    with_agent(home, talk, "--no-watch")


def test_status_over_http_says_that_it_is_level_again_once_the_watcher_has_read_a_change(
    home: Path, root: Path
) -> None:
    with process(environment_of(home)) as server, httpx2.Client(timeout=PATIENCE_S) as client:
        rest = server.address.replace("/mcp", "/api/v1/tools/")

        def said() -> Any:
            client.post(f"{rest}search", json={"query": "tea"})  # who searches brings the index level
            return client.post(f"{rest}status", json={}).json()

        first = said()["folders"]["notes"]["looked_at"]
        until(lambda: said()["level"] and said()["folders"]["notes"]["looked_at"] > first)
