"""Syncing archives: real .tar.gz files, well made and hostile ones, from the disk and over HTTP."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from package_world import World, counts, manifest, sha256, special, tarball, web_server, write

from commonplace.kinds.documents.packages.pack import pack, save

FILES = {"manifest.json": manifest(), "tea.md": "# Tea\n\nOolong.\n", "deep/more.md": "# More\n\nMatcha.\n"}


def test_the_manifest_lies_at_the_root_or_one_folder_down_and_ids_start_there(world: World) -> None:
    flat = tarball(world.folder / "flat.tar.gz", FILES)
    assert counts(world.sync(flat)) == (2, 0, 0, 0)
    assert sorted(world.bodies(flat)) == ["deep/more.md", "tea.md"]
    inside = tarball(world.folder / "inside.tgz", {f"./guide-1.0/{name}": text for name, text in FILES.items()})
    world.sync(inside)
    assert sorted(world.bodies(inside)) == ["deep/more.md", "tea.md"]
    bare = tarball(world.folder / "bare-2.tgz", {"guide/tea.md": "# Tea\n"})
    world.sync(bare)
    assert list(world.bodies(bare)) == ["guide/tea.md"]
    assert world.collection(bare)["name"] == "bare-2"


def test_an_archive_that_is_the_same_to_the_byte_is_not_read_again(world: World) -> None:
    archive = tarball(world.folder / "guide.tgz", {**FILES, "blank.md": " ", "broken.md": b"\0"})
    first = world.sync(archive)
    second = world.sync(archive)
    assert counts(second) == (0, 0, 0, 2)
    assert (second.skipped, second.failed) == (first.skipped, first.failed)
    assert world.collection(archive)["archive"] == sha256(archive.read_bytes())
    tarball(archive, {**FILES, "tea.md": "# Tea\n\nSencha.\n"})
    assert counts(world.sync(archive)) == (0, 1, 0, 1)
    assert counts(world.sync(archive, force=True)) == (0, 0, 0, 0)


def test_a_file_that_failed_is_tried_again_though_the_archive_is_the_same(world: World) -> None:
    archive = tarball(world.folder / "guide.tgz", {**FILES, "large.md": b"word\n" * 400_000})
    done = world.sync(archive, settings={"package_file_mb": 1})
    assert [name for name, _ in done.failed] == ["large.md"]
    assert "raise package_file_mb" in dict(done.failed)["large.md"]
    again = world.sync(archive)
    assert (counts(again), again.failed) == ((1, 0, 0, 2), [])


HOSTILE = {
    "up": special("../evil.md", tarfile.REGTYPE),
    "up inside": special("a/../../evil.md", tarfile.REGTYPE),
    "absolute": special("/etc/evil.md", tarfile.REGTYPE),
    "drive": special("C:/evil.md", tarfile.REGTYPE),
    "symbolic link": special("evil.md", tarfile.SYMTYPE, "../../etc/passwd"),
    "absolute link": special("evil.md", tarfile.SYMTYPE, "/etc/passwd"),
    "link out of a folder": special("a/evil.md", tarfile.SYMTYPE, "../../x.md"),
    "hard link": special("evil.md", tarfile.LNKTYPE, "../x.md"),
    "character device": special("evil.md", tarfile.CHRTYPE),
    "block device": special("evil.md", tarfile.BLKTYPE),
    "pipe": special("evil.md", tarfile.FIFOTYPE),
    "folder": special("../evil", tarfile.DIRTYPE),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_member_that_is_not_allowed_refuses_the_whole_archive_by_name(world: World, kind: str) -> None:
    archive = tarball(world.folder / "guide.tgz", FILES)
    world.sync(archive)
    before = sorted(path for path in world.folder.rglob("*") if "home" not in path.parts)
    tarball(archive, {**FILES, "tea.md": "# Changed\n"}, HOSTILE[kind])
    done = world.sync(archive)
    assert done.error is not None
    assert repr(HOSTILE[kind].name) in done.error
    assert done.error.endswith("Nothing of it was taken.")
    assert (counts(done), done.total) == ((0, 0, 0, 0), 2)
    assert world.found("oolong") == ["tea.md"]
    assert sorted(path for path in world.folder.rglob("*") if "home" not in path.parts) == before


def test_links_within_the_root_are_skipped_and_reported(world: World) -> None:
    links = (
        special("same.md", tarfile.SYMTYPE, "tea.md"),
        special("deep/up.md", tarfile.SYMTYPE, "../tea.md"),
        special("hard.md", tarfile.LNKTYPE, "tea.md"),
        special("here", tarfile.SYMTYPE, "."),
    )
    done = world.sync(tarball(world.folder / "guide.tgz", FILES, *links))
    assert done.error is None
    assert [name for name, _ in done.skipped] == ["deep/up.md", "hard.md", "same.md"]
    assert done.added == 2


def test_the_limits_hold_and_name_their_setting(world: World) -> None:
    many = tarball(world.folder / "many.tgz", {f"{number}.md": "x" for number in range(30)})
    done = world.sync(many, settings={"package_members": 20})
    assert done.error is not None
    assert "more than 20 members" in done.error
    assert "package_members" in done.error
    large = tarball(world.folder / "large.tgz", {"a.md": "# A\n", "b.md": b"word\n" * 400_000})
    one = world.sync(large, settings={"package_file_mb": 1})
    assert ([name for name, _ in one.failed], one.added) == (["b.md"], 1)
    bomb = tarball(world.folder / "bomb.tgz", {f"{number}.bin": b"\0" * 1_000_000 for number in range(4)})
    assert bomb.stat().st_size < 20_000
    done = world.sync(bomb, settings={"package_total_mb": 2})
    assert done.error is not None
    assert "package_total_mb" in done.error


@pytest.mark.parametrize("claimed", [1 << 20, 1 << 33, 8_000_000_000_000])
def test_a_header_that_claims_more_than_there_is_is_bounded(world: World, claimed: int) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, claimed
    path = world.folder / "claims.tgz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096))
    done = world.sync(path)
    assert done.error is not None
    assert done.error.startswith(str(path))


def test_a_size_below_zero_is_refused_and_any_time_is_taken(world: World) -> None:
    header = tarfile.TarInfo("a.md")
    header.size = -1024
    path = world.folder / "below.tgz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096))
    assert world.sync(path).error is not None
    late = tarfile.TarInfo("a.md")
    late.pax_headers = {"mtime": "1e40"}
    late.size = 2
    with tarfile.open(world.folder / "late.tgz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(late, io.BytesIO(b"# "))
    done = world.sync(world.folder / "late.tgz")
    assert (done.error, done.added) == (None, 1)


@pytest.mark.parametrize(
    "content", [b"", b"no gzip at all", gzip.compress(b"no tar at all", mtime=0), b"\x1f\x8b\x08\x00"]
)
def test_what_is_no_archive_is_one_sentence(world: World, content: bytes) -> None:
    path = world.folder / "broken.tgz"
    path.write_bytes(content)
    done = world.sync(path)
    assert done.error is not None
    assert "is no .tar.gz that can be read" in done.error


def test_an_archive_cut_short_leaves_the_last_version(world: World) -> None:
    archive = tarball(world.folder / "guide.tgz", FILES)
    world.sync(archive)
    noise = bytes(range(256)) * 200
    data = tarball(world.folder / "new.tgz", {**FILES, "tea.md": "# New\n", "z.bin": noise}).read_bytes()
    for cut in (20, len(data) // 2, len(data) - 9):
        archive.write_bytes(data[:cut])
        assert world.sync(archive).error is not None
        assert world.found("oolong") == ["tea.md"]


def test_the_last_of_two_members_of_a_name_counts(world: World) -> None:
    path = world.folder / "twice.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for text in (b"# First\n", b"# Last\n"):
            member = tarfile.TarInfo("a.md")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    world.sync(path)
    assert world.bodies(path) == {"a.md": "# Last\n"}


def test_an_archive_names_no_file_outside_itself(world: World) -> None:
    entries = [
        {"url": "file:///etc/passwd", "id": "passwd"},
        {"url": "git+https://example.org/x", "id": "clone"},
        "../x.md",
        "tea.md",
    ]
    archive = tarball(world.folder / "guide.tgz", {**FILES, "manifest.json": manifest(sources={"files": entries})})
    done = world.sync(archive)
    assert [name for name, _ in done.failed] == ["../x.md", "clone", "passwd"]
    assert "not file:." in dict(done.failed)["passwd"]
    assert list(world.bodies(archive)) == ["tea.md"]


def test_an_archive_over_http_is_asked_for_again_only_if_it_is_new(world: World) -> None:
    with web_server() as server:
        server.pages["/guide.tgz"] = tarball(world.folder / "guide.tgz", FILES).read_bytes()
        url = server.url("/guide.tgz")
        assert counts(world.sync(url)) == (2, 0, 0, 0)
        assert counts(world.sync(url)) == (0, 0, 0, 2)
        assert "If-None-Match" in server.asked[-1][1]
        server.pages["/guide.tgz"] = tarball(world.folder / "guide.tgz", {"manifest.json": manifest()}).read_bytes()
        assert counts(world.sync(url)) == (0, 0, 2, 0)


def test_packing_gives_the_same_bytes_and_what_is_packed_syncs_to_the_same_documents(
    world: World, tmp_path: Path
) -> None:
    files = {**FILES, "manifest.json": manifest(name="@team/guide", metadata={"b": 1, "a": [2]}), "blank.md": "\n"}
    guide = write(world.folder / "guide", files)
    settings = world.library.settings
    first = pack(guide, tmp_path / "one.tar.gz", settings)
    copy = write(world.folder / "elsewhere" / "copy", dict(reversed(files.items())))
    (copy / "tea.md").chmod(0o755)
    assert pack(copy, None, settings).data == first.data
    assert str(pack(copy, None, settings).file) == "team-guide-1.0.0.tar.gz"
    assert first.skipped == (("blank.md", "The file has nothing but white space."),)
    save(first, force=False)
    with tarfile.open(first.file) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == ["deep/more.md", "manifest.json", "tea.md"]
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {(0, 0, 0, "", "", 0o644)}
    world.sync(first.file)
    world.sync(guide)
    assert world.bodies(first.file) == world.bodies(guide)
    assert world.collection(first.file)["metadata"] == {"a": [2], "b": 1}
