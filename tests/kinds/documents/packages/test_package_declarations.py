"""context.json, canonical ids, and which collections are seen from where."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from package_world import World, manifest, write

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.declarations import declarations, declared, find_project
from commonplace.kinds.documents.packages.package_paths import EntryRefused, inner_path
from commonplace.kinds.documents.packages.package_sync import SyncTarget, sync
from commonplace.kinds.documents.packages.source import read_source
from commonplace.kinds.documents.visible import Visible
from commonplace.library import Library


def declare(folder: Path, **collections: object) -> Path:
    return write(folder, {"context.json": json.dumps({"collections": collections})})


def test_aliases_are_read_in_both_forms_with_their_globs(tmp_path: Path) -> None:
    declare(tmp_path, a="./docs", b={"url": "https://example.org/x.tgz", "glob": ["*.md"], "exclude": ["x.md"]})
    first, second = declarations(tmp_path, "project")
    assert first.source().path == (tmp_path / "docs").resolve()
    assert (second.glob, second.exclude) == (("*.md",), ("x.md",))
    assert declarations(tmp_path / "nowhere", "project") == ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[]", 'is an object with "collections"'),
        ('{"collections": []}', 'is an object with "collections"'),
        ('{"collection": {}}', "collection is not known"),
        ('{"collections": {"a": {"url": "x", "globs": []}}}', "collections.a.globs is not known"),
        ('{"collections": {"a": {"glob": []}}}', "collections.a.url is the source"),
        ('{"collections": {"a": 7}}', "collections.a is a source"),
        ('{"collections": {"a": {"url": "x", "glob": "*.md"}}}', "collections.a.glob is a list of texts"),
        ('{"collections": {"a": {"url": "x", "exclude": ["/x"]}}}', "collections.a.exclude: a pattern"),
        ('{"collections": {"-a": "x"}}', "an alias has 1–64"),
        ('{"collections": {"a b": "x"}}', "an alias has 1–64"),
        ('{"collections": {"a": "x", "a": "y"}}', "'a' twice"),
        ('{"collections": {"a": "ftp://x/y"}}', "collections.a.url: ftp: is no kind of source"),
        ("{", "is no JSON"),
        (b"\xff", "is no JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_the_file_and_the_key(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    write(tmp_path, {"context.json": content})
    with pytest.raises(InvalidInput) as told:
        declarations(tmp_path, "project")
    assert str(tmp_path / "context.json") in str(told.value)
    assert sentence in str(told.value)


def test_the_nearest_context_above_is_the_project(tmp_path: Path) -> None:
    declare(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_project(tmp_path / "a" / "b") == tmp_path.resolve()
    declare(tmp_path / "a")
    assert find_project(tmp_path / "a" / "b") == (tmp_path / "a").resolve()


def test_one_source_has_one_id_however_it_is_written(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"manifest.json": manifest()})
    (tmp_path / "link").symlink_to(folder)
    ways = [
        "docs",
        "./docs/",
        "docs/../docs",
        str(folder),
        folder.as_uri(),
        "link",
        "docs/manifest.json",
        "file:" + str(folder),
    ]
    assert {read_source(way, tmp_path).canonical_id for way in ways} == {f"pkg:{folder.resolve().as_uri()}"}
    web = [
        "HTTPS://Example.ORG:443/a/./b.json",
        "https://me:pw@example.org/a/b.json",
        "https://example.org/x/../a/b.json#part",
    ]
    assert {read_source(way, tmp_path).canonical_id for way in web} == {"pkg:https://example.org/a/b.json"}
    git = ["git+https://Example.org/r.git/", "git+HTTPS://me@example.org:443/r.git"]
    assert {read_source(way, tmp_path).canonical_id for way in git} == {"pkg:git+https://example.org/r.git"}
    assert read_source("git+ssh://git@h/r#v1", tmp_path).canonical_id == "pkg:git+ssh://git@h/r#v1"


def test_the_same_relative_path_in_two_projects_is_two_collections(tmp_path: Path) -> None:
    ids = {read_source("docs", tmp_path / project).canonical_id for project in ("one", "two")}
    assert len(ids) == 2


@settings(deadline=None, max_examples=100)
@example("~nobody-of-this-name/docs")
@given(st.text(max_size=30))
def test_any_text_is_a_source_with_a_stable_id_or_refused(text: str) -> None:
    base = Path("/base")
    try:
        source = read_source(text, base)
    except InvalidInput:
        return
    again = source.canonical_id.removeprefix("pkg:")
    assert read_source(again, base).canonical_id == source.canonical_id


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(["..", ".", "", "a", "b c", "ä", "...", "~"]), max_size=8).map("/".join))
def test_an_inner_path_never_leaves_its_root(path: str) -> None:
    try:
        inner = inner_path(path)
    except EntryRefused:
        real = os.path.normpath("/root/x/" + path)
        assert path.startswith("/") or real == "/root/x" or not real.startswith("/root/x/") or ".." in path
        return
    assert os.path.normpath("/root/x/" + path) == f"/root/x/{inner}"


def test_project_aliases_come_before_global_ones_then_folders_and_the_names_of_manifests_are_told(world: World) -> None:
    home, project = world.library.settings.home, world.folder / "project"
    guide = write(world.folder / "guide", {"manifest.json": manifest(description="Tea."), "a.md": "# A\n"})
    declare(project, zed=str(guide), docs="./own")
    declare(home, docs=str(guide), more="https://example.org/more.tgz")
    registered = write(world.folder / "registered", {"b.md": "# B\n"})
    world.library.add_folder(registered)
    world.sync(guide)
    seen = declared(world.library, project)
    assert [(each.alias, each.scope) for each in seen] == [
        ("docs", "project"), ("zed", "project"), ("more", "global"), ("registered", "global"),
    ]  # fmt: skip
    assert (seen[1].name, seen[1].version, seen[1].description) == ("guide", "1.0.0", "Tea.")
    assert seen[1].key == read_source(str(guide), world.folder).key
    assert (seen[3].key, seen[3].collection_id) == ("registered", f"pkg:{registered.resolve().as_uri()}")
    assert [each.alias for each in declared(world.library, project, with_global=False)] == ["docs", "zed"]
    assert [each.alias for each in declared(world.library, None)] == ["docs", "more", "registered"]


def test_a_hidden_alias_leaves_its_collection_under_its_id(world: World) -> None:
    home, project = world.library.settings.home, world.folder / "project"
    declare(project, docs="./own")
    declare(home, docs="https://example.org/more.tgz")
    own, other = declared(world.library, project)
    assert own.alias == "docs"
    assert other.alias == other.collection_id == "pkg:https://example.org/more.tgz"


def test_an_alias_of_a_registered_folder_stands_for_that_folder(world: World) -> None:
    registered = write(world.folder / "registered", {"b.md": "# B\n"})
    world.library.add_folder(registered)
    declare(world.folder / "project", b=str(registered))
    first, second = declared(world.library, world.folder / "project")
    assert (first.alias, second.alias) == ("b", "registered")
    assert (first.key, first.collection_id) == (second.key, second.collection_id)


def test_another_users_space_has_of_the_declarations_what_was_synced_into_it(world: World) -> None:
    home, project = world.library.settings.home, world.folder / "project"
    guide = write(world.folder / "guide", {"manifest.json": manifest(), "a.md": "# A\n"})
    registered = write(world.folder / "registered", {"b.md": "# B\n"})
    declare(project, docs=str(guide), own="./own", files=str(registered))
    declare(home, more="https://example.org/more.tgz")
    with Library.open(home, "ann", settings=world.library.settings) as ann:
        keeping = SyncTarget(ann.store, ann.folder, ann.settings)
        assert declared(ann, project, theirs=True) == []
        sync(keeping, declarations(project, "project")[0])
        assert [each.alias for each in declared(ann, project, theirs=True)] == ["docs"]
        ann.add_folder(registered)
        assert [each.alias for each in declared(ann, project, theirs=True)] == ["docs", "files", "registered"]
        assert len(declared(ann, project)) == 5
    assert [each.alias for each in declared(world.library, project)] == ["docs", "files", "own", "more"]


def test_a_changed_declaration_and_a_finished_sync_are_noticed_at_the_next_call(world: World) -> None:
    project = world.folder / "project"
    guide = write(world.folder / "guide", {"manifest.json": manifest(), "a.md": "# A\n"})
    assert declared(world.library, project) == []
    declare(project, docs=str(guide))
    (seen,) = declared(world.library, project)
    assert seen.name == ""
    world.sync(guide)
    (seen,) = declared(world.library, project)
    assert seen.name == "guide"
    declare(project, docs=str(guide), more="./x")
    assert [each.alias for each in declared(world.library, project)] == ["docs", "more"]
    (project / "context.json").unlink()
    assert declared(world.library, project) == []


def test_asking_again_costs_next_to_nothing(world: World) -> None:
    project = declare(world.folder / "project", **{f"a{number}": f"./x{number}" for number in range(200)})
    declared(world.library, project)
    began = time.process_time()
    for _ in range(100):
        declared(world.library, project)
    assert (time.process_time() - began) / 100 < 0.002


def test_a_name_is_an_alias_then_an_id_then_a_manifests_name_that_only_one_has(world: World) -> None:
    home, project = world.library.settings.home, world.folder / "project"
    for name in ("one", "two"):
        world.sync(write(world.folder / name, {"manifest.json": manifest(name="Guide"), "a.md": "# A\n"}))
    world.sync(write(world.folder / "three", {"manifest.json": manifest(name="Tea"), "a.md": "# A\n"}))
    declare(project, docs="../one", Guide2="../two")
    declare(home, tea2=str(world.folder / "three"))
    seen = declared(world.library, project)

    def alias(name: str) -> str | None:
        found = Visible.of(seen).get(name)
        return found.label if found else None

    assert [alias(name) for name in ("docs", "DOCS", "guide2", "Tea", "tEA", "Guide", "no")] == [
        "docs", "docs", "Guide2", "tea2", "tea2", None, None,
    ]  # fmt: skip
    assert alias(seen[0].collection_id) == seen[0].alias


def test_packages_are_no_collections_of_folders(world: World) -> None:
    guide = write(world.folder / "guide", {"manifest.json": manifest(), "a.md": "# A\n"})
    world.sync(guide)
    assert world.library.folders.all() == []
    assert world.library.folders.update_all() == {}
