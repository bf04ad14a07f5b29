"""What a search prints: for people on a terminal, for people in a pipe, and for programs.

1. A result is a line with title, date and score, its path, and the lines of its source, numbered.
2. On a terminal matches stand out and nothing is wider than the window; in a pipe there is text alone.
3. What is printed can be pasted: the path to `get`, the command in the last line to a shell.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli.results import age, cells, reasons, rows, shortened
from kit.forked import forked

Run = Callable[..., str]
LOCKS = """\
---
alias: leases
---
# Distributed locks

A promise about time.

## Rules

- Leases last thirty seconds and are renewed every ten.
- Leader election needs fencing tokens, or a paused process writes after its lease ran out.

## Afterwards

Nothing.
"""
CODE = """\
class Kettle:
    def fill(self, litres):
        self.litres = litres

    def boil(self, degrees):
        \"\"\"Heat what is in it.\"\"\"
        if degrees > 100:
            raise ValueError("steam")
        return self.litres * degrees
"""
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a vault and code in it, both of them in the library."""
    for name, text in {
        "vault/Ops/Distributed locks.md": LOCKS,
        "vault/Using <word>.md": "# Using <word> here\n\nTemplates say placeholder.\n",
        "code/kettle.py": CODE,
        "vault/50% & $HOME/it's a #1? file:7.md": "Quokka \x1b[31mred\x1b[0m.\n\tkoala quokkas\r\n",
        "vault/茶.md": "# 茶\n\n乌龙茶要用刚刚离开沸点的水来冲泡，oolong 第一泡倒掉。"
        + "茶叶在壶里慢慢展开。" * 20
        + "\n",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    two_days_ago = (datetime.now(UTC) - timedelta(days=2, hours=1)).timestamp()
    os.utime(tmp_path / "vault/Ops/Distributed locks.md", (two_days_ago, two_days_ago))
    for folder in ("vault", "code"):
        subprocess.run(
            forked("add", str(tmp_path / folder)),
            env=_environment(tmp_path),
            capture_output=True,
            timeout=60,
            check=True,
        )
    return tmp_path


def _environment(place: Path, **more: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    given = {"COMMONPLACE_HOME": str(place / "home"), "COMMONPLACE_MODEL": "static", "TERM": "xterm-256color"}
    return {**environment, **given, **more}


@pytest.fixture
def piped(place: Path) -> Run:
    """Run the program in the place, into a pipe."""

    def call(*arguments: str, cwd: Path = place, **more: str) -> str:
        command = forked(*arguments)
        done = subprocess.run(
            command, env=_environment(place, **more), cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def shown(place: Path) -> Run:
    """Run the program in the place, on a terminal so many columns wide."""

    def call(*arguments: str, columns: int = 100, **more: str) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        command = forked(*arguments)
        process = subprocess.Popen(command, env=_environment(place, **more), cwd=place, stdout=theirs, stderr=theirs)
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 65536):
                written += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert process.wait(60) == 0, written
        return written.decode("utf-8").replace("\r\n", "\n")

    return call


def test_a_result_in_a_pipe_is_its_title_its_path_and_the_lines_of_its_source(piped: Run) -> None:
    head, path, *lines, blank, foot = piped("search", "fencing", "tokens").splitlines()
    assert re.fullmatch(r"Distributed locks › Rules +2 days ago   [01]\.\d\d", head)
    assert path == "vault/Ops/Distributed locks.md"
    assert lines == [
        "   11  - Leader election needs fencing tokens, or a paused process writes after its lease ran out."
    ]
    assert blank == ""
    assert re.fullmatch(r'1 of 1 · by words · \d+ ms +commonplace get "vault/Ops/Distributed locks.md:11"', foot), foot


def test_code_stays_code_and_is_called_by_the_definition_of_its_match(piped: Run) -> None:
    head, path, *lines, _, _ = piped("search", "degrees litres boil").splitlines()
    assert head.startswith("kettle › Kettle › boil ")
    assert path == "code/kettle.py"
    assert lines == [
        "    5      def boil(self, degrees):",
        '    6          """Heat what is in it."""',
        "    7          if degrees > 100:",
        '    8              raise ValueError("steam")',
        "    9          return self.litres * degrees",
    ]


def test_a_terminal_shows_matches_and_bars_in_colour_and_none_without_it(shown: Run) -> None:
    page = shown("search", "fencing", "tokens")
    assert "\x1b[1mDistributed locks › Rules\x1b[0m" in page
    assert "\x1b[1;31mfencing\x1b[0m \x1b[1;31mtokens\x1b[0m" in page
    bare = shown("search", "fencing", "tokens", NO_COLOR="1")
    assert "\x1b" not in bare
    assert "   11 │ - Leader election needs fencing tokens" in bare
    assert STYLE.sub("", page).splitlines()[:-1] == bare.splitlines()[:-1]  # the last line says how long it took


@pytest.mark.parametrize("columns", [30, 60, 100])
def test_nothing_is_wider_than_the_terminal_however_wide_its_characters_are(shown: Run, columns: int) -> None:
    for width in ({"columns": columns}, {"columns": 200, "COLUMNS": str(columns)}):
        for query in ("oolong", "fencing tokens", "placeholder"):
            lines = STYLE.sub("", shown("search", query, **width)).splitlines()
            numbered = [line for line in lines if " │ " in line]
            assert numbered
            assert all(_cells(line) <= columns for line in (lines[0], *numbered)), lines


def _cells(line: str) -> int:
    return sum(2 if "\u2e80" <= sign <= "\uffef" else 1 for sign in line)


def test_a_wide_terminal_has_title_and_score_at_both_ends_of_one_line(shown: Run) -> None:
    for columns in (60, 100):
        head = STYLE.sub("", shown("search", "oolong", columns=columns)).splitlines()[0]
        assert (head[0], _cells(head)) == ("茶", columns)


def test_a_title_keeps_what_looks_like_a_tag(piped: Run, shown: Run) -> None:
    assert piped("search", "placeholder").startswith("Using <word> here ")
    assert STYLE.sub("", shown("search", "placeholder")).startswith("Using <word> here ")


def test_every_path_and_the_command_that_are_printed_lead_to_what_they_name(piped: Run, place: Path) -> None:
    piped("call", "remember", '{"kind": "memory", "text": "Fencing tokens grow."}')
    for cwd in (place, place / "vault", place / "vault" / "Ops", place / "code"):
        lines = piped("search", "fencing", "tokens", "leader", "election", "lease", cwd=cwd).splitlines()
        assert "%20" not in "".join(lines)
        paths = [lines[at - 1] for at, line in enumerate(lines) if re.match(" +1?1  ", line)]
        assert len(paths) == 2
        assert any(line.startswith("Memory ") for line in lines)
        texts = {piped("get", path, cwd=cwd) for path in paths}
        assert texts == {LOCKS, "Fencing tokens grow.\n"}, paths
        command = shlex.split(lines[-1].split("ms", 1)[1])
        assert piped(*command[1:], cwd=cwd).startswith("- Leader election needs")
    (hit, _) = json.loads(piped("search", "fencing tokens leader election lease", "--json", cwd=place / "vault"))
    assert hit["path"] == os.path.realpath(place / "vault" / "Ops" / "Distributed locks.md")
    assert (hit["uri"], hit["line"]) == ("docs://vault/Ops/Distributed%20locks.md", 11)
    assert datetime.fromisoformat(hit["updated_at"]) < datetime.now(UTC) - timedelta(days=2)


def test_a_file_with_an_odd_name_is_printed_as_it_is_called_and_read_by_that(
    piped: Run, shown: Run, place: Path
) -> None:
    name = "vault/50% & $HOME/it's a #1? file:7.md"
    lines = piped("search", "quokkas", "koala").splitlines()
    assert (lines[1], lines[2]) == (name, "    2  \tkoala quokkas")
    assert piped("get", lines[1]).startswith("Quokka")
    assert piped(*shlex.split(lines[-1].split("ms", 1)[1])[1:]).strip("\n") == "\tkoala quokkas"
    assert piped("get", Path(name).name, cwd=place / "vault" / "50% & $HOME").startswith("Quokka")
    assert "\\u001b[31mred" in STYLE.sub("", shown("search", "quokka")), "a document gives a terminal no orders"


def test_the_command_printed_opens_the_home_that_was_searched(piped: Run, place: Path) -> None:
    elsewhere = str(place / "nowhere")
    foot = piped("--home", str(place / "home"), "search", "fencing", COMMONPLACE_HOME=elsewhere).splitlines()[-1]
    command = shlex.split(foot.split("ms", 1)[1])
    assert piped(*command[1:], COMMONPLACE_HOME=elsewhere).startswith("- Leader election needs")


def test_the_command_printed_names_a_program_that_the_shell_does_not_find_by_its_name(place: Path) -> None:
    program = str(Path(sys.executable).parent / "commonplace")
    for path, name in (("/usr/bin:/bin", program), (f"{Path(program).parent}:/usr/bin:/bin", "commonplace")):
        environment = _environment(place, PATH=path)
        search = [program, "search", "fencing"]
        done = subprocess.run(
            search, env=environment, cwd=place, capture_output=True, text=True, timeout=60, check=True
        )
        command = done.stdout.splitlines()[-1].split("ms", 1)[1].strip()
        assert shlex.split(command)[:2] == [name, "get"]
        read = subprocess.run(
            command, shell=True, env=environment, cwd=place, capture_output=True, text=True, timeout=60
        )
        assert read.stdout.startswith("- Leader election needs")


def test_words_need_no_quotes_and_options_stand_anywhere(piped: Run) -> None:
    quoted = json.loads(piped("search", "fencing tokens", "--limit", "1", "--json"))
    assert quoted
    for words in (
        ["fencing", "tokens", "-n", "1", "--json"],
        ["--json", "fencing", "-n", "1", "tokens"],
        ["-n1", "--json", "fencing", "tokens"],
    ):
        assert json.loads(piped("search", *words)) == quoted
        assert [hit["uri"] for hit in json.loads(piped("query", *words))] == [quoted[0]["uri"]]


def test_explain_is_a_sentence_for_people_and_numbers_for_programs(piped: Run, shown: Run) -> None:
    said = next(line for line in piped("query", "fencing", "tokens", "--explain").splitlines() if "found by" in line)
    assert re.fullmatch(r" +found by its words fencing, tokens(; .*close in meaning)?", said), said
    assert "\x1b[1mfencing\x1b[0m\x1b[2m, \x1b[0m\x1b[1mtokens\x1b[0m" in shown(
        "query", "fencing", "tokens", "--explain"
    )
    record = json.loads(piped("query", "fencing tokens", "--explain", "--json"))[0]
    assert record["explain"]["words"] == ["fencing", "tokens"]
    assert isinstance(record["explain"]["vector"], float)
    said = piped("search", "leases", "--explain")
    assert "found by its words Leases\n" in said


def test_a_result_of_meaning_alone_says_so(piped: Run) -> None:
    said = piped("query", "warming fluids", "--explain", "-c", "code")
    assert re.search("found by (its words .*; )?.*meaning", said), said
    assert re.search(r"1 of 1 · by words and meaning · \d+ ms", said)


@pytest.mark.parametrize(
    ("explain", "sentence"),
    [
        ({"words": ["cold", "proof"], "vector": 0.5}, "found by its words cold, proof; close in meaning"),
        ({"words": ["cold"], "vector": 0.9}, "found by its words cold; very close in meaning"),
        ({"words": ["cold"], "vector": -2.0}, "found by its words cold"),
        ({"words": ["cold"], "vector": None}, "found by its words cold"),
        ({"words": [], "vector": 0.2}, "found by its meaning, which is somewhat close"),
        ({"words": [], "vector": -0.2}, "found by its meaning, which is not close"),
        ({"words": [], "vector": None}, "found by its title"),
    ],
)
def test_what_a_result_was_found_by_is_a_sentence(explain: dict[str, object], sentence: str) -> None:
    assert reasons(explain) == sentence


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-86400, "2026-05-02"),
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (2 * 86400, "2 days ago"),
        (21 * 86400, "3 weeks ago"),
        (31 * 86400, "1 month ago"),
        (364 * 86400, "11 months ago"),
        (800 * 86400, "2 years ago"),
    ],
)
def test_a_date_is_how_long_ago_it_was(seconds: int, said: str) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == said


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60), st.integers(8, 30))
def test_rows_hold_all_of_a_line_and_fit(line: str, room: int) -> None:
    parts = list(rows(line, room, 2))
    assert parts[0][0] == 0
    assert parts[-1][1] in (len(line), len(line) - 1)
    assert all(line[end:low] in ("", " ") for (_, end), (low, _) in pairwise(parts))
    for low, high in parts:
        assert cells(line[low:high]) <= max(room - 2 * bool(low), 2) or len(regex.findall(r"\X", line[low:high])) == 1
    assert cells(shortened(line, room)) <= room


def test_a_sign_is_as_wide_as_a_terminal_draws_it() -> None:
    widths = {"a": 1, "é": 1, "e\u0301": 1, "茶": 2, "🍵": 2, "❤\ufe0f": 2, "🇩🇪": 2, "👩🏽‍💻": 2, "\t": 4, "\x1b": 6}
    assert {sign: cells(sign) for sign in widths} == widths


def test_nothing_found_is_one_line(piped: Run) -> None:
    assert piped("search", "qzxv") == "No results found.\n"
