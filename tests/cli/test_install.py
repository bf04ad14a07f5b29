"""`commonplace install`: other programs' files, edited with care.

1. Each client gets an entry in its own file, in its own shape, that starts this very command with the right library.
2. Everything else in the file stays: byte for byte outside the entry, comments included; a copy of it stays beside it.
3. Twice is once. Another server of the same name is never replaced.
4. What cannot be edited safely is left alone, in one sentence.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli.client_files import ClientFile, replace_file
from commonplace.cli.clients import CLIENTS, config_path, is_ours, renewed
from commonplace.cli.configs import InvalidConfig, Uneditable, put, read
from kit.forked import forked

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ENTRY = {"command": "/opt/bin/commonplace", "args": ["mcp"]}
OTHER = {"command": "npx", "args": ["-y", "other"]}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command as a user with a home of their own runs it."""
    unset = ("COMMONPLACE_", "XDG_", "CLAUDE_", "CODEX_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unset)}

    def call(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        environment = {**clean, "HOME": str(tmp_path), **more}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def own_file(client: str, home: Path) -> Path:
    return Path(config_path(CLIENTS[client], sys.platform, {}, str(home)))


def servers(client: str, home: Path) -> dict[str, Any]:
    text = own_file(client, home).read_text("utf-8")
    return dict(read(text, CLIENTS[client].format)[CLIENTS[client].key])


# 1. Each client gets its entry


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_told_once_however_often_it_is_told(client: str, run: Run, tmp_path: Path) -> None:
    assert f"Installed in {CLIENTS[client].title}" in run("install", client).stdout
    written = own_file(client, tmp_path).read_bytes()
    entry = servers(client, tmp_path)["commonplace"]
    assert entry["args"] == ["mcp"]
    assert Path(entry["command"]).is_absolute()
    assert subprocess.run([entry["command"], "--version"], capture_output=True, timeout=60, check=True).stdout
    assert "already installed" in run("install", client).stdout
    assert own_file(client, tmp_path).read_bytes() == written
    assert [path.name for path in own_file(client, tmp_path).parent.iterdir() if path.is_file()] == [
        own_file(client, tmp_path).name
    ]


def test_the_library_the_profile_and_the_right_to_write_are_passed_on(run: Run, tmp_path: Path) -> None:
    run("--home", "library", "--space", "work", "install", "cursor", "--profile", "memory", "--allow-writes")
    given = servers("cursor", tmp_path)["commonplace"]["args"]
    assert given == [
        *("--home", os.path.abspath("library")),
        *("--space", "work"),
        *("mcp", "--profile", "memory", "--allow-writes"),
    ]
    run("install", "windsurf", COMMONPLACE_HOME=str(tmp_path / "elsewhere"))
    assert servers("windsurf", tmp_path)["commonplace"]["args"] == ["--home", str(tmp_path / "elsewhere"), "mcp"]


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("claude-code", {"type": "http", "url": "http://127.0.0.1:8377/mcp"}),
        ("cursor", {"url": "http://127.0.0.1:8377/mcp"}),
        ("vscode", {"type": "http", "url": "http://127.0.0.1:8377/mcp"}),
        ("codex", {"url": "http://127.0.0.1:8377/mcp"}),
        ("windsurf", {"serverUrl": "http://127.0.0.1:8377/mcp"}),
    ],
)
def test_a_running_server_is_named_by_its_address(client: str, entry: Any, run: Run, tmp_path: Path) -> None:
    run("install", client, "--http", "http://127.0.0.1:8377/mcp")
    assert servers(client, tmp_path) == {"commonplace": entry}
    assert "already installed" in run("install", client, "--http", "http://127.0.0.1:8377/mcp").stdout
    run("install", client, "--http", "http://127.0.0.1:8377/mcp", "--profile", "memory", "--name", "memory")
    assert "http://127.0.0.1:8377/mcp/memory" in servers(client, tmp_path)["memory"].values()


