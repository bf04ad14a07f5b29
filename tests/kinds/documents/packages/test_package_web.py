"""Manifests and documents over HTTP, from a real server on loopback: what is fetched, and what never is."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from package_world import Answer, Served, World, counts, manifest, moved, sha256, tarball, web_server, write

from commonplace.kinds.documents.packages.fetch import is_public

PAGES = {"/docs/tea.md": b"# Tea\n\nOolong.\n", "/docs/sub/more.md": b"# More\n\nMatcha.\n"}


def listing(*entries: object, **more: object) -> bytes:
    return manifest(sources={"files": list(entries)}, **more).encode()


def put(server: Served, *entries: object, **more: object) -> str:
    server.pages |= PAGES
    server.pages["/docs/manifest.json"] = listing(*entries, **more)
    return server.url("/docs/manifest.json")


def test_entries_resolve_against_the_manifest_and_have_the_ids_of_their_paths(world: World) -> None:
    with web_server() as server:
        url = put(server, "tea.md", {"path": "sub/more.md", "id": "more"}, {"url": server.url("/docs/tea.md")})
        assert counts(world.sync(url)) == (3, 0, 0, 0)
        assert sorted(world.bodies(url)) == [server.url("/docs/tea.md"), "more", "tea.md"]
        server.pages["/docs/sub/more.md"] = b"# More\n\nSencha.\n"
        asked = len(server.asked)
        assert counts(world.sync(url)) == (0, 1, 0, 2)
        conditional = [path for path, headers in server.asked[asked:] if "If-None-Match" in headers]
        assert sorted(conditional) == ["/docs/sub/more.md", "/docs/tea.md", "/docs/tea.md"]


def test_a_server_without_validators_is_compared_by_content(world: World) -> None:
    with web_server() as server:
        server.tagged = False
        url = put(server, "tea.md")
        world.sync(url)
        assert counts(world.sync(url)) == (0, 0, 0, 1)


def test_what_a_server_said_of_one_address_is_never_asked_of_another(world: World) -> None:
    def stands(body: bytes) -> Callable[[Mapping[str, str]], Answer]:
        """A page whose tag counts its versions, as it does on many servers: every first version has the same."""
        return lambda headers: (304 if headers.get("If-None-Match") == '"1"' else 200, {"ETag": '"1"'}, body)

    with web_server() as server:
        server.pages |= {"/old/tea.md": stands(b"# Tea\n\nOolong.\n"), "/new/tea.md": stands(b"# Tea\n\nSencha.\n")}
        url = put(server, "tea.md", {"url": server.url("/old/tea.md"), "id": "by address"}, baseUrl="/old/")
        assert counts(world.sync(url)) == (2, 0, 0, 0)
        assert counts(world.sync(url)) == (0, 0, 0, 2)
        put(server, "tea.md", {"url": server.url("/new/tea.md"), "id": "by address"}, baseUrl="/new/")
        assert counts(world.sync(url)) == (0, 2, 0, 0)
        assert set(world.bodies(url).values()) == {"# Tea\n\nSencha.\n"}
        assert counts(world.sync(url)) == (0, 0, 0, 2)


def test_nor_of_the_one_a_redirect_leads_to_instead(world: World) -> None:
    def stands(body: bytes) -> Callable[[Mapping[str, str]], Answer]:
        """A page that has not changed since a day that is the same for all of them."""
        day = "Mon, 01 Jan 2024 00:00:00 GMT"
        return lambda headers: (304 if "If-Modified-Since" in headers else 200, {"Last-Modified": day}, body)

    old, new = (
        tarball(world.folder / "1.tgz", {"b.md": b"# Oolong\n"}),
        tarball(world.folder / "2.tgz", {"a.md": b"# Sencha\n"}),
    )
    with web_server() as server:
        url, archive = put(server, "latest.md"), server.url("/docs/latest.tgz")
        server.pages |= {"/1.md": stands(b"# Oolong\n"), "/2.md": stands(b"# Sencha\n")}
        server.pages |= {"/1.tgz": stands(old.read_bytes()), "/2.tgz": stands(new.read_bytes())}
        server.pages |= {"/docs/latest.md": moved("/1.md"), "/docs/latest.tgz": moved("/1.tgz")}
        assert (counts(world.sync(url)), counts(world.sync(archive))) == ((1, 0, 0, 0), (1, 0, 0, 0))
        asked = len(server.asked)
        assert (counts(world.sync(url)), counts(world.sync(archive))) == ((0, 0, 0, 1), (0, 0, 0, 1))
        conditional = [path for path, headers in server.asked[asked:] if "If-Modified-Since" in headers]
        assert conditional == ["/1.md", "/1.tgz"]
        server.pages |= {"/docs/latest.md": moved("/2.md"), "/docs/latest.tgz": moved("/2.tgz")}
        assert (counts(world.sync(url)), counts(world.sync(archive))) == ((0, 1, 0, 0), (1, 0, 1, 0))
        assert list(world.bodies(url).values()) == ["# Sencha\n"]


def test_a_base_url_moves_the_entries_and_globs_are_refused(world: World) -> None:
    with web_server() as server:
        server.pages["/files/a b.md"] = b""
        server.pages["/files/a%20b.md"] = b"# Blank in its name\n"
        url = put(server, "a b.md", baseUrl="/files")
        assert world.sync(url).added == 1
        put(server, baseUrl="file:///etc/")
        done = world.sync(url)
        assert done.error is not None
        assert "baseUrl is no http or https address" in done.error
        server.pages["/docs/manifest.json"] = manifest().encode()
        done = world.sync(url)
        assert done.error is not None
        assert "a web server cannot be listed" in done.error
        assert world.found("blank") == ["a b.md"]


def test_a_remote_manifest_names_no_local_file_and_no_other_scheme(world: World) -> None:
    secret = world.folder / "secret.md"
    secret.write_text("# Secret\n", "utf-8")
    with web_server() as server:
        url = put(
            server,
            {"url": secret.as_uri(), "id": "file"},
            {"url": "ftp://example.org/x.md", "id": "ftp"},
            {"url": "git+https://example.org/x", "id": "git"},
            {"url": "//", "id": "nothing"},
            str(secret),
            "../../secret.md",
            {"url": server.url("/docs/leads/to/file"), "id": "redirected"},
            {"url": server.url("/docs/loop"), "id": "loop"},
            "tea.md",
        )
        server.pages["/docs/leads/to/file"] = moved(secret.as_uri())
        server.pages["/docs/loop"] = moved("/docs/loop")
        done = world.sync(url)
        told = dict(done.failed)
        assert sorted(told) == sorted(
            ["file", "ftp", "git", "nothing", str(secret), "../../secret.md", "redirected", "loop"]
        )
        assert "not file:." in told["file"]
        assert "is no http or https address" in told["redirected"]
        assert "redirects more than 5 times" in told["loop"]
        assert list(world.bodies(url)) == ["tea.md"]


def test_a_private_host_is_reached_only_when_the_users_own_source_is_there(world: World) -> None:
    with web_server() as server:
        elsewhere = f"http://localhost:{server.port}/docs/tea.md"
        url = put(
            server,
            {"url": elsewhere, "id": "loopback"},
            {"url": "http://169.254.169.254/latest", "id": "link-local"},
            {"url": "http://10.0.0.1/x.md", "id": "private"},
            {"url": "http://[::ffff:127.0.0.1]/x.md", "id": "mapped"},
            {"url": server.url("/docs/moved"), "id": "moved"},
            "tea.md",
        )
        server.pages["/docs/moved"] = moved(elsewhere)
        done = world.sync(url)
        told = dict(done.failed)
        assert sorted(told) == ["link-local", "loopback", "mapped", "moved", "private"]
        assert all("private, loopback or link-local host" in sentence for sentence in told.values())
        assert list(world.bodies(url)) == ["tea.md"]
        folder = write(world.folder / "own", {"manifest.json": listing({"url": server.url("/docs/tea.md")})})
        asked = len(server.asked)
        assert len(world.sync(folder).failed) == 1
        archive = tarball(world.folder / "own.tgz", {"manifest.json": listing({"url": elsewhere, "id": "x"})})
        assert len(world.sync(archive).failed) == 1
        assert len(server.asked) == asked


def test_a_redirect_of_the_source_itself_is_followed_on_its_own_host_only(world: World) -> None:
    with web_server() as server:
        put(server, "tea.md")
        server.pages["/old.json"] = moved("/docs/manifest.json", 301)
        assert world.sync(server.url("/old.json")).added == 1
        server.pages["/away.json"] = moved(f"http://localhost:{server.port}/docs/manifest.json")
        done = world.sync(server.url("/away.json"))
        assert done.error is not None
        assert "private, loopback or link-local host" in done.error


def test_credentials_are_sent_to_their_own_host_and_never_shown_or_kept(world: World) -> None:
    with web_server() as server:
        put(server, "tea.md", "gone.md")
        url = server.url("/docs/manifest.json", "me:s3cret@")
        done = world.sync(url)
        assert server.asked[0][1]["Authorization"] == "Basic bWU6czNjcmV0"
        assert {headers.get("Authorization") for _, headers in server.asked} == {"Basic bWU6czNjcmV0"}
        assert [name for name, _ in done.failed] == ["gone.md"]
        assert "s3cret" not in json.dumps([done.record(), dict(world.collection(url))])
        assert done.collection_id == f"pkg:{server.url('/docs/manifest.json')}"
        missing = world.sync(server.url("/nowhere.json", "me:s3cret@"))
        assert missing.error is not None
        assert "404" in missing.error
        assert "s3cret" not in missing.error
    down = world.sync(url)
    assert down.error is not None
    assert "could not be read" in down.error
    assert "s3cret" not in down.error
    assert b"s3cret" not in (world.library.folder / "library.db").read_bytes()
    assert world.found("oolong") == ["tea.md"]


def test_a_hash_is_checked_and_sizes_are_bounded(world: World) -> None:
    with web_server() as server:
        url = put(server, {"path": "tea.md", "hash": sha256(PAGES["/docs/tea.md"])}, "sub/more.md", "large.md")
        server.pages["/docs/large.md"] = b"word\n" * 300_000
        done = world.sync(url, settings={"package_file_mb": 1})
        assert [name for name, _ in done.failed] == ["large.md"]
        assert dict(done.failed)["large.md"].endswith("which are the most. Split it, or raise package_file_mb.")
        assert done.added == 2
        put(server, {"path": "tea.md", "hash": "0" * 64}, "sub/more.md")
        done = world.sync(url)
        assert ([name for name, _ in done.failed], done.total) == (["tea.md"], 2)
        assert world.found("oolong") == ["tea.md"]


def test_a_body_cut_short_is_a_failure(world: World) -> None:
    with web_server() as server:
        url = put(server, "tea.md")
        server.pages["/docs/tea.md"] = lambda headers: (200, {"Content-Length": "999"}, b"# Tea\n")
        assert [name for name, _ in world.sync(url).failed] == ["tea.md"]


def test_a_server_that_only_trickles_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.kinds.documents.packages.fetch.TIMEOUT_S", 0.5)
    left = threading.Event()

    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not left.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=(listener,))
        thread.start()
        try:
            done = world.sync(f"http://127.0.0.1:{listener.getsockname()[1]}/x.tgz")
        finally:
            left.set()
            thread.join(20)
    assert done.error is not None
    assert "answers too slowly" in done.error


def test_an_address_may_hold_letters_of_any_script(world: World) -> None:
    with web_server() as server:
        url = put(server, {"url": server.url("/docs/茶 a.md"), "id": "tea"}, "茶 b.md")
        server.pages |= {f"/docs/%E8%8C%B6%20{name}.md": b"# Tea\n" for name in "ab"}
        assert counts(world.sync(url)) == (2, 0, 0, 0)


@pytest.mark.parametrize("status", [403, 500])
def test_a_document_that_is_refused_keeps_its_last_version(world: World, status: int) -> None:
    with web_server() as server:
        url = put(server, "tea.md")
        world.sync(url)
        server.pages["/docs/tea.md"] = lambda headers: (status, {}, b"")
        done = world.sync(url)
        assert f"HTTP status {status}" in dict(done.failed)["tea.md"]
        assert world.found("oolong") == ["tea.md"]


def test_a_server_that_says_not_modified_without_having_been_asked_has_said_nothing(world: World) -> None:
    with web_server() as server:
        url = put(server, "tea.md", "sub/more.md")
        server.pages["/docs/sub/more.md"] = lambda headers: (304, {}, b"")
        assert "HTTP status 304" in dict(world.sync(url).failed)["sub/more.md"]
        for status in (500, 304):  # what failed is asked for anew, whatever was known of it
            server.pages["/docs/tea.md"] = lambda headers, status=status: (status, {}, b"")  # type: ignore[misc]
            done = world.sync(url)
            assert (done.removed, done.skipped) == (0, [])
            assert f"HTTP status {status}" in dict(done.failed)["tea.md"]
        assert world.found("oolong") == ["tea.md"]


def test_what_comes_packed_unasked_is_unpacked_or_refused_and_never_kept_as_it_came(world: World) -> None:
    def packed(data: bytes, how: str) -> Callable[[Mapping[str, str]], Answer]:
        return lambda headers: (200, {"Content-Encoding": how}, data)

    whole = gzip.compress(b"# Tea\n") + gzip.compress(b"\nOolong.\n")  # a file may be packed in parts
    archive = tarball(world.folder / "docs.tgz", {"a.md": b"# Tea\n"})
    with web_server() as server:
        url = put(server, "tea.md", "cut.md", "not.md", "br.md", "huge.md", "as it is.md")
        server.pages["/docs/manifest.json"] = packed(gzip.compress(bytes(server.pages["/docs/manifest.json"])), "gzip")  # type: ignore[arg-type]
        server.pages |= {
            "/docs/tea.md": packed(whole, "x-gzip"),
            "/docs/cut.md": packed(whole[:-9], "gzip"),
            "/docs/not.md": packed(b"# Not packed\n", "gzip"),
            "/docs/br.md": packed(b"\x0b\x02\x80# Tea\n\x03", "br"),
            "/docs/huge.md": packed(gzip.compress(b"x" * (17 << 20)), "gzip"),
            "/docs/as%20it%20is.md": packed(b"# Plain\n", "identity"),
            "/docs.tgz": packed(archive.read_bytes(), "x-gzip"),
        }
        done = world.sync(url)
        told = dict(done.failed)
        assert sorted(told) == ["br.md", "cut.md", "huge.md", "not.md"]
        assert "packed as br" in told["br.md"]
        assert "more than 16 MiB" in told["huge.md"]
        assert world.bodies(url) == {"tea.md": "# Tea\n\nOolong.\n", "as it is.md": "# Plain\n"}
        assert counts(world.sync(server.url("/docs.tgz"))) == (1, 0, 0, 0)


def test_a_password_may_be_kept_in_netrc(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password s3cret\n", "utf-8")
    (tmp_path / ".netrc").chmod(0o600)
    with web_server() as server:
        world.sync(put(server, "tea.md"))
        assert server.asked[-1][1]["Authorization"] == "Basic bWU6czNjcmV0"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False), ("0.0.0.0", False),
        ("100.64.0.1", False), ("224.0.0.1", False), ("::1", False), ("fe80::1%eth0", False), ("fd00::1", False),
        ("::ffff:10.0.0.1", False), ("2002:7f00:1::", False), ("64:ff9b::7f00:1", False), ("no address", False),
        ("64:ff9b:1::a00:1", False), ("fec0::1", False), ("::127.0.0.1", False),
    ],
)  # fmt: skip
def test_only_addresses_of_the_open_internet_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def test_an_archive_is_fetched_into_the_home_and_not_into_the_system_s_temporary_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(world.folder / "none"))
    with web_server() as server:
        server.pages["/tea.tgz"] = tarball(world.folder / "tea.tgz", {"tea.md": "# Tea\n"}).read_bytes()
        assert counts(world.sync(server.url("/tea.tgz"), dry=True)) == (1, 0, 0, 0)
        assert counts(world.sync(server.url("/tea.tgz"))) == (1, 0, 0, 0)


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_an_archive_that_there_is_no_room_for_is_no_fault_of_the_network(
    world: World, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **given: open("/dev/full", "w+b"))  # noqa: SIM115 - the sync closes it
    with web_server() as server:
        server.pages["/tea.tgz"] = b"x" * size
        done = world.sync(server.url("/tea.tgz"))
    assert "There is no room left on the disk that holds " in (done.error or "")
