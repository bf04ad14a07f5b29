"""Syncing repositories with the real git: refs, manifests, early skips, and nothing a repository brings is run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from package_world import World, commit, counts, git, manifest, repository

from commonplace.errors import InvalidInput
from commonplace.kinds.documents.packages.source import read_source

FILES = {"manifest.json": manifest(), "tea.md": "# Tea\n\nOolong.\n", "deep/more.md": "# More\n\nMatcha.\n"}


def test_the_head_is_synced_and_an_unchanged_commit_is_skipped(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    first = world.sync(url)
    assert (counts(first), first.commit) == ((2, 0, 0, 0), git(origin, "rev-parse", "HEAD"))
    assert world.bodies(url) == {name: FILES[name] for name in ("tea.md", "deep/more.md")}
    assert counts(world.sync(url)) == (0, 0, 0, 2)
    new = commit(origin, {"tea.md": "# Tea\n\nSencha.\n"})
    second = world.sync(url)
    assert (counts(second), second.commit) == ((0, 1, 0, 1), new)
    assert second.record()["commit"] == new
    assert [path.name for path in (world.library.folder / "clones").iterdir()] == [read_source(url, Path()).key]
    assert world.sync(url, force=True).reindexed == 2


def test_branches_tags_and_commits_are_refs_and_a_manifest_may_lie_anywhere(world: World) -> None:
    origin = repository(world.folder / "origin", {f"docs/{name}": text for name, text in FILES.items()})
    old = git(origin, "rev-parse", "HEAD")
    git(origin, "tag", "-a", "v1", "-m", "one")
    commit(origin, {"docs/tea.md": "# Tea\n\nSencha.\n"})
    git(origin, "branch", "later/work")
    commit(origin, {"docs/tea.md": "# Tea\n\nPu-erh.\n"})
    for ref, word in (
        ("v1", "Oolong"),
        (old, "Oolong"),
        (old[:10], "Oolong"),
        ("later/work", "Sencha"),
        ("main", "Pu-erh"),
    ):
        url = f"git+file://{origin}?manifest=docs/manifest.json#{ref}"
        done = world.sync(url)
        assert done.error is None
        assert word in world.bodies(url)["tea.md"]
        other = f"git+file://{origin}#{ref}?manifest=./docs/manifest.json"
        assert read_source(other, Path()).canonical_id == read_source(url, Path()).canonical_id == done.collection_id
    assert world.sync(f"git+file://{origin}").total == 2
    assert sorted(world.bodies(f"git+file://{origin}")) == ["docs/deep/more.md", "docs/tea.md"]


def test_a_missing_ref_repository_or_manifest_changes_nothing(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    for url, sentence in (
        (f"git+file://{origin}#nowhere", "has no nowhere"),
        (f"git+file://{origin}#{'0' * 40}", ""),
        (f"git+file://{origin}?manifest=docs/other.json", "has no file docs/other.json"),
        (f"git+file://{world.folder}/missing", "git could not read"),
    ):
        done = world.sync(url)
        assert done.error is not None
        assert sentence in done.error
        assert world.bodies(url) == {}


def test_links_submodules_filters_and_hooks_of_a_repository_do_nothing(world: World) -> None:
    touched = world.folder / "touched"
    inner = repository(world.folder / "inner", {"inner.md": "# Inner\n"})
    origin = repository(world.folder / "origin", FILES)
    (origin / "passwd.md").symlink_to("/etc/passwd")
    git(origin, "submodule", "--quiet", "add", f"file://{inner}", "module")
    commit(origin, {".gitattributes": "*.md filter=evil\n"})
    git(origin, "config", "filter.evil.smudge", f"touch {touched}")
    for hook in ("post-checkout", "post-merge", "pre-auto-gc", "reference-transaction", "post-update"):
        path = origin / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {touched}\n", "utf-8")
        path.chmod(0o755)
    done = world.sync(f"git+file://{origin}")
    assert done.error is None
    assert done.skipped == [("passwd.md", "A link in a repository is not followed.")]
    assert sorted(world.bodies(f"git+file://{origin}")) == ["deep/more.md", "tea.md"]
    assert not touched.exists()


def test_the_users_own_configuration_of_git_counts_for_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = repository(world.folder / "origin", FILES)
    touched = world.folder / "touched"
    (world.folder / "hooks").mkdir()
    hook = world.folder / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {touched}\n", "utf-8")
    hook.chmod(0o755)
    config = f'[core]\n\thooksPath = {hook.parent}\n[url "file:///nowhere"]\n\tinsteadOf = {origin}\n'
    (world.folder / ".gitconfig").write_text(config, "utf-8")
    monkeypatch.setenv("HOME", str(world.folder))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.hooksPath={hook.parent}'")
    assert world.sync(f"git+file://{origin}").added == 2
    assert not touched.exists()


@pytest.mark.parametrize(
    "url",
    [
        "git+https://example.org/x;touch y", "git+https://example.org/$(id)", "git+https://example.org/`id`",
        "git+ssh://-oProxyCommand=touch/x", "git+https://example.org/x#--upload-pack=touch", "git+https://x/y#a b",
        "git+https://x/y#a..b", "git+https://x/y#a:b", "git+ext::sh -c touch", "git+http://example.org/x",
        "git+https://x/y?other=1", "git+https://x/y?manifest=../../etc", "git+https://x/y#a#b", "git+-x", "git+https://",
        "-x", "ftp://example.org/x.json", "https://example.org/folder", "",
    ],
)  # fmt: skip
def test_a_source_that_could_be_taken_for_more_than_an_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        read_source(url, Path("/"))


def test_no_git_is_a_sentence(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    origin = repository(world.folder / "origin", FILES)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = world.sync(f"git+file://{origin}")
    assert done.error == "git is not installed, and this source is a repository. Install git."


def test_a_dry_run_leaves_no_clone_behind(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    done = world.sync(f"git+file://{origin}", dry=True)
    assert (counts(done), done.total) == ((2, 0, 0, 0), 2)
    assert not (world.library.folder / "clones").exists()
    assert world.bodies(f"git+file://{origin}") == {}


def test_a_repository_needs_no_temporary_folder_but_the_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = repository(world.folder / "origin", FILES)
    monkeypatch.setattr(tempfile, "tempdir", str(world.folder / "none"))
    assert counts(world.sync(f"git+file://{origin}", dry=True)) == (2, 0, 0, 0)
    assert not list(world.library.folder.glob("clones*"))
    assert counts(world.sync(f"git+file://{origin}")) == (2, 0, 0, 0)


def test_documents_of_one_commit_are_removed_with_the_next(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    world.sync(url)
    git(origin, "rm", "-q", "tea.md")
    commit(origin, {"new.md": "# New\n"})
    assert counts(world.sync(url)) == (1, 0, 1, 1)
    assert world.found("oolong") == []


@pytest.mark.parametrize("left", ["shallow.lock", "refs/commonplace/kept.lock", "HEAD"])
def test_what_a_git_that_was_killed_left_behind_is_no_obstacle(world: World, left: str) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    world.sync(url)
    commit(origin, {"tea.md": "# Tea\n\nSencha.\n"})
    (world.library.folder / "clones" / read_source(url, Path()).key / left).write_text("", "utf-8")
    assert counts(world.sync(url)) == (0, 1, 0, 1)
    assert "Sencha" in world.bodies(url)["tea.md"]


def test_a_damaged_clone_is_made_anew_and_loses_no_document(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    world.sync(url)
    for pack in (world.library.folder / "clones" / read_source(url, Path()).key / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:20] + bytes(60) + pack.read_bytes()[80:])
    world.sync(url, force=True)
    assert len(world.bodies(url)) == 2
    again = world.sync(url, force=True)
    assert (again.error, again.reindexed) == (None, 2)


def test_no_more_is_fetched_than_a_package_may_have(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    world.sync(url)
    commit(origin, {"picture.png": os.urandom(3 << 20), "tea.md": "# Tea\n\nSencha.\n"})
    refused = world.sync(url, settings={"package_total_mb": 2})
    assert refused.error == (
        f"{url} has more than 2 MiB to fetch, which are the most. "
        "Name a branch, tag or whole commit, or raise package_total_mb."
    )
    assert "Oolong" in world.bodies(url)["tea.md"]
    assert not (world.library.folder / "clones" / read_source(url, Path()).key).exists()
    assert counts(world.sync(url)) == (0, 1, 0, 1)


def test_folders_in_folders_without_end_are_refused_and_what_was_there_stays(world: World) -> None:
    origin = repository(world.folder / "origin", FILES)
    url = f"git+file://{origin}"
    world.sync(url)
    kind, place = "100644 blob", git(origin, "rev-parse", "HEAD:tea.md")
    for _ in range(8):  # a hundred million files in two kilobytes
        listed = "".join(f"{kind} {place}\t{number}.md\n" for number in range(10))
        made = subprocess.run(["git", "mktree"], cwd=origin, input=listed, capture_output=True, text=True, check=True)
        kind, place = "040000 tree", made.stdout.strip()
    git(origin, "update-ref", "HEAD", git(origin, "commit-tree", "-m", "many", place))
    assert world.sync(url).error == f"{url} lists more than 128 MiB of files. Nothing was taken."
    assert len(world.bodies(url)) == 2


def test_a_repository_that_counts_in_sha_256_is_read_like_any_other(world: World) -> None:
    origin = world.folder / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main", "--object-format=sha256")
    new = commit(origin, FILES)
    for ref in ("", "#main", f"#{new}", f"#{new[:10]}"):
        done = world.sync(f"git+file://{origin}{ref}")
        assert (done.error, counts(done), done.commit) == (None, (2, 0, 0, 0), new)