@pytest.mark.parametrize("place", ["/mcp/i/front", "/books/mcp", "/mcp/memory"])
def test_an_address_of_any_kind_is_told_once_and_keeps_what_its_user_added(
    place: str, run: Run, tmp_path: Path
) -> None:
    address = f"https://books.example{place}"
    run("install", "cursor", "--http", address)
    file = own_file("cursor", tmp_path)
    file.write_text(
        json.dumps({"mcpServers": {"commonplace": {"url": address, "headers": {"X-API-KEY": "k"}}}}), "utf-8"
    )
    assert "already installed" in run("install", "cursor", "--http", address).stdout
    run("install", "cursor", "--http", "https://books.example/mcp", "--profile", "qmd")
    assert servers("cursor", tmp_path)["commonplace"] == {
        "url": "https://books.example/mcp/qmd",
        "headers": {"X-API-KEY": "k"},
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_printing_writes_nothing_and_prints_what_would_be_written(client: str, run: Run, tmp_path: Path) -> None:
    printed = run("install", client, "--print")
    assert not own_file(client, tmp_path).exists()
    assert str(own_file(client, tmp_path)) in printed.stderr
    run("install", client)
    assert own_file(client, tmp_path).read_text("utf-8") == printed.stdout


@pytest.mark.parametrize(
    ("client", "platform", "environment", "path"),
    [
        ("claude-code", "linux", {}, "/u/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("claude-desktop", "linux", {}, "/u/.config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", {}, "/u/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {}, "/u/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("cursor", "darwin", {}, "/u/.cursor/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "/u/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "/r"}, "/r/Code/User/mcp.json"),
        ("codex", "linux", {}, "/u/.codex/config.toml"),
        ("codex", "linux", {"CODEX_HOME": "/k"}, "/k/config.toml"),
        ("windsurf", "win32", {}, "/u/.codeium/windsurf/mcp_config.json"),
    ],
)
def test_each_platform_keeps_the_file_where_the_client_looks(
    client: str, platform: str, environment: dict[str, str], path: str
) -> None:
    assert config_path(CLIENTS[client], platform, environment, "/u") == path


def test_the_page_about_clients_names_every_file() -> None:
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
    for name, client in CLIENTS.items():
        assert f"`{name}`" in page
        for path in (client.linux, client.macos, client.windows):
            assert f"`{path}`" in page, path


# 2. Everything else stays

VSCODE = """\
// My servers.
{
\t"inputs": [], // asked for once
\t"servers": {
\t\t/* the old one */
\t\t"other": {"command": "npx", "args": ["-y", "other"]}, // keep
\t},
}
"""


def test_comments_tabs_and_trailing_commas_survive(run: Run, tmp_path: Path) -> None:
    file = own_file("vscode", tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(VSCODE, "utf-8")
    run("install", "vscode", "--http", "http://127.0.0.1:8377/mcp")
    edited = file.read_text("utf-8")
    entry = '\n\t\t"commonplace": {\n\t\t\t"type": "http",\n\t\t\t"url": "http://127.0.0.1:8377/mcp"\n\t\t}'
    assert edited.replace(entry, "") == VSCODE
    assert edited.index("// keep") < edited.index("commonplace")
    run("install", "vscode")
    assert file.read_text("utf-8").startswith(edited[: edited.index('"type"')])
    assert servers("vscode", tmp_path)["other"] == OTHER


CODEX = """\
model = "large"  # the best there is

[mcp_servers.commonplace] # mine
command = "/old/place/commonplace"
args = [
  "mcp",
  # writes
  "--allow-writes",
]
startup_timeout_sec = 20 # slow disk

[mcp_servers.commonplace.env]
COMMONPLACE_MODEL = "static"

# the rest
[tui]
notice = '''
[mcp_servers.commonplace]
'''
"""


def test_a_toml_file_keeps_its_comments_its_order_and_what_the_user_added(run: Run, tmp_path: Path) -> None:
    file = own_file("codex", tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(CODEX, "utf-8")
    run("install", "codex")
    edited = file.read_text("utf-8")
    before, after = CODEX.split('command = "', 1)[0], CODEX[CODEX.index("startup_timeout_sec") :]
    assert edited.startswith(before)
    assert edited.endswith(after)
    entry = tomllib.loads(edited)["mcp_servers"]["commonplace"]
    assert entry["args"] == ["mcp"]
    assert (entry["startup_timeout_sec"], entry["env"]) == (20, {"COMMONPLACE_MODEL": "static"})
    run("install", "codex", "--http", "https://elsewhere.example/mcp")
    assert servers("codex", tmp_path)["commonplace"] == {"url": "https://elsewhere.example/mcp"}
    assert "# the rest" in file.read_text("utf-8")


def test_the_copy_is_what_the_file_was_and_the_mode_stays(run: Run, tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    file.write_text('{"secret": 1}', "utf-8")
    file.chmod(0o640)
    said = run("install", "claude-code").stdout
    (copy,) = tmp_path.glob(".claude.json.*.backup")
    assert str(copy) in said
    assert copy.read_text("utf-8") == '{"secret": 1}'
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, copy)} == {0o640}
    assert not list(tmp_path.glob("*.new"))
    run("install", "claude-code", "--allow-writes")
    assert len(list(tmp_path.glob(".claude.json.*.backup*"))) == 2


def test_a_link_stays_a_link_and_a_byte_order_mark_stays(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_bytes(b'\xef\xbb\xbf{\r\n  "mcpServers": {}\r\n}\r\n')
    link = own_file("cursor", tmp_path)
    link.parent.mkdir()
    link.symlink_to(real)
    run("install", "cursor")
    assert link.is_symlink()
    edited = real.read_bytes()
    assert edited.startswith(b'\xef\xbb\xbf{\r\n  "mcpServers": {\r\n    "commonplace": {\r\n')
    assert edited.count(b"\n") == edited.count(b"\r\n")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.dictionaries(NAMES | st.just("commonplace"), VALUES | st.just(ENTRY), max_size=3)
CONFIGS = st.tuples(st.dictionaries(NAMES, VALUES, max_size=3), st.none() | ENTRIES).map(
    lambda parts: parts[0] if parts[1] is None else parts[0] | {"mcpServers": parts[1]}
)


@given(CONFIGS, st.sampled_from([None, 2, 4, "\t"]), st.booleans())
def test_any_json_config_gains_our_entry_and_nothing_else(config: Any, indent: int | str | None, ascii: bool) -> None:
    text = json.dumps(config, indent=indent, ensure_ascii=ascii)
    edited = put(text, "json", "mcpServers", "commonplace", ENTRY)
    expected = config | {"mcpServers": config.get("mcpServers", {}) | {"commonplace": ENTRY}}
    assert json.loads(edited) == expected
    assert list(json.loads(edited)) == list(expected)
    assert put(edited, "json", "mcpServers", "commonplace", ENTRY) == edited


@st.composite
def commented(draw: st.DrawFn) -> tuple[str, Any, list[str]]:
    """A config as people write it: the text, what it says, and the comments in it."""
    comments: list[str] = []

    def gap() -> str:
        kind = draw(st.sampled_from(["", "", " ", "\n  ", "//", "/*"]))
        if kind not in ("//", "/*"):
            return kind
        note = f"note {len(comments)} \"'{{}}[],: //"
        comments.append(note)
        return f"//{note}\n" if kind == "//" else f"/*{note}*/"

    def write(value: Any) -> str:
        if not isinstance(value, dict):
            return json.dumps(value)
        parts = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{write(inner)}{gap()}" for key, inner in value.items()]
        last = "," + gap() if parts and draw(st.booleans()) else gap()  # type: ignore[arg-type]
        return "{" + ",".join(parts) + last + "}"

    config = draw(CONFIGS)
    entries = config.get("mcpServers")
    if isinstance(entries, dict):
        entries.pop("commonplace", None)
    return gap() + write(config) + gap(), config, comments


@given(commented())
def test_any_config_with_comments_keeps_every_one_of_them(given: tuple[str, Any, list[str]]) -> None:
    text, config, comments = given
    assert read(text, "jsonc") == config
    edited = put(text, "jsonc", "mcpServers", "commonplace", ENTRY)
    expected = config | {"mcpServers": config.get("mcpServers", {}) | {"commonplace": ENTRY}}
    assert read(edited, "jsonc") == expected
    assert re.findall(r"note \d+", edited) == re.findall(r"note \d+", text)
    assert len(comments) == len(re.findall(r"note \d+", text))
    assert put(edited, "jsonc", "mcpServers", "commonplace", ENTRY) == edited


TOML_LINES = st.lists(
    st.sampled_from(
        [
            "# a note\n",
            "\n",
            "model = 'x' # y\n",
            "many = [\n  '[a]', # b\n]\n",
            '[mcp_servers.other]\ncommand = "npx"\n',
            "[tui]\r\ntheme = '''\n[mcp_servers.commonplace]\n'''\r\n",
            "[projects.'/a/b']\ntrust = nan\n",
            "[mcp_servers.commonplace]\nargs = []\ncommand = '/x/commonplace' # z\nenv = {A = '1'}\n",
        ]
    ),
    unique=True,
)


@given(TOML_LINES, st.booleans())
def test_any_toml_config_gains_our_entry_and_keeps_every_line(lines: list[str], ended: bool) -> None:
    text = "".join(sorted(lines, key=lambda line: line.startswith("[")))
    text = text if ended else text.rstrip()
    old = tomllib.loads(text).get("mcp_servers", {}).get("commonplace", {})
    entry = renewed(old, ENTRY)
    edited = put(text, "toml", "mcp_servers", "commonplace", entry)
    assert tomllib.loads(edited)["mcp_servers"]["commonplace"] == entry
    kept = [line for line in text.splitlines() if not line.startswith(("args =", "command = '/x"))]
    rest = iter(edited.splitlines())
    assert all(line in rest for line in kept)
    assert put(edited, "toml", "mcp_servers", "commonplace", entry) == edited


# 3. Another server of the same name


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "/usr/bin/commonplace"}, True),
        ({"command": "C:\\Tools\\commonplace.exe", "args": ["mcp"]}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "commonplace", "mcp"]}, True),
        ({"url": "http://127.0.0.1:8377/mcp"}, True),
        ({"serverUrl": "https://books.example/mcp/memory"}, True),
        ({"url": "https://books.example/mcp/i/front"}, True),
        ({"url": "https://example.org/books/mcp"}, True),
        ({"url": "http://[::1/mcp"}, False),
        ({"command": "npx", "args": ["commonplace-book"]}, False),
        ({"command": "not-commonplace"}, False),
        ({"url": "https://books.example/sse"}, False),
        ({"command": 3}, False),
        ("commonplace", False),
    ],
)
def test_an_entry_is_ours_by_its_command_or_its_address(entry: Any, ours: bool) -> None:
    assert is_ours(entry) is ours


