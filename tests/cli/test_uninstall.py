"""`commonplace uninstall` and `commonplace where`: one leaves as easily as one came.

1. What `install` wrote into a client's file goes again, to the byte where nothing else has changed since.
2. What is not ours, or was changed since, stays; what cannot be edited safely is left alone, in one sentence.
3. `--everything` lists, asks, and keeps a person's own unless they say `--data`.
4. `where` names every file of ours with its size.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli.clients import CLIENTS, config_path
from commonplace.cli.configs import Uneditable, drop, put, read
from commonplace.cli.main import cli
from fresh_user import COMMONPLACE, FreshUser

ENTRY = {"command": "/opt/bin/commonplace", "args": ["mcp"]}
TOML = '# mine\nmodel = "large"  # the best\n\n[mcp_servers.other]\ncommand = "npx" # keep\n\n[tui]\nx = 1\n'
JSON = '{\n    "a": [1, 2],\n    "KEY": {\n        "other": {"command": "npx"}\n    },\n    "z": null\n}\n'
COMMENTED = '// mine\n{\n\t"KEY": {\n\t\t"other": {"command": "npx"}, // keep\n\t}, /* more */\n}\n'


def file_of(client: str, user: FreshUser) -> Path:
    return Path(config_path(CLIENTS[client], "linux", {}, str(user.home)))


def contents(client: str) -> list[bytes | None]:
    """Return what a client's file may hold before: nothing, hardly anything, another server, comments."""
    if CLIENTS[client].format == "toml":
        texts = ["", TOML, TOML.rstrip(), "[mcp_servers]\n", TOML.replace("\n", "\r\n")]
    else:
        texts = ["", "{}", '{"KEY": {}}\n', JSON, JSON.replace("\n", "\r\n"), json.dumps(json.loads(JSON))]
        texts += [COMMENTED, "// nothing yet\n"] if CLIENTS[client].format == "jsonc" else []
    return [
        None,
        *(text.replace("KEY", CLIENTS[client].key).encode() for text in texts),
        b"\xef\xbb\xbf" + texts[1].encode(),
    ]


def all_files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with what it holds."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def here(user: FreshUser, *arguments: str) -> str:
    """Return what the command prints, run in this process: there are many cases, and starting costs the most."""
    unset = {name: None for name in os.environ if name.startswith(("XDG_", "CLAUDE_", "CODEX_"))}
    done = CliRunner().invoke(cli, list(arguments), env={**unset, "HOME": str(user.home)})
    assert done.exit_code == 0, done.output
    return done.output


# 1. To the byte


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstalling_leaves_the_file_as_it_was_before_installing(client: str, user: FreshUser) -> None:
    for number, content in enumerate(contents(client)):
        fresh = FreshUser(user.home / str(number))
        file = file_of(client, fresh)
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            file.write_bytes(content)
        before = all_files(fresh.home)
        here(fresh, "install", client)
        assert all_files(fresh.home) != before
        said = here(fresh, "uninstall", client)
        assert f"Taken out of {CLIENTS[client].title}: commonplace ({file})" in said
        assert all_files(fresh.home) == before, content


def test_an_entry_that_was_changed_and_a_second_one_go_too(user: FreshUser) -> None:
    file = file_of("cursor", user)
    file.parent.mkdir()
    file.write_text(JSON.replace("KEY", "mcpServers"), "utf-8")
    before = all_files(user.home)
    user.run("install", "cursor")
    user.run("install", "cursor", "--allow-writes")
    user.run("install", "cursor", "--profile", "memory", "--name", "memory")
    assert "commonplace, memory" in user.run("uninstall", "cursor").stdout
    assert all_files(user.home) == before


def test_without_a_client_every_client_is_looked_at(user: FreshUser) -> None:
    for client in CLIENTS:
        user.run("install", client)
    said = user.run("uninstall").stdout
    assert all(f"Taken out of {client.title}" in said for client in CLIENTS.values())
    assert "commonplace uninstall --everything" in said
    assert all_files(user.home) == {}
    assert "No client has an entry of Commonplace. Nothing was changed." in user.run("uninstall").stdout


