"""An update: 1. what is new, changed, moved, emptied or gone; 2. what has not changed is not opened and nothing is
written; 3. trouble with a file or the root loses nothing; 4. one transaction; 5. two processes do the work once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.errors import NotFound
from commonplace.ingest.files.read import READERS, Reader, Skipped, folder_stamp_of, stamp_of
from commonplace.kinds.documents import sync
from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.folders.library_folders import Report
from commonplace.kinds.documents.folders.walk import file_of, read_file
from commonplace.kinds.documents.outlines import Outlines
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text import structure
from commonplace.text.told_language import language_version
from opening import library_settings
from small_disk import mounted
from support.folder_files import WORLD, build, swap_unseen, write
from unprivileged import unprivileged

DOCUMENTS = Filter(kinds=("document",))


def counts(report: Report) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed


def uris(library: Library, text: str) -> list[str]:
    return [hit.uri for hit in library.search(text, mode="lexical").hits]


def test_a_world_of_files_is_indexed_found_and_unchanged_the_next_time(library: Library, world: Path) -> None:
    report = library.add_folder(world)
    assert counts(report) == (len(WORLD), 0, 0, 0)
    assert (report.skipped, report.warnings) == ([], [])
    assert uris(library, "煎茶") == ["docs://notes/%E6%97%A5%E6%9C%AC/%E8%8C%B6.md"]
    assert uris(library, "Fresnel") == ["docs://notes/lighthouse.html"]
    assert uris(library, "заваривать") == [
        "docs://notes/%D1%80%D1%83%D1%81%D1%81%D0%BA%D0%B8%D0%B9/%D1%87%D0%B0%D0%B9.md"
    ]
    assert uris(library, "navigation") == []
    assert library.get("docs://notes/utf16.md").body == "# Sechzehn\n\nZwei Bytes je Zeichen: ж.\n"
    assert counts(library.add_folder(world)) == (0, 0, len(WORLD), 0)
    assert library.doctor() == []


def test_an_update_with_nothing_changed_opens_no_file_and_writes_nothing(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "b.md": b"\0", "c.md": b"   ", "d.ipynb": b"{"})
    library.add_folder(root)
    library.lexical.catch_up()
    swap_unseen(root / "a.md", b"# Two")
    before = _state(library)
    report = library.folders.update("notes")
    assert counts(report) == (0, 0, 1, 0)
    assert report.reasons() == {"BINARY": 1, "DAMAGED": 1, "EMPTY": 1}
    assert _state(library) == before
    assert library.get("docs://notes/a.md").title == "One"
    assert counts(library.folders.update("notes", force=True)) == (0, 1, 0, 0)
    assert library.get("docs://notes/a.md").title == "Two"


def _state(library: Library) -> tuple[object, ...]:
    """Everything a write would change: the log, the rows this connection has written, the index's files."""
    written = library.store._database.reading().total_changes()  # type: ignore[attr-defined]
    index = sorted((path.name, path.stat().st_mtime_ns) for path in library.folder.rglob("lexical/*.json"))
    wal = (library.folder / "library.db-wal").stat().st_size
    return library.store.last_change(), written, index, wal, library.folders.changed_at("notes")


def test_a_file_written_a_moment_before_it_was_read_is_not_trusted(library: Library, root: Path) -> None:
    write(root / "a.md", b"# One", age_s=1)
    library.add_folder(root)
    swap_unseen(root / "a.md", b"# Two")
    assert counts(library.folders.update("notes")) == (0, 1, 0, 0)
    assert library.get("docs://notes/a.md").title == "Two"


def test_a_file_from_the_future_is_read_every_time_and_written_once(library: Library, root: Path) -> None:
    write(root / "a.md", b"# One", age_s=-1000)
    library.add_folder(root)
    before = _state(library)
    assert counts(library.folders.update("notes")) == (0, 0, 1, 0)
    assert _state(library) == before
    swap_unseen(root / "a.md", b"# Two")
    assert counts(library.folders.update("notes")) == (0, 1, 0, 0)