def test_a_key_never_follows_to_another_host() -> None:
    old = {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer k"}}
    assert "headers" in renewed(old, {"url": "https://a.example/mcp/memory"})
    assert "headers" not in renewed(old, {"url": "https://b.example/mcp"})


@pytest.mark.parametrize("client", CLIENTS)
def test_somebody_elses_server_is_left_and_another_name_is_offered(client: str, run: Run, tmp_path: Path) -> None:
    file = own_file(client, tmp_path)
    file.parent.mkdir(parents=True, exist_ok=True)
    key = CLIENTS[client].key
    text = f'[{key}.commonplace]\ncommand = "npx"\n'
    text = text if CLIENTS[client].format == "toml" else json.dumps({key: {"commonplace": OTHER}})
    file.write_text(text, "utf-8")
    assert "another server called 'commonplace'" in (said := run("install", client, code=78).stderr)
    assert "--name" in said
    assert file.read_text("utf-8") == text
    run("install", client, "--name", "books")
    assert list(servers(client, tmp_path)) == ["commonplace", "books"]


# 4. What cannot be edited


@pytest.mark.parametrize(
    ("client", "content", "sentence"),
    [
        ("claude-code", b'{"mcpServers": {', "cannot be read"),
        ("claude-code", b'{"a": 1} // no comments here', "cannot be read"),
        ("claude-desktop", b"[]", "does not hold an object"),
        ("cursor", b'{"mcpServers": []}', "mcpServers is not an object there"),
        ("cursor", b"\xff\xfe{", "cannot be read"),
        ("vscode", b'{"servers": {} /* open', "cannot be read"),
        ("vscode", b"[" * 100_000, "cannot be read"),
        ("codex", b"model = ", "cannot be read"),
        ("codex", b"mcp_servers = {other = {command = 'x'}}\n", "By hand, add:\n\n[mcp_servers.commonplace]\n"),
        ("codex", b"[mcp_servers]\ncommonplace.command = 'commonplace'\n", "is not a table of its own there"),
        ("windsurf", b"null", "does not hold an object"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_as_it_is(
    client: str, content: bytes, sentence: str, run: Run, tmp_path: Path
) -> None:
    file = own_file(client, tmp_path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    said = run("install", client, code=78).stderr
    assert sentence in said
    assert str(file) in said
    assert file.read_bytes() == content
    assert [path for path in file.parent.iterdir() if path.is_file()] == [file]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["claude-desktop", "--http", "http://127.0.0.1:8377/mcp"], "takes only commands"),
        (["cursor", "--http", "127.0.0.1:8377"], "is not an address"),
        (["cursor", "--http", "http://127.0.0.1:8377"], "Write it as http://127.0.0.1:8377/mcp."),
        (["cursor", "--http", "http://127.0.0.1:8377/", "--profile", "memory"], "is not an address"),
        (["cursor", "--http", "http://[::1/mcp"], "is not an address"),
        (["cursor", "--http", ""], "is not an address"),
        (["cursor", "--http", "http://127.0.0.1:8377/mcp/qmd", "--profile", "memory"], "Leave --profile out"),
        (["cursor", "--http", "http://127.0.0.1:8377/mcp", "--allow-writes"], "start it with --allow-writes"),
        (["cursor", "--name", "a b"], "--name is made of"),
        (["cursor", "--profile", "../x"], "is no profile"),
        (["cursor", "--profile", "memories"], "'memories' is no profile. The profiles are commonplace, "),
        (["emacs"], "'emacs' is not one of"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence(arguments: list[str], sentence: str, run: Run) -> None:
    assert sentence in run("install", *arguments, code=2).stderr


def test_a_folder_in_the_files_place_is_named(run: Run, tmp_path: Path) -> None:
    own_file("cursor", tmp_path).mkdir(parents=True)
    assert "cannot be edited: Is a directory" in run("install", "cursor", code=78).stderr


def test_a_file_that_another_program_wrote_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b"theirs")
    with pytest.raises(ClientFile, match="changed by another program"):
        replace_file(file, b"as we read it", b"ours")
    assert file.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_what_the_editor_does_not_understand_it_refuses() -> None:
    with pytest.raises(Uneditable):
        put("mcp_servers.commonplace.command = 'commonplace'\n", "toml", "mcp_servers", "commonplace", ENTRY)
    with pytest.raises(InvalidConfig):
        put('{"a": NaN}', "json", "mcpServers", "commonplace", ENTRY)
