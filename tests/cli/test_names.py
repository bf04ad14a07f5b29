"""Names on the command line: of documents, collections and commands; and what every command that lists has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from commonplace.cli.main import cli

VIM = "# Vim\n\nAn editor.\n\n## Motions\n\nWords and lines.\n"


class Line:
    """The command line over a home of its own, without a terminal."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, *arguments: str, code: int = 0, given: str | bytes = "") -> Result:
        done = CliRunner().invoke(cli, ["--home", str(self._home), *arguments], input=given)
        error = done.exception
        status = 0 if error is None else getattr(error, "exit_code", getattr(error, "code", 1))
        assert status == code, (done.output, error)
        return done

    def said(self, *arguments: str) -> str:
        """The sentence that a call fails with."""
        error = CliRunner().invoke(cli, ["--home", str(self._home), *arguments]).exception
        assert error is not None
        return str(error)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setenv("COMMONPLACE_MODEL", "static")
    folder = tmp_path / "Vault" / "Areas"
    folder.mkdir(parents=True)
    (folder / "Vim.md").write_text(VIM, "utf-8")
    (folder.parent / "ops").mkdir()
    for name in ("ops/README.md", "README.md"):
        (folder.parent / name).write_text("# Read me\n\nRun an editor.\n", "utf-8")
    line = Line(tmp_path / "home")
    line("add", str(folder.parent), "--name", "Vault", "--no-embed")
    return line


@pytest.mark.parametrize(
    "name", ["vim", "Vim.md", "Vault/Areas/Vim.md", "vault/areas/vim", "docs://vault/areas/vim.md"]
)
def test_a_document_goes_by_as_much_of_its_path_as_tells_it(line: Line, name: str) -> None:
    assert line("get", name).stdout == VIM
    assert line("get", f"{name}#motions").stdout == "## Motions\n\nWords and lines.\n"
    assert line("get", f"{name}:5").stdout == "## Motions\n\nWords and lines.\n"
    assert line("get", f"{name}:1:3").stdout == "# Vim\n\nAn editor.\n"
    assert line("outline", name).stdout.split() == ["1", "Vim", "5", "Motions"]
    assert line("outline", f"{name}#vim").stdout.split() == ["5", "Motions"]
    assert "README" in line("related", name).stdout


def test_a_miss_and_an_end_of_several_paths_name_what_there_is(line: Line) -> None:
    assert line.said("get", "vmi") == "There is no vmi. Did you mean Vault/Areas/Vim.md?"
    assert line.said("get", "readme") == (
        '"readme" may be any of Vault/README.md, Vault/ops/README.md. Name one of them.'
    )
    assert line("get", "vault/readme").stdout.startswith("# Read me")
    assert line.said("outline", "nothing of the kind") == "There is no nothing of the kind. Find it with a search."


def test_a_path_on_disk_is_taken_to_the_letter(line: Line, tmp_path: Path) -> None:
    assert line("get", f"{tmp_path}/Vault/Areas/Vim.md#motions").stdout == "## Motions\n\nWords and lines.\n"
    assert line("get", f"{tmp_path}/Vault/Areas/Vim.md:5:1").stdout == "## Motions\n"
    said = line.said("get", f"{tmp_path}/Vault/Vim.md")
    assert said.startswith("There is no Vault/Vim.md. Did you mean Vault/Areas/Vim.md")


def test_a_collection_is_searched_whatever_its_case_and_a_miss_names_the_nearest(line: Line) -> None:
    found = json.loads(line("search", "motions", "-c", "vault", "--json").stdout)
    assert [hit["uri"] for hit in found] == ["docs://Vault/Areas/Vim.md"]
    assert line("update", "-c", "vault").stdout.startswith("[1/1] Vault ")
    assert line("collections", "exclude", "vault").stdout == "Vault is searched only when it is named\n"
    near = 'There is no collection called "vaul". Did you mean Vault? `commonplace collections list` names them.'
    for command in (["update", "-c", "vaul"], ["watch", "-c", "vaul"], ["collections", "rename", "vaul", "x"]):
        assert line.said(*command).startswith(near.partition(" `")[0]), command
    assert "Did you mean Vault?" in line.said("collections", "remove", "vault", "--drop"), "as it is spelled alone"
    said = line.said("search", "motions", "-c", "vualt")
    assert said.startswith('There is no collection called "vualt". Did you mean Vault?')