NAMES = st.sampled_from(["other", "a", "commonplace2", "ü"])
SERVERS = st.dictionaries(NAMES, st.just({"command": "npx", "args": ["x"]}), max_size=3)
STYLES = st.sampled_from([None, 2, 4, "\t"])


@given(SERVERS, st.booleans(), STYLES)
def test_any_json_file_is_what_it_was_after_an_entry_came_and_went(servers: Any, others: bool, indent: Any) -> None:
    config = {**({"first": 1} if others else {}), "mcpServers": servers, **({"last": []} if others else {})}
    text = json.dumps(config, indent=indent)
    edited = put(text, "json", "mcpServers", "commonplace", ENTRY)
    assert read(drop(edited, "json", "mcpServers", "commonplace"), "json") == config
    if servers:
        assert drop(edited, "json", "mcpServers", "commonplace") == text


COMMENTS = st.sampled_from(["", " // one\n", " /* two */ ", "\n"])


@given(SERVERS, COMMENTS, COMMENTS, COMMENTS, st.booleans(), st.integers(0, 3))
def test_comments_around_an_entry_stay_when_it_goes(
    servers: Any, first: str, between: str, last: str, trailing: bool, place: int
) -> None:
    members = [f"{first}{json.dumps(name)}: {json.dumps(entry)}{between}" for name, entry in servers.items()]
    members.insert(min(place, len(members)), f'{first}"commonplace": {json.dumps(ENTRY)}{between}')
    text = "{" + '"servers": {' + ",".join(members) + ("," if trailing else "") + last + "}}"
    left = drop(text, "jsonc", "servers", "commonplace")
    assert read(left, "jsonc") == {"servers": servers}
    assert left.count("//") == text.count("//")
    assert left.count("/*") == text.count("/*")


@pytest.mark.parametrize("after", ["", "\n# the rest\n[more]\nx = 1\n"])
def test_a_table_of_toml_goes_with_its_parts_and_comments_around_it_stay(after: str) -> None:
    text = TOML + '\n[mcp_servers.commonplace]\ncommand = "commonplace"\n[mcp_servers.commonplace.env]\nA = "1"\n'
    assert drop(text + after, "toml", "mcp_servers", "commonplace") == TOML + after
    with pytest.raises(Uneditable):
        drop('mcp_servers = {commonplace = {command = "x"}, b = {}}\n', "toml", "mcp_servers", "commonplace")


# 2. What stays


@pytest.mark.parametrize("client", CLIENTS)
def test_what_others_wrote_since_stays(client: str, user: FreshUser) -> None:
    user.run("install", client)
    file, chosen = file_of(client, user), CLIENTS[client]
    text = file.read_text("utf-8")
    file.write_text(put(text, chosen.format, chosen.key, "other", {"command": "npx", "args": []}), "utf-8")
    said = user.run("uninstall", client).stdout
    assert list(read(file.read_text("utf-8"), chosen.format)[chosen.key]) == ["other"]
    copy = Path(re.findall(r"The file with it: (.*)", said)[0])
    assert set(read(copy.read_text("utf-8"), chosen.format)[chosen.key]) == {"commonplace", "other"}


def test_one_entry_of_two_goes_by_its_name(user: FreshUser) -> None:
    user.run("install", "codex")
    user.run("install", "codex", "--name", "books", "--profile", "documents")
    user.run("uninstall", "codex", "--name", "books")
    assert list(tomllib.loads(file_of("codex", user).read_text("utf-8"))["mcp_servers"]) == ["commonplace"]
    assert "Nothing was changed" in user.run("uninstall", "codex", "--name", "books").stdout


def test_another_server_stays_whatever_it_is_called(user: FreshUser) -> None:
    file = file_of("cursor", user)
    file.parent.mkdir()
    text = json.dumps({"mcpServers": {"commonplace": {"command": "npx"}, "mcp": {"url": "http://127.0.0.1:1/mcp"}}})
    file.write_text(text, "utf-8")
    assert "Nothing was changed" in user.run("uninstall", "cursor").stdout
    assert "is another server, and stays" in user.run("uninstall", "cursor", "--name", "commonplace", code=78).stderr
    assert file.read_text("utf-8") == text