def test_a_touched_file_refreshes_its_record_only(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root)
    changes, changed_at = library.store.last_change(), library.folders.changed_at("notes")
    write(root / "a.md", b"# One", age_s=1800)
    assert counts(library.folders.update("notes")) == (0, 0, 1, 0)
    assert (library.store.last_change(), library.folders.changed_at("notes")) == (changes, changed_at)
    swap_unseen(root / "a.md", b"# Two")
    assert counts(library.folders.update("notes")) == (0, 0, 1, 0)  # the new time is known now


def test_another_inode_with_the_same_time_and_size_is_noticed(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One"})
    library.add_folder(root)
    moment = (root / "a.md").stat().st_mtime_ns
    (root / "b.tmp").write_bytes(b"# Two")
    (root / "b.tmp").replace(root / "a.md")
    os.utime(root / "a.md", ns=(moment, moment))
    assert counts(library.folders.update("notes")) == (0, 1, 0, 0)


def test_changed_emptied_and_vanished_files_show_at_once(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# Apple", "b.md": b"# Banana", "c.md": b"# Cherry", "d.md": b"# Date"})
    library.add_folder(root)
    write(root / "a.md", b"# Apricot")
    write(root / "b.md", b" \n")
    (root / "c.md").unlink()
    report = library.folders.update("notes")
    assert counts(report) == (0, 1, 1, 2)
    assert report.skipped == [("b.md", "EMPTY")]
    assert [uris(library, word) for word in ("apricot", "apple", "banana", "cherry", "date")] == [
        ["docs://notes/a.md"], [], [], [], ["docs://notes/d.md"],
    ]  # fmt: skip
    assert library.get("docs://notes/a.md").version == 2
    write(root / "c.md", b"# Cherry")
    assert library.folders.update("notes").added == 1
    assert library.get("docs://notes/c.md").version == 1
    assert library.doctor() == []


@pytest.mark.parametrize(
    ("old", "new"), [("a/plain.txt", "b/other name.txt"), ("Tea.md", "tea.md"), ("a.md", "x/a.md")]
)
def test_a_moved_file_is_a_removal_and_an_addition_and_keeps_its_vectors(
    library: Library, root: Path, old: str, new: str
) -> None:
    write(root / old, b"Oolong wants water just off the boil.\n" * 200)
    write(root / "stays.md", b"# Stays")
    library.add_folder(root)
    library.embed()
    (root / new).parent.mkdir(exist_ok=True)
    (root / old).rename(root / new)
    if old.lower() == new and (root / old).exists():
        pytest.skip("this file system does not tell cases apart")
    assert counts(library.folders.update("notes")) == (1, 0, 1, 1)
    assert library.embedding.coverage().pending == 0
    assert library.embed() == 0
    assert library.doctor() == []
    assert library.search("brewing", mode="semantic").hits[0].item.key == new


def test_twins_that_move_and_a_copy_leave_no_vector_behind(library: Library, root: Path) -> None:
    build(root, {"a.txt": b"the same words\n", "b.txt": b"the same words\n"})
    library.add_folder(root)
    library.embed()
    (root / "a.txt").rename(root / "c.txt")
    (root / "b.txt").rename(root / "d.txt")
    assert counts(library.folders.update("notes")) == (2, 0, 0, 2)
    assert library.embedding.coverage().pending == 0
    assert library.doctor() == []


def test_a_root_that_disappears_loses_nothing_and_one_that_is_empty_loses_all(library: Library, world: Path) -> None:
    library.add_folder(world)
    world.rename(world.with_name("away"))
    with pytest.raises(
        NotFound, match=r"The folder of collection notes cannot be read: .*\(ENOENT\)\. Its documents stay"
    ):
        library.folders.update("notes")
    assert library.status().items == {"document": len(WORLD)}
    world.write_text("a file now", "utf-8")
    with pytest.raises(NotFound, match="ENOTDIR"):
        library.folders.update("notes")
    world.unlink()
    world.mkdir()
    assert counts(library.folders.update("notes")) == (0, 0, 0, len(WORLD))
    assert library.status().items == {}
    assert library.doctor() == []


def test_a_disk_that_is_not_mounted_loses_nothing_and_an_empty_one_loses_all(library: Library, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as root:
        library.add_folder(build(root, {"a.md": b"# One", "sub/b.md": b"# Two"}))
    assert list(root.iterdir()) == []
    for _ in range(2):
        with pytest.raises(NotFound, match=f"not mounted at {root} any more. Its documents stay as they were"):
            library.folders.update("disk")
    assert library.status().items == {"document": 2}
    root.rmdir()
    with mounted(root, "size=1m"):
        assert counts(library.folders.update("disk")) == (0, 0, 0, 2), "a disk on which there is nothing"
        build(root, {"c.md": b"# Three"})
        library.folders.update("disk")
    build(root, {"c.md": b"# Three", "d.md": b"# Four"})
    assert counts(library.folders.update("disk")) == (1, 0, 1, 0), "files that were brought to the folder itself"
    (root / "c.md").unlink()
    (root / "d.md").unlink()
    assert counts(library.folders.update("disk")) == (0, 0, 0, 2)


def test_a_disk_that_goes_while_its_files_are_read_loses_nothing(library: Library, tmp_path: Path) -> None:
    with ExitStack() as stack:
        root = stack.enter_context(mounted(tmp_path / "disk", "size=1m"))
        library.add_folder(build(root, {"a.md": b"# One", "b.md": b"# Two"}))
        with pytest.raises(NotFound, match="Its documents stay as they were"):
            library.folders.update("disk", force=True, progress=lambda done, total: stack.close())
    assert library.status().items == {"document": 2}


def test_files_that_older_rules_read_get_their_outlines_by_the_new_ones_once(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "api.md", b"# API\n\nTypes.\n\n## Map<K, List<Integer>>\n\nTwo.\n")
    with monkeypatch.context() as older:
        older.setitem(READERS, ".md", Reader("markdown", 1))
        older.setattr(structure, "_word_of", lambda token: "" if token.type == "html_inline" else token.content)
        structure._words.cache_clear()
        library.add_folder(root)
    structure._words.cache_clear()
    (item_id,) = library.store.drawer(Listing).ids_of([("document", "notes", "api.md")])
    before = library.store.drawer(Outlines).find(item_id)
    assert before is not None
    assert [heading.title for heading in before.headings] == ["API", "Map<K, List>"]
    library.folders.update("notes")
    after = library.store.drawer(Outlines).find(item_id)
    assert after is not None
    assert [heading.title for heading in after.headings] == ["API", "Map<K, List<Integer>>"]
    change = library.store.last_change()
    assert counts(library.folders.update("notes")) == (0, 0, 1, 0)
    assert library.store.last_change() == change
    assert library.doctor() == []


def test_files_whose_language_newer_rules_tell_are_read_again_and_stemmed_in_it_once(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "te.md", "Kjelen står på kokeplaten, teen trekker noen minutter før den serveres.".encode())
    write(root / "tea.md", b"The kettle is on the stove, and the tea will be ready for you in a few minutes.")
    with monkeypatch.context() as older:
        older.setattr("commonplace.text.told_language._is_there", lambda: False)
        language_version.cache_clear()
        stamp_of.cache_clear()
        folder_stamp_of.cache_clear()
        library.add_folder(root)
    for cached in (language_version, stamp_of, folder_stamp_of):
        cached.cache_clear()
    ids = library.store.drawer(Listing).ids_of([("document", "notes", "te.md"), ("document", "notes", "tea.md")])
    assert [item.language for item in library.store.indexed(ids)] == ["nl", "en"]
    assert library.search("tea", mode="lexical").hits
    assert "no" not in library.lexical.languages()
    change = library.store.last_change()
    assert counts(library.folders.update("notes")) == (0, 0, 2, 0)
    assert [item.language for item in library.store.indexed(ids)] == ["no", "en"]
    assert library.store.last_change() == change + 1
    assert [item.version for item in library.store.drawer(Items).get(ids)] == [1, 1]
    assert [hit.uri for hit in library.search("minuttene", mode="lexical").hits] == ["docs://notes/te.md"]
    assert "no" in library.lexical.languages()
    assert counts(library.folders.update("notes")) == (0, 0, 2, 0)
    assert library.store.last_change() == change + 1
    assert library.doctor() == []


def test_unreadable_files_and_folders_keep_their_last_version(library: Library, root: Path, tmp_path: Path) -> None:
    build(root, {"a.md": b"# One", "sub/b.md": b"# Two", "c.md": b"# Three"})
    library.add_folder(root)
    write(root / "a.md", b"# Changed")
    (root / "a.md").chmod(0)
    (root / "sub").chmod(0)
    try:
        with unprivileged(tmp_path):
            report = library.folders.update("notes")
    finally:
        (root / "sub").chmod(0o755)
    assert report.skipped == [("a.md", "EACCES"), ("sub/", "EACCES")]
    assert report.removed == 0
    assert library.get("docs://notes/a.md").title == "One"
    assert library.get("docs://notes/sub/b.md").title == "Two"


def test_a_file_that_turns_binary_large_or_into_a_link_outside_goes_and_a_loop_keeps_it(
    library: Library, root: Path, tmp_path: Path
) -> None:
    build(root, {f"{name}.md": b"# Text" for name in ("binary", "large", "link", "loop", "broken")})
    library.add_folder(root)
    write(root / "binary.md", b"\0\1")
    os.truncate(root / "large.md", 17 * 1024 * 1024)
    for name, target in (("link", tmp_path / "secret.md"), ("loop", "loop.md"), ("broken", "nowhere.md")):
        (root / f"{name}.md").unlink()
        (root / f"{name}.md").symlink_to(target)
    (tmp_path / "secret.md").write_text("secret", "utf-8")
    report = library.folders.update("notes")
    assert report.reasons() == {"BINARY": 1, "ELOOP": 1, "ENOENT": 1, "OUTSIDE_COLLECTION": 1, "TOO_LARGE": 1}
    assert report.removed == 4
    assert [item.key for item in library.store.drawer(Listing).scan(DOCUMENTS)] == ["loop.md"]


def test_what_was_left_out_of_a_file_is_told_when_it_is_read(
    library: Library, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = Reader("text", convert=lambda data: (data.decode(), "", "only half of it was read"))
    monkeypatch.setitem(READERS, ".half", half)
    build(root, {"a.half": b"Oolong\n"})
    assert library.add_folder(root, pattern="*.half").warnings == [("a.half", "only half of it was read")]
    assert library.folders.update("notes").warnings == []


def test_invalid_utf8_is_a_warning_each_time(library: Library, root: Path) -> None:
    build(root, {"a.md": b"caf\xc3\xa9 \xe9\n", "b.md": b"fine\n"})
    told = [("a.md", "1 place is no UTF-8 and became U+FFFD")]
    assert library.add_folder(root).warnings == library.folders.update("notes").warnings == told
    assert library.get("docs://notes/a.md").body == "café \ufffd\n"


def test_a_million_lines_are_a_document_like_any_other(library: Library, root: Path) -> None:
    write(root / "long.md", b"line of text\n" * 1_000_000)
    assert counts(library.add_folder(root)) == (1, 0, 0, 0)
    assert library.store.drawer(Chunks).of(library.get("docs://notes/long.md").id)[-1].line_end == 1_000_000


def test_a_file_that_changes_while_it_is_read_is_stored_whole_or_not_at_all(library: Library, root: Path) -> None:
    path, line, done = root / "log.md", b"a line of thirty-two characters\n", threading.Event()
    path.write_bytes(line * 30_000)

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not done.is_set() and file.tell() < 15_000_000:
                file.write(line)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        report = library.add_folder(root)
    finally:
        done.set()
        writer.join()
    if report.skipped:
        assert report.skipped == [("log.md", "CHANGED_WHILE_READ")]
        assert library.store.drawer(Listing).counts() == {"collection": 1}
    else:
        assert len(library.get("docs://notes/log.md").body or "") % len(line) == 0
    library.folders.update("notes")
    assert (library.get("docs://notes/log.md").body or "").encode() == path.read_bytes()


def test_a_folder_that_became_a_link_behind_the_back_of_a_walk_is_not_read_through(root: Path, tmp_path: Path) -> None:
    write(root / "here/a.md", b"inside")
    write(tmp_path / "outside/a.md", b"secret")
    (root / "there").symlink_to(tmp_path / "outside")
    (root / "twice").symlink_to("here")
    (root / "one.md").symlink_to("here/a.md")
    found = file_of("there/a.md", (root / "there/a.md").stat())  # what a walk sees that the swap has overtaken
    with pytest.raises(Skipped, match="OUTSIDE_COLLECTION"):
        read_file(str(root), found)
    for path in ("twice/a.md", "one.md", "here/a.md"):
        assert read_file(str(root), file_of(path, (root / path).stat()))[1] == b"inside"


def test_a_root_that_goes_while_its_files_are_read_loses_nothing(library: Library, root: Path) -> None:
    build(root, {f"{number}.md": b"# Tea %d" % number for number in range(5)})
    library.add_folder(root)
    with pytest.raises(NotFound, match=r"cannot be read: .* Its documents stay as they were\."):
        library.folders.update("notes", force=True, progress=lambda done, total: _moves_away(root))
    assert library.store.drawer(Listing).counts()["document"] == 5
    root.with_name("away").rename(root)
    assert counts(library.folders.update("notes")) == (0, 0, 5, 0)


def _moves_away(root: Path) -> None:
    if root.exists():
        root.rename(root.with_name("away"))


def test_a_root_that_moved_and_left_a_link_keeps_what_its_own_links_lead_to(library: Library, root: Path) -> None:
    write(root / "in/a.md", b"# Tea")
    (root / "b.md").symlink_to("in/a.md")
    library.add_folder(root)
    root.rename(root.with_name("moved"))
    root.symlink_to(root.with_name("moved"))
    report = library.folders.update("notes")
    assert (counts(report), report.skipped) == ((0, 0, 2, 0), [])
    assert [path for _, path in library.folders.locate(root / "in/a.md")] == ["in/a.md"]


@pytest.mark.parametrize("name", ["a.md", "a.org"])
def test_a_heading_of_a_megabyte_is_not_kept_with_every_passage(library: Library, root: Path, name: str) -> None:
    write(root / name, b"%s %s\n\nOolong.\n" % (b"*" if name == "a.org" else b"#", b"tea " * 300_000))
    library.add_folder(root)
    chunks = library.store.drawer(Chunks).of(library.get(f"docs://notes/{name}").id)
    assert len(chunks) > 100
    assert sum(len(heading) for each in chunks for heading in each.headings) <= 4000 * len(chunks)
    assert uris(library, "oolong") == [f"docs://notes/{name}"]


def test_documents_changed_or_removed_by_others_are_put_right(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "b.md": b"# Two"})
    library.add_folder(root)
    library.delete("docs://notes/a.md")
    library.put(Draft("document", "b.md", parent="notes", title="Forged", body="forged", format="markdown"))
    library.put(Draft("document", "c.md", parent="notes", title="Made up", body="made up"))
    assert counts(library.folders.update("notes")) == (1, 1, 0, 1)
    assert [item.title for item in library.store.drawer(Listing).scan(DOCUMENTS)] == ["Two", "One"]


def test_a_document_is_dated_by_its_file(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "odd.md": b"# Odd"})
    os.utime(root / "a.md", (0, 1_700_000_000))
    os.utime(root / "odd.md", ns=(0, -(1 << 62)))
    library.add_folder(root)
    assert library.get("docs://notes/a.md").updated_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert library.get("docs://notes/odd.md").updated_at.year < 1970


def test_a_change_of_pattern_or_ignore_rules_is_followed(library: Library, root: Path) -> None:
    build(root, {"a.md": b"# One", "b.txt": b"Two", "drafts/c.md": b"# Three"})
    library.add_folder(root, pattern="**/*.md")
    library.folders.change("notes", pattern="**/*", ignore=["drafts"])
    assert counts(library.folders.update("notes")) == (1, 0, 1, 1)
    (root / ".commonplaceignore").write_text("*.txt\n", "utf-8")
    assert counts(library.folders.update("notes")) == (0, 0, 1, 1)


def test_a_file_in_two_collections_is_two_documents(library: Library, root: Path) -> None:
    build(root, {"sub/a.md": b"# One"})
    library.add_folder(root)
    library.add_folder(root / "sub")
    assert sorted(uris(library, "one")) == ["docs://notes/sub/a.md", "docs://sub/a.md"]


def test_everything_waits_on_disk_when_it_is_too_much_for_memory(
    library: Library, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "MOST_CHARS", 100)
    assert counts(library.add_folder(world)) == (len(WORLD), 0, 0, 0)
    assert uris(library, "煎茶")
    assert library.doctor() == []
    assert not [path for path in library.folder.iterdir() if path.name.startswith("tmp")]


FILES = st.dictionaries(
    st.sampled_from(["a.md", "b.md", "sub/c.md", "sub/d.txt"]),
    st.sampled_from([b"# One", b"# Two", b"words", b"  ", b"\0", b"caf\xc3\xa9 \xe9"]),
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(FILES, min_size=1, max_size=4))
def test_after_an_update_the_store_holds_what_the_folder_holds(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, bytes]]
) -> None:
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notes")
    with Library.open(home, settings=library_settings(home)) as library:
        for files in states:
            for path in root.rglob("*.*"):
                path.unlink()
            build(root, files)
            library.add_folder(root, "notes")
            found = {item.key: item.body for item in library.store.drawer(Listing).scan(DOCUMENTS, body=True)}
            assert found == {
                path: data.decode("utf-8", "replace")
                for path, data in files.items()
                if data.strip() and b"\0" not in data
            }
            assert set(library.store.drawer(CollectionFiles).records("notes")) == set(files)
        assert library.doctor() == []