def test_a_note_is_remembered_revised_and_forgotten(line: Line) -> None:
    said = line(
        "remember", "Green", "tea", "at", "eighty.", "-t", "tea", "-t", "drinks", "--key", "green", "-c", "Kitchen"
    )
    assert said.stdout == "Remembered: notes://green\n"
    assert line("get", "notes://green").stdout == "Green tea at eighty.\n"
    found = json.loads(line("search", "eighty", "-t", "drinks", "-c", "Kitchen", "--json").stdout)
    assert [hit["title"] for hit in found] == ["Green tea at eighty."]
    assert "now at version 2" in line("revise", "notes://green", "-", "--title", "Tea", given="At *seventy*.\n").stdout
    assert line("get", "notes://green").stdout == "At *seventy*.\n"
    assert json.loads(line("search", "seventy", "-t", "tea", "--json").stdout)[0]["title"] == "Tea"
    line("revise", "notes://green", "--tag", "")
    assert json.loads(line("search", "seventy", "-t", "tea", "--json").stdout) == []
    assert line("forget", "notes://green", "--dry-run").stdout == "Would forget: notes://green\n"
    assert line.said("forget", "notes://green") == "Nobody answered, so nothing was changed. Repeat it with --yes."
    assert line("get", "notes://green").stdout
    assert line("forget", "notes://green", "--yes").stdout == "Forgotten: notes://green\n"
    assert line.said("get", "notes://green") == "There is no notes://green. Find it with a search."


def test_a_memory_has_a_thread_an_end_metadata_and_what_it_replaces(line: Line) -> None:
    told = json.loads(
        line("remember", "The build is red.", "--kind", "memory", "-c", "ci", "--expires", "2999-01-01",
             "--metadata", '{"project": "tea"}', "--json").stdout
    )  # fmt: skip
    assert told == {"uri": "memory://1", "version": 1, "title": ""}
    line("remember", "The build is green.", "--kind", "memory", "--supersedes", "memory://1")
    line("revise", "memory://1", "--patch", '{"project": null, "team": "b"}', "--version", "1", "--expires", "")
    (entry,) = json.loads(line("call", "fetch", '{"uri": "memory://1"}').stdout)["items"]
    assert (entry["metadata"], entry["version"]) == ({"team": "b"}, 2)
    assert entry["uri"] == "memory://1"
    line("forget", "memory://1", "memory://2", "-y")
    assert "memory" not in json.loads(line("status", "--json").stdout)["items"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["remember"], "Say what to remember, or write - to read it from standard input."),
        (["remember", " "], "text is empty. Give what is to be remembered."),
        (["remember", "x", "--metadata", "[1]"], "--metadata is not a JSON object."),
        (["remember", "x", "--expires", "2999-01-01"], "expires_at goes with kind memory"),
        (["revise", "notes://nothing", "x"], "There is no notes://nothing. Find it with a search."),
        (["revise", "vim", "x"], "Only notes and memories can be revised."),
        (["forget", "notes://nothing", "--yes"], "There is no notes://nothing. Find it with a search."),
    ],
)
def test_what_cannot_be_kept_or_changed_is_one_sentence(line: Line, arguments: list[str], sentence: str) -> None:
    assert sentence in line.said(*arguments)


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_that_lists_or_reports_prints_json(line: Line) -> None:
    reporting = {"list", "ls", "status", "doctor", "where"}
    found = {path: command for path, command in _commands(cli) if path[-1] in reporting}
    assert {("status",), ("doctor",), ("where",), ("models", "list"), ("users", "list"), ("tables", "list")} <= set(
        found
    )
    lacking = [path for path, command in found.items() if not any("--json" in each.opts for each in command.params)]
    assert lacking == []
    for path in (("status",), ("doctor",), ("where",), ("models", "list"), ("collections", "list"), ("tables", "list")):
        assert json.loads(line(*path, "--json").stdout), path


def test_a_misspelt_command_is_answered_with_the_nearest(line: Line) -> None:
    for wrong, right in (("remeber", "remember"), ("forgett", "forget"), ("statsu", "status")):
        assert f"Did you mean {right!r}?" in CliRunner().invoke(cli, [wrong]).output