@pytest.mark.parametrize("content", [b'{"mcpServers": {', b"\xff\xfe{", b"[]"])
def test_a_file_that_cannot_be_read_is_left_and_named(content: bytes, user: FreshUser) -> None:
    file = file_of("cursor", user)
    file.parent.mkdir()
    file.write_bytes(content)
    assert str(file) in user.run("uninstall", "cursor", code=78).stderr
    assert all_files(user.home) == {".cursor/mcp.json": content}
    assert "Nothing was changed" in user.run("uninstall").stdout


@pytest.mark.parametrize("arguments", [[], ["--everything", "--yes"]])
def test_one_file_that_only_a_person_can_edit_keeps_no_other_from_being_edited(
    arguments: list[str], user: FreshUser
) -> None:
    inline = 'mcp_servers = {commonplace = {command = "commonplace", args = ["mcp"]}, b = {}}\n'
    file_of("codex", user).parent.mkdir()
    file_of("codex", user).write_text(inline, "utf-8")
    user.run("install", "cursor")
    user.run("install", "windsurf")
    said = user.run("uninstall", *arguments, code=78)
    assert f"{file_of('codex', user)} was left as it is" in said.stderr
    assert said.stdout.count("Taken out of") == 2
    assert all_files(user.home) == {".codex/config.toml": inline.encode()}


# 3. Everything


@pytest.fixture
def settled(user: FreshUser) -> FreshUser:
    """A user who has a folder in their library, a client, a qmd of ours and settings."""
    (user.home / "notes").mkdir()
    (user.home / "notes" / "tea.md").write_text("# Tea\n\nOolong wants water just off the boil.\n", "utf-8")
    (user.home / ".local" / "bin").mkdir(parents=True)
    user.environment["PATH"] = f"{user.home}/.local/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
    user.run("add", "notes")
    user.run("search", "oolong")
    user.run("users", "add", "ann")
    user.run("install", "cursor")
    user.run("install", "qmd-command")
    (user.home / ".config" / "commonplace").mkdir(parents=True)
    (user.home / ".config" / "commonplace" / "config.toml").write_text('language = "de"\n', "utf-8")
    return user


DATA = ".local/share/commonplace/"


def test_everything_is_listed_and_nothing_goes_where_nobody_answers(settled: FreshUser) -> None:
    before = all_files(settled.home)
    done = settled.run("uninstall", "--everything", code=2)
    assert "Nobody answered, so nothing was changed. Repeat it with --yes." in done.stderr
    going, _, staying = done.stdout.partition("This is yours and stays")
    assert "Cursor's entry commonplace" in going
    assert f"{settled.home}/.local/bin/qmd" in going
    assert "index" in going
    assert f"{DATA}spaces/default/library.db" in staying
    assert "config.toml" in staying
    assert all_files(settled.home).keys() == before.keys()


@pytest.mark.parametrize(("typed", "code"), [("n\n", 130), ("\n", 130), ("y\n", 0)])
def test_a_person_is_asked(typed: str, code: int, settled: FreshUser) -> None:
    shown = settled.at_terminal(*COMMONPLACE, "uninstall", "--everything", typed=typed, code=code)
    assert "Remove it?" in shown
    assert ("Nothing was changed." in shown) is (code != 0)
    assert (settled.home / ".local/bin/qmd").exists() is (code != 0)
    assert (settled.home / DATA / "spaces/default/library.db").exists()


def test_a_persons_own_stays_and_is_found_again(settled: FreshUser) -> None:
    said = settled.run("uninstall", "--everything", "--yes").stdout
    assert "The program itself: " in said
    listed = [line for line in said.partition("This is yours")[0].splitlines() if line.startswith("  ")]
    assert f"Removed {len(listed)} things." in said
    left = all_files(settled.home).keys() - {"notes/tea.md"}
    assert left == {
        f"{DATA}spaces/default/library.db",
        f"{DATA}accounts.db",
        ".config/commonplace/config.toml",
    }
    assert "notes/tea.md" in settled.run("search", "oolong").stdout
    assert "There is nothing to remove" not in said