# from outside

ADD = (
    "import sys\nfrom pathlib import Path\n"
    "from commonplace.library import Library\nfrom commonplace.settings import Settings\n"
    "home = Path(sys.argv[1])\n"
    "with Library.open(home, settings=Settings(home=home, models=home, model='static')) as library:\n"
    "    print('ready', flush=True)\n    sys.stdin.readline()\n"
    "    report = library.folders.update('notes')\n"
    "    print(report.added, report.unchanged, flush=True)\n"
)


def _process(home: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", ADD, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _many(root: Path, count: int = 400) -> None:
    build(
        root,
        {
            f"{number:04}.md": f"# Page {number}\n\n".encode() + b"some words of prose here. " * 200
            for number in range(count)
        },
    )


def test_two_processes_that_update_one_collection_do_the_work_once(
    library: Library, root: Path, tmp_path: Path
) -> None:
    _many(root)
    library.folders.add(root)
    before = library.store.last_change()
    processes = [_process(tmp_path) for _ in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [process.communicate(timeout=60)[0].split() for process in processes]
    assert sorted(results) == [["0", "400"], ["400", "0"]]
    assert library.store.last_change() - before == 400


def test_a_reader_sees_all_of_an_update_or_nothing(library: Library, root: Path, tmp_path: Path) -> None:
    _many(root)
    library.folders.add(root)
    process = _process(tmp_path)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    seen = set()
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        seen.add(
            (
                library.store.drawer(Listing).counts().get("document", 0),
                len(library.store.drawer(CollectionFiles).records("notes")),
            )
        )
    process.communicate(timeout=60)
    seen.add(
        (
            library.store.drawer(Listing).counts().get("document", 0),
            len(library.store.drawer(CollectionFiles).records("notes")),
        )
    )
    assert {count for count, _ in seen} == {0, 400}


@pytest.mark.parametrize("after_s", [0.05, 0.3, 0.6, 0.9])
def test_a_killed_update_leaves_the_old_state_and_the_next_one_goes_on(
    library: Library, root: Path, tmp_path: Path, after_s: float
) -> None:
    _many(root)
    library.folders.add(root)
    process = _process(tmp_path)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert library.store.drawer(Listing).counts().get("document", 0) in (0, 400)
    report = library.folders.update("notes")
    assert report.added + report.unchanged == 400
    assert library.doctor() == []
