"""Syncing a folder: what is a document, what changed, and what a source may not reach."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from package_world import World, counts, manifest, sha256, write

from commonplace.kinds.documents.outlines import Outlines
from commonplace.kinds.documents.packages.package_sync import SyncReport
from commonplace.kinds.documents.packages.source import read_source
from commonplace.model import Filter
from commonplace.store.listing import Listing
from opening import ON_FILES
from unprivileged import unprivileged

GUIDE = {
    "manifest.json": manifest(description="All about tea."),
    "index.md": "# Tea\n\nOolong wants water just off the boil.\n",
    "deep/more.md": "# More\n\nMatcha is whisked.\n",
}


def aged(folder: Path) -> Path:
    """The same files, written long enough ago for their times to be trusted."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, ns=(10**18, 10**18))
    return folder


def test_a_package_is_stored_found_and_a_second_sync_finds_nothing_to_do(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    first = world.sync(guide)
    assert (counts(first), first.total, first.error) == ((2, 0, 0, 0), 2, None)
    assert world.bodies(guide) == {"index.md": GUIDE["index.md"], "deep/more.md": GUIDE["deep/more.md"]}
    assert world.found("whisked") == ["deep/more.md"]
    second = world.sync(guide)
    assert (counts(second), second.total) == ((0, 0, 0, 2), 2)
    fields = world.collection(guide)
    assert (fields["name"], fields["version"], fields["description"]) == ("guide", "1.0.0", "All about tea.")
    assert fields["package"] == f"pkg:{guide.resolve().as_uri()}"


def test_changed_added_and_removed_documents_are_told_by_their_content(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    write(guide, {"index.md": "# Tea\n\nSencha.\n", "new.md": "# New\n"})
    (guide / "deep" / "more.md").unlink()
    assert counts(world.sync(guide)) == (1, 1, 1, 0)
    assert world.found("whisked") == []
    assert world.found("sencha") == ["index.md"]


def test_a_change_that_keeps_size_and_time_is_seen_within_two_seconds_and_a_touched_file_is_no_change(
    world: World,
) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    before = os.stat(guide / "index.md")
    write(guide, {"index.md": GUIDE["index.md"].replace("Oolong", "Sencha")})
    os.utime(guide / "index.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counts(world.sync(guide)) == (0, 1, 0, 1)
    os.utime(guide / "index.md", ns=(10**18, 10**18))
    assert counts(world.sync(guide)) == (0, 0, 0, 2)


def test_a_file_whose_time_is_old_enough_is_not_opened_again(world: World) -> None:
    guide = aged(write(world.folder / "guide", GUIDE))
    world.sync(guide)
    before = os.stat(guide / "index.md")
    with open(guide / "index.md", "r+b") as file:  # in place, so that even the inode stays
        file.write(b"# Ham")
    os.utime(guide / "index.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counts(world.sync(guide)) == (0, 0, 0, 2)
    assert counts(world.sync(guide, force=True)) == (0, 1, 0, 0)


def test_force_reads_everything_again_and_says_so(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    forced = world.sync(guide, force=True)
    assert (counts(forced), forced.reindexed, forced.total) == ((0, 0, 0, 0), 2, 2)
    assert forced.record()["reindexed"] == 2
    assert "reindexed" not in world.sync(guide).record()


def test_a_new_version_and_description_are_stored_without_any_changed_document(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    write(guide, {"manifest.json": manifest(version="2.0.0", description="Still tea.")})
    assert counts(world.sync(guide)) == (0, 0, 0, 2)
    assert (world.collection(guide)["version"], world.collection(guide)["description"]) == ("2.0.0", "Still tea.")


def test_blank_files_are_skipped_replaced_bytes_are_a_warning_and_binary_files_fail(world: World) -> None:
    guide = write(
        world.folder / "guide",
        {
            "blank.md": " \n\t\r\n",
            "broken.md": b"# Caf\xc3\xa9 \xe9\n",
            "latin.md": b"# Caf\xe9\n",
            "marked.md": b"\xef\xbb\xbf# Marked\r\n",
            "wide.md": "# Wide\n".encode("utf-16"),
            "late.md": b"x" * 20_000 + b"\0",
            "token.md": "# A\n\n<|endoftext|> [INST]\n",
        },
    )
    done = world.sync(guide)
    assert done.skipped == [("blank.md", "The file has nothing but white space.")]
    assert done.warnings == [("broken.md", "1 place is no UTF-8 and became U+FFFD.")]
    assert done.failed == [("late.md", "The file is binary: it has NUL bytes.")]
    assert world.bodies(guide) == {
        "broken.md": "# Café \ufffd\n",
        "latin.md": "# Café\n",
        "marked.md": "# Marked\r\n",
        "wide.md": "# Wide\n",
        "token.md": "# A\n\n<|endoftext|> [INST]\n",
    }
    again = world.sync(guide)
    assert (again.skipped, again.warnings, again.failed) == (done.skipped, done.warnings, done.failed)
    assert counts(again) == (0, 0, 0, 5)


def test_a_document_that_fails_keeps_its_last_good_version_and_one_that_is_blank_is_gone(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    write(guide, {"index.md": b"\0\0", "deep/more.md": "\n"})
    done = world.sync(guide)
    assert (counts(done), done.total) == ((0, 0, 1, 0), 1)
    assert [name for name, _ in done.failed] == ["index.md"]
    assert world.found("oolong") == ["index.md"]
    write(guide, {"index.md": GUIDE["index.md"], "deep/more.md": GUIDE["deep/more.md"]})
    healed = world.sync(guide)
    assert (counts(healed), healed.failed) == ((1, 0, 0, 1), [])


@ON_FILES
def test_a_document_of_fifty_megabytes_fails_with_the_bound_and_the_rest_goes_on(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    write(guide, {"index.md": b"word " * 10_000_000})
    done = world.sync(guide)
    ((name, sentence),) = done.failed
    assert name == "index.md"
    assert "47.7 MiB; 16 are the most" in sentence
    assert world.found("oolong") == ["index.md"]
    write(guide, {"index.md": b"word\n" * 300_000})
    assert [name for name, _ in world.sync(guide, settings={"package_file_mb": 1}).failed] == ["index.md"]
    assert counts(world.sync(guide)) == (0, 1, 0, 1)


def test_no_path_or_link_leads_out_of_the_package(world: World) -> None:
    secret = world.folder / "secret.md"
    secret.write_text("# Secret\n", "utf-8")
    entries = ["../secret.md", str(secret), "C:\\x.md", "a/../../secret.md", "nul\0.md", "linked.md", "away/secret.md"]
    entries += ["good.md", "./sub/../good.md", {"url": secret.as_uri(), "id": "by address"}, "https://example.org/x.md"]  # type: ignore[list-item]
    guide = write(
        world.folder / "guide", {"good.md": "# Good\n", "manifest.json": manifest(sources={"files": entries})}
    )
    (guide / "linked.md").symlink_to(secret)
    (guide / "away").symlink_to(world.folder)
    done = world.sync(guide)
    assert world.bodies(guide) == {"good.md": "# Good\n"}
    assert done.added == 1
    told = dict(done.failed)
    assert told["../secret.md"] == told["a/../../secret.md"] == "The path leaves the package."
    assert told[str(secret)] == "The path is absolute. Write it from the package root."
    assert told["C:\\x.md"].startswith("The path begins with a drive letter.")
    assert told["nul\\x00.md"] == "The path holds a NUL byte."
    assert told["linked.md"] == told["away/secret.md"] == "The link leads out of the package."
    assert told["by address"] == "The address leaves the package."
    assert told["https://example.org/x.md"].startswith("This is an address, not a path.")
    assert len(told) == 9


def test_links_inside_the_package_are_read_and_cycles_end(world: World) -> None:
    guide = write(world.folder / "guide", {"a.md": "# A\n", "sub/b.md": "# B\n"})
    (guide / "same.md").symlink_to("a.md")
    (guide / "round.md").symlink_to("round.md")
    (guide / "sub" / "up").symlink_to("..")
    (guide / "folder.md").symlink_to("sub")
    done = world.sync(guide)
    assert sorted(world.bodies(guide)) == ["a.md", "same.md", "sub/b.md"]
    assert done.skipped == [("folder.md", "A link to a folder is not followed.")]
    assert done.failed == [("round.md", "The file cannot be read (ELOOP).")]


def test_a_hash_that_does_not_match_fails_that_entry_alone(world: World) -> None:
    entries = [{"path": "a.md", "hash": sha256(b"# A\n")}, {"path": "b.md", "hash": "0" * 64, "id": "other"}]
    guide = write(
        world.folder / "guide",
        {"a.md": "# A\n", "b.md": "# B\n", "manifest.json": manifest(sources={"files": entries})},
    )
    done = world.sync(guide)
    assert done.failed == [
        ("other", f"The file does not match its hash: its SHA-256 is {sha256(b'# B' + bytes([10]))}.")
    ]
    assert list(world.bodies(guide)) == ["a.md"]
    entries[1] = {"path": "b.md", "hash": sha256(b"# B\n").upper(), "id": "other"}
    write(guide, {"manifest.json": manifest(sources={"files": entries})})
    assert world.sync(guide).added == 1
    entries[0] = {"path": "a.md", "hash": "1" * 64}
    write(guide, {"manifest.json": manifest(sources={"files": entries})})
    broken = world.sync(guide)
    assert ([name for name, _ in broken.failed], broken.total) == (["a.md"], 2)


def test_a_file_that_is_missing_keeps_its_document_however_its_path_is_written(world: World) -> None:
    entries = ["./deep//more.md", {"path": "deep/../index.md", "id": "start"}]
    guide = write(world.folder / "guide", {**GUIDE, "manifest.json": manifest(sources={"files": entries})})
    assert counts(world.sync(guide)) == (2, 0, 0, 0)
    (guide / "deep" / "more.md").unlink()
    (guide / "index.md").unlink()
    done = world.sync(guide)
    assert done.failed == [(name, "There is no such file in the package.") for name in ("deep/more.md", "start")]
    assert (done.removed, done.total) == (0, 2)
    assert world.found("whisked") == ["deep/more.md"]


def test_an_id_that_is_listed_for_two_files_fails_for_both_and_keeps_its_last_version(world: World) -> None:
    write(world.folder / "guide", {**GUIDE, "other.md": "# Other\n\nSencha.\n", "third.md": "# Third\n"})
    guide = world.folder / "guide"

    def sync(*entries: object, **sources: object) -> SyncReport:
        write(guide, {"manifest.json": manifest(sources={"files": list(entries), **sources})})
        return world.sync(guide)

    index = {"path": "index.md", "id": "start"}
    sync(index)
    twice = [("start", "The id is listed twice, for different files: index.md and other.md. Keep one.")]
    for entries in ([index, {"path": "other.md", "id": "start"}], [{"path": "other.md", "id": "start"}, index]):
        done = sync(*entries, "third.md")
        assert (done.failed, done.total) == (twice, 2)
        assert world.bodies(guide)["start"] == GUIDE["index.md"]
    done = sync({"path": "other.md", "id": "third.md"}, glob=["third.md"])
    assert [name for name, _ in done.failed] == ["third.md"]
    missing = sync({"path": "missing.md", "id": "third.md"}, glob=["third.md"])
    assert [name for name, _ in missing.failed] == ["third.md"]
    assert counts(sync("third.md", "./third.md", glob=["*.md"], exclude=["index.md", "other.md"])) == (0, 0, 0, 1)


def test_a_name_of_a_file_is_no_title_to_be_found_by(world: World) -> None:
    files = {"bicycles.txt": "Chains and spokes.\n", "tea.md": "# tea\n\nOolong.\n", "deep/kettles.md": "Steam.\n"}
    notes = write(world.folder / "notes", files)
    world.sync(notes)
    assert world.found("spokes") == ["bicycles.txt"]
    key = read_source(str(notes), world.folder).key
    titles = {
        item.key: item.title
        for item in world.library.store.drawer(Listing).scan(Filter(kinds=("document",), parents=(key,)))
    }
    assert titles == {"bicycles.txt": "", "tea.md": "tea", "deep/kettles.md": ""}


def test_a_file_whose_name_tells_no_format_is_read_as_markdown(world: World) -> None:
    files = {"README": "# Start\n\nHere.\n", "notes.text": "Tea\n===\n", "tool.py": "# no heading\nx = 1\n"}
    package = write(world.folder / "notes", {**files, "manifest.json": manifest(sources={"glob": ["*"]})})
    assert counts(world.sync(package)) == (3, 0, 0, 0)
    assert counts(world.sync(package)) == (0, 0, 0, 3)
    store = world.library.store
    items = store.drawer(Listing).scan(
        Filter(kinds=("document",), parents=(read_source(str(package), world.folder).key,))
    )
    outlines = {item.key: store.drawer(Outlines).find(item.id) for item in items}
    assert {key: kept and kept.title for key, kept in outlines.items()} == {
        "README": "Start",
        "notes.text": "Tea",
        "tool.py": "",
    }


def test_a_folder_without_a_manifest_has_an_implied_one(world: World) -> None:
    notes = write(
        world.folder / "notes",
        {"a.md": "a", "b.txt": "b", "c.py": "c", ".hidden.md": "d", "node_modules/e.md": "e", "build/f.md": "f"},
    )
    world.sync(notes)
    assert sorted(world.bodies(notes)) == ["a.md", "b.txt"]
    assert (world.collection(notes)["name"], world.collection(notes)["version"]) == ("notes", "")
    outcome = world.sync(notes, glob=("**/*.md", "build/*.md", "**/.*.md"), exclude=("a.md",))
    assert sorted(world.bodies(notes)) == [".hidden.md", "build/f.md"]
    assert counts(outcome) == (2, 0, 2, 0)


def test_a_source_that_cannot_be_read_changes_nothing(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    for broken, sentence in (
        ("{", "is no JSON"),
        ('{"name": "x"}', "sources is an object"),
        (manifest(version=""), "version is a text and has to be there"),
        (manifest(sources={}), "sources has neither glob nor files"),
        (manifest(sources={"globs": []}), "sources.globs is not known"),
        (manifest(sources={"glob": ["../*"]}), "a pattern speaks of paths inside the package"),
        (manifest(sources={"files": [{"path": "a", "url": "b"}]}), "sources.files[0] has exactly one of path and url"),
        (manifest(sources={"files": [{"path": "a", "hash": "x"}]}), "sources.files[0].hash is a SHA-256"),
        ('{"name": "a", "name": "b"}', "'name' twice"),
        (manifest(description="\ud800").encode("utf-8", "surrogatepass"), "is no JSON"),
        (json.dumps({"a": 1})[:-1] + "," + "[" * 100_000, "is no JSON"),
    ):
        write(guide, {"manifest.json": broken})
        done = world.sync(guide)
        assert done.error is not None
        assert sentence in done.error
        assert (counts(done), done.total) == ((0, 0, 0, 0), 2)
        assert world.found("oolong") == ["index.md"]
    assert world.collection(guide)["error"]
    (guide / "manifest.json").unlink()
    assert world.sync(guide, glob=("*.md",)).error is None
    assert not world.collection(guide).get("error")
    outcome = world.sync(world.folder / "nowhere")
    assert outcome.error == f"There is no folder {world.folder / 'nowhere'}."


@pytest.mark.parametrize("name", ["manifest.json", "guide.tar.gz"])
def test_a_pipe_in_the_place_of_a_manifest_or_an_archive_is_not_waited_for(world: World, name: str) -> None:
    os.mkfifo(world.folder / name)
    done = world.sync(world.folder / name)
    assert done.error == f"{world.folder / name} cannot be read: it is no regular file."


def test_globs_in_a_declaration_are_refused_beside_a_manifest(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    done = world.sync(guide, glob=("*.md",))
    assert done.error is not None
    assert "Take glob and exclude out of the declaration" in done.error


def test_a_dry_run_reports_and_changes_nothing(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    before = world.library.store.last_change()
    dry = world.sync(guide, dry=True)
    assert (counts(dry), dry.total) == ((2, 0, 0, 0), 2)
    assert world.library.store.last_change() == before
    assert not (world.library.folder / "locks").exists()
    world.sync(guide)
    (guide / "index.md").unlink()
    assert counts(world.sync(guide, dry=True)) == (0, 0, 1, 1)
    assert len(world.bodies(guide)) == 2


def test_a_folder_that_cannot_be_listed_keeps_its_documents(world: World) -> None:
    guide = write(world.folder / "guide", GUIDE)
    world.sync(guide)
    (guide / "deep").chmod(0)
    try:
        with unprivileged(world.folder):
            done = world.sync(guide)
    finally:
        (guide / "deep").chmod(0o755)
    assert (done.failed, done.total, done.removed) == ([("deep/", "The folder cannot be read.")], 2, 0)