def test_with_data_nothing_of_ours_is_left_and_nothing_of_others_goes(settled: FreshUser) -> None:
    (settled.home / DATA / "mine.txt").write_text("not yours", "utf-8")
    said = settled.run("uninstall", "--everything", "--data", "--yes").stdout
    assert "stays" not in said
    assert all_files(settled.home).keys() == {"notes/tea.md", f"{DATA}mine.txt"}
    assert "There is nothing to remove." in settled.run("uninstall", "--everything", "--data", "--yes").stdout


def test_a_users_own_folders_and_what_collections_read_never_go(settled: FreshUser) -> None:
    (settled.home / DATA / "mine.txt").unlink(missing_ok=True)
    settled.run("uninstall", "--everything", "--data", "--yes")
    assert not (settled.home / ".local" / "share" / "commonplace").exists()
    assert not (settled.home / ".config" / "commonplace").exists()
    assert (settled.home / "notes" / "tea.md").exists()


@pytest.mark.parametrize(
    "arguments", [["--data"], ["--yes"], ["--everything", "cursor"], ["--everything", "--name", "x"]]
)
def test_options_that_do_not_go_together_change_nothing(arguments: list[str], settled: FreshUser) -> None:
    before = all_files(settled.home)
    settled.run("uninstall", *arguments, code=2)
    assert all_files(settled.home) == before


# 4. Where


def test_every_file_of_ours_is_below_a_path_that_where_names(settled: FreshUser) -> None:
    rows = json.loads(settled.run("where", "--json").stdout)
    named = [Path(row["path"]) for row in rows]
    for name in all_files(settled.home):
        path = settled.home / name
        assert name == "notes/tea.md" or any(path == each or path.is_relative_to(each) for each in named), name
    by_what = {row["what"]: row for row in rows}
    assert by_what["library"]["bytes"] == (settled.home / DATA / "spaces/default/library.db").stat().st_size
    assert by_what["home"]["bytes"] == sum(len(content) for name, content in all_files(settled.home / DATA).items())
    assert by_what["Cursor's entry"]["names"] == ["commonplace"]


def test_where_is_a_table_for_people_and_makes_nothing(user: FreshUser) -> None:
    lines = user.run("where").stdout.splitlines()
    assert re.fullmatch(
        rf"library +– +{re.escape(str(user.home))}/\.local/share/commonplace/spaces/default/library\.db", lines[1]
    )
    assert all_files(user.home) == {}
    chosen = user.run("--home", "books", "where").stdout
    assert f"{user.home}/books/spaces/default/library.db" in chosen


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/u/.local/pipx/venvs/commonplace-mcp", "`pipx uninstall commonplace-mcp`"),
        ("/u/.local/share/uv/tools/commonplace-mcp", "`uv tool uninstall commonplace-mcp`"),
        ("/u/.cache/uv/archive-v0/Zk3", "`uv cache clean commonplace-mcp`"),
        ("/u/checkout/.venv", f"delete the folder {Path(__file__).parents[2]}"),
    ],
)
def test_how_the_program_goes_follows_from_how_it_came(
    prefix: str, command: str, user: FreshUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", prefix)
    assert f"The program itself: {command}" in here(user, "uninstall", "--everything")


def test_a_client_starts_a_program_of_uvx_by_uvx_whose_cache_may_be_cleared(
    user: FreshUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    (user.home / "uvx").write_text("#!/bin/sh\n", "utf-8")
    (user.home / "uvx").chmod(0o755)
    monkeypatch.setattr("sys.prefix", "/u/.cache/uv/archive-v0/Zk3")
    monkeypatch.setenv("PATH", str(user.home))
    here(user, "install", "cursor", "--allow-writes")
    (entry,) = json.loads(file_of("cursor", user).read_text("utf-8"))["mcpServers"].values()
    assert entry["command"] == str(user.home / "uvx")
    assert entry["args"] == ["--from", "commonplace-mcp", "commonplace", "mcp", "--allow-writes"]
    assert "Taken out of Cursor: commonplace" in here(user, "uninstall")
