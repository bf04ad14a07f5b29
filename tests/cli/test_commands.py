"""The command line as a person uses it: real processes' worth of work, real files, the shipped model.

1. A folder becomes a collection; words and meaning find it; parts of it can be read.
2. Errors are one sentence on stderr with the right exit code, never a traceback.
3. `--help` and `search` load neither the protocol SDK nor a model.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import commonplace
from kit.forked import PROGRAM, forked
from opening import serving_index

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.md").write_text(
        "# Tea\n\nOolong wants water just off the boil.\n\n## Green\n\nEighty degrees.\n", "utf-8"
    )
    (folder / "bread.md").write_text("# Bread\n\nSourdough needs a long cold proof.\n", "utf-8")
    (folder / "blob.md").write_bytes(b"\0\1\2")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODEL": "static"}

    def call(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        done = subprocess.run(
            command, env={**environment, **more}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def test_a_folder_is_added_searched_read_and_kept_up_to_date(run: Run, notes: Path) -> None:
    added = run("add", str(notes))
    assert "2 new" in added.stdout
    assert "blob.md: BINARY" in added.stderr
    assert "Embedded: 2 passages with static" in added.stdout

    hits = json.loads(run("search", "oolong", "--json").stdout)
    assert [hit["uri"] for hit in hits] == ["docs://notes/tea.md"]
    assert hits[0]["line"] == 3
    assert json.loads(run("query", "baking a loaf", "--json").stdout)[0]["uri"] == "docs://notes/bread.md"
    assert "commonplace get notes/bread.md:3" in run("query", "baking", "a", "loaf", "--expand", "--rerank").stdout
    assert run("get", "notes/tea.md", "--section", "green").stdout == "## Green\n\nEighty degrees.\n"
    assert run("outline", "notes/tea.md").stdout.split() == ["1", "Tea", "5", "Green"]
    by_meaning = run("vsearch", "baking a loaf", "-n", "1").stdout
    assert by_meaning.startswith("Bread ")
    assert "commonplace get notes/bread.md:3" in by_meaning
    assert json.loads(run("vsearch", "baking a loaf", "--json").stdout)[0]["uri"] == "docs://notes/bread.md"
    assert "commonplace get notes/bread.md" in run("related", "docs://notes/tea.md").stdout
    assert "commonplace get notes/bread.md" in run("related", "notes/tea.md").stdout

    (notes / "tea.md").write_text("# Tea\n\nMatcha is whisked.\n", "utf-8")
    (notes / "bread.md").unlink()
    assert "0 new, 1 updated, 0 unchanged, 1 removed" in run("add", str(notes)).stdout
    assert run("search", "oolong").stdout == "No results found.\n"
    assert "matcha" in run("search", "whisked").stdout.lower()
    assert "0 new, 0 updated, 1 unchanged, 0 removed" in run("add", str(notes)).stdout


def test_output_is_utf_8_whatever_the_locale(run: Run, notes: Path) -> None:
    (notes / "茶.md").write_text("# 乌龙茶\n", "utf-8")
    run("add", str(notes), "--no-embed")
    for command in (["get", "notes/茶.md"], ["search", "乌龙茶"], ["call", "search", '{"query": "乌龙茶"}']):
        assert "乌龙茶" in run(*command, PYTHONIOENCODING="latin-1").stdout
    assert "✓ All collections updated." in run("update", PYTHONIOENCODING="latin-1").stdout


def test_a_server_says_where_it_is_once_it_is_there(tmp_path: Path) -> None:
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home")}
    command = forked("serve", "--port", "0")
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr
            said = running.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:([1-9]\d*)/mcp ", said)
            assert found, said
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=60):
                pass
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


def test_a_server_whose_port_is_taken_says_so_and_nothing_else(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--port", str(port), code=1)
    assert done.stderr.startswith(f"127.0.0.1:{port} cannot be listened on: ")
    assert done.stderr.count("\n") == 1


def test_a_tool_is_called_as_an_agent_calls_it(run: Run, notes: Path) -> None:
    run("add", str(notes), "--no-embed")
    found = json.loads(run("call", "search", '{"query": "oolong", "detail": "ids"}').stdout)
    assert [result["uri"] for result in found["results"]] == ["docs://notes/tea.md"]
    kept = json.loads(run("call", "remember", '{"text": "Buy tea."}').stdout)
    assert kept["version"] == 1
    assert "Did you mean search?" in run("call", "serach", "{}", code=1).stderr
    assert "are not JSON" in run("call", "search", "{", code=2).stderr
    assert 'search needs "query".' in run("call", "search", code=2).stderr


def test_status_and_doctor_say_which_model_is_in_use_and_what_would_be_better(run: Run, notes: Path) -> None:
    run("add", str(notes))
    status = run("status").stdout
    assert "2 of 2 passages embedded with static" in status
    assert "arctic-embed-s would find more" in status
    assert "Everything is in order." in run("doctor").stdout


def test_status_says_why_an_index_on_a_service_is_behind(run: Run, notes: Path) -> None:
    with serving_index("turbopuffer") as server:
        assert server is not None
        there = {
            "COMMONPLACE_INDEX": "turbopuffer", "COMMONPLACE_TURBOPUFFER_PREFIX": "test",
            "TURBOPUFFER_BASE_URL": server.url, "TURBOPUFFER_API_KEY": "another",
        }  # fmt: skip
        run("add", str(notes), **there)
        assert "refused the key" in run("status", **there).stdout


def test_a_document_with_escape_sequences_comes_out_of_a_pipe_as_it_is(run: Run, notes: Path) -> None:
    body = "# Log\n\nThe word \x1b[31mred\x1b[0m in red.\n"
    (notes / "log.md").write_text(body, "utf-8")
    run("add", str(notes), "--no-embed")
    assert run("get", "notes/log.md").stdout == body


def test_status_counts_memories(run: Run) -> None:
    for text in ("one", "two"):
        run("call", "--allow-writes", "remember", f'{{"kind": "memory", "text": "{text}"}}')
    assert "  2 memories\n" in run("status").stdout


def test_what_is_no_text_at_all_is_no_export(run: Run, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\x80\xff\n")
    answer = run("import", "everything", str(tmp_path / "noise"), code=2)
    assert "Line 1 is no exported item" in answer.stderr


def test_without_vectors_a_query_answers_by_words_and_status_says_what_to_do(run: Run, notes: Path) -> None:
    run("add", str(notes), "--no-embed")
    assert "tea.md" in run("query", "oolong").stdout
    assert "commonplace embed" in run("status").stdout


def test_a_backup_is_restored_into_another_home(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes))
    run("backup", str(tmp_path / "copy"))
    other = {"COMMONPLACE_HOME": str(tmp_path / "other")}
    run("restore", str(tmp_path / "copy"), "--yes", **other)
    assert "tea.md" in run("search", "oolong", **other).stdout
    assert "tea.md" in run("query", "brewing", **other).stdout


def test_a_restore_that_nobody_can_be_asked_about_changes_nothing_and_says_what_to_add(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "empty"))
    run("add", str(notes), "--no-embed")
    refused = run("restore", str(tmp_path / "empty"), code=2)
    assert refused.stderr.endswith("Nobody answered, so nothing was changed. Repeat it with --yes.\n")
    assert "notes/tea.md" in run("search", "oolong").stdout


def test_advice_is_for_the_home_and_the_space_that_were_named(run: Run, notes: Path, tmp_path: Path) -> None:
    home = tmp_path / "another home"
    there = ("--home", str(home), "--space", "ann")
    named = f"`commonplace --home '{home}' --space ann"
    run(*there, "add", str(notes), "--no-embed")
    assert f"{named} embed`" in run(*there, "status").stdout
    assert f"{named} embed`" in run(*there, "query", "oolong").stderr
    assert f"{named} collections list`" in run(*there, "search", "oolong", "-c", "nots", code=1).stderr
    assert "`commonplace --space ann embed`" in run("--space", "ann", "vsearch", "oolong", code=69).stderr
    assert "`commonplace --space ann add FOLDER`" in run("--space", "ann", "collections", "list").stderr
    assert "`commonplace add FOLDER`" in run("collections", "list").stderr


def test_nobody_is_asked_about_a_restore_of_what_is_no_backup(run: Run, notes: Path, tmp_path: Path) -> None:
    missing = run("restore", str(tmp_path / "missing"), code=1)
    assert missing.stderr == f"There is no backup at {tmp_path / 'missing'}.\n"
    (tmp_path / "blank").touch()
    assert run("restore", str(tmp_path / "blank"), code=2).stderr.startswith(f"{tmp_path / 'blank'} is no backup of ")
    text = run("restore", str(notes / "tea.md"), code=74)
    assert text.stderr.startswith(f"{notes / 'tea.md'} is no sound backup: ")


def test_an_evaluation_that_does_not_end_has_kept_every_set_that_did(run: Run, tmp_path: Path) -> None:
    for name, judged in (("a", "query-id\tcorpus-id\tscore\nq\ttea\t1\n"), ("b", "neither head nor tail\n")):
        folder = tmp_path / "sets" / name
        folder.mkdir(parents=True)
        (folder / "corpus.jsonl").write_text('{"_id": "tea", "title": "", "text": "Oolong."}\n', "utf-8")
        (folder / "queries.jsonl").write_text('{"_id": "q", "text": "oolong"}\n', "utf-8")
        (folder / "qrels.tsv").write_text(judged, "utf-8")
    run("eval", str(tmp_path / "sets"), "--save", str(tmp_path / "run.json"), code=2)
    assert [each["name"] for each in json.loads((tmp_path / "run.json").read_text("utf-8"))["sets"]] == ["a"]


def test_an_export_imports_into_an_equal_library(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes))
    exported = run("export", "everything").stdout
    (tmp_path / "lines").write_text(exported, "utf-8")
    other = {"COMMONPLACE_HOME": str(tmp_path / "other")}
    assert "Imported: 3 items" in run("import", "everything", str(tmp_path / "lines"), **other).stdout
    assert run("export", "everything", **other).stdout == exported


def test_lines_are_counted_as_everywhere_and_asked_for_by_one_or_more(run: Run, notes: Path) -> None:
    run("add", str(notes), "--no-embed")
    assert run("get", "notes/bread.md", "--from", "3").stdout == "Sourdough needs a long cold proof.\n"
    assert "has no line 4" in run("get", "notes/bread.md", "--from", "4", code=1).stderr
    for count in ("0", "-1"):
        assert "not in the range" in run("get", "notes/bread.md", "--lines", count, code=2).stderr


def test_what_a_search_prints_can_be_read_as_it_stands_there(run: Run, notes: Path) -> None:
    (notes / "at 7:30.md").write_text("# Rise\n\nKettle on.\n", "utf-8")
    run("add", str(notes), "--no-embed")
    place = run("search", "eighty degrees").stdout.split()[-1]
    assert place == "notes/tea.md:7"
    assert run("get", place).stdout == "Eighty degrees.\n"
    assert run("get", "notes/tea.md:5", "--lines", "1").stdout == "## Green\n"
    assert run("get", place, "--section", "green").stdout == "## Green\n\nEighty degrees.\n"
    assert run("outline", place).stdout.split() == ["1", "Tea", "5", "Green"]
    assert run("related", place, "--json").stdout == run("related", "notes/tea.md", "--json").stdout
    assert "has no line 70" in run("get", "notes/tea.md:70", code=1).stderr
    assert "There is no notes/nothing.md." in run("get", "notes/nothing.md:7", code=1).stderr
    kettle = shlex.split(run("search", "kettle").stdout)[-1]
    assert run("get", kettle).stdout == "Kettle on.\n"
    (notes / "a.md:2").write_text("A name that ends so.", "utf-8")
    (notes / "a.md").write_text("one\ntwo\n", "utf-8")
    run("add", str(notes), "--pattern", "*", "--no-embed")
    assert run("get", "notes/a.md:2").stdout == "A name that ends so.\n", "a name counts before a line"


def test_a_search_may_be_held_to_a_folder(run: Run, notes: Path) -> None:
    (notes / "ops" / "archive").mkdir(parents=True)
    (notes / "ops" / "archive" / "locks.md").write_text("# Locks\n\nEighty leases.\n", "utf-8")
    run("add", str(notes), "--no-embed")
    for path in ("ops/archive/**", "notes/ops", "ops"):
        found = json.loads(run("search", "eighty", "--path", path, "--json").stdout)
        assert [hit["uri"] for hit in found] == ["docs://notes/ops/archive/locks.md"], path
    assert len(json.loads(run("search", "eighty", "--json").stdout)) == 2
    assert "A path names" in run("search", "eighty", "--path", "", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["get", "notes/nothing.md"], 1, "There is no notes/nothing.md. Find it with a search."),
        (["add", "/nowhere/at/all"], 1, "There is no folder /nowhere/at/all"),
        (["add", "~nobody-of-this-name/notes"], 1, "There is no folder"),
        (["--space", "../x", "status"], 2, "A space is named with"),
        (["--home", "", "status"], 2, "Invalid value for '--home': it is empty."),
        (["add", ""], 2, "Invalid value for 'PATH': it is empty."),
        (["import", "notes", ""], 2, "it is empty."),
        (["collections", "init", ""], 2, "it is empty."),
        (["collections", "list", "--project", ""], 2, "Invalid value for '--project': it is empty."),
        (["search", "bread", "-c", "nots"], 1, 'There is no collection called "nots"'),
        (["query", "bread", "--kind", "nots"], 2, "'nots' is not one of"),
        (["search", "x", "-n", "0"], 2, "limit must be between 1 and 10000"),
        (["restore", "/nowhere", "--yes"], 1, "There is no backup at /nowhere"),
        (["models", "use", "nonsense"], 1, "There is no model called 'nonsense'"),
        (["eval", "/nowhere"], 2, "There is no judged collection in /nowhere"),
        (["frobnicate"], 2, "No such command 'frobnicate'.\n"),
        (["serch", "bread"], 2, "No such command 'serch'. Did you mean 'search'?\n"),
        (["collection", "list"], 2, "No such command 'collection'. Did you mean 'collections'?\n"),
        (["tables", "lst"], 2, "No such command 'lst'. Did you mean 'list'?\n"),
        (["--hme", "x", "status"], 2, "No such option"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(run: Run, arguments: list[str], code: int, sentence: str) -> None:
    assert sentence in run(*arguments, code=code).stderr


def test_a_setting_that_cannot_be_read_ends_with_78_and_its_name(run: Run) -> None:
    assert "COMMONPLACE_THREADS must be a whole number" in run("status", code=78, COMMONPLACE_THREADS="many").stderr


_NOT_FOR_A_SEARCH = {
    "commonplace.index.vectors.vector_index",
    "commonplace.ingest.embedding",
    "commonplace.ingest.files.read",
    "commonplace.kinds.documents.folders.walk",
    "commonplace.ingest.prepare",
    "commonplace.store.postgres",
    "commonplace.tools.profile",
    "commonplace.text.chunk",
    "commonplace.text.outline",
    "commonplace.text.structure",
    "csv",
    "difflib",
    "importlib.resources",
    "markdown_it",
    "pydantic",
    "rapidfuzz",
}
_NOT_ON_LINUX = {"platformdirs", "shutil", "tempfile"} if sys.platform == "linux" else set()
"""Where the places of a user's files are known."""


@pytest.mark.parametrize("command", ["commonplace.cli.main", "commonplace.qmd.cli.program"])
def test_a_search_by_words_loads_nothing_that_walks_reads_cuts_or_embeds(
    command: str, tmp_path: Path, run: Run, notes: Path
) -> None:
    run("add", str(notes))
    script = (
        f"import sys; from {command} import cli; given = {{'home': None, 'space': 'default'}}; "
        "cli(['search', 'oolong'], standalone_mode=False, obj=given); print(*sorted(sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environment["COMMONPLACE_HOME"] = str(tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "Oolong wants water" in done.stdout
    assert (_NOT_FOR_A_SEARCH | _NOT_ON_LINUX) & set(done.stdout.splitlines()[-1].split()) == set()


def test_nouns_that_a_search_loads_are_made_lazily_and_no_others(tmp_path: Path, run: Run, notes: Path) -> None:
    run("add", str(notes))
    script = (
        "import sys; from commonplace.cli.main import cli; given = {'home': None, 'space': 'default'}; "
        "cli(['search', 'oolong'], standalone_mode=False, obj=given); "
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('commonplace') and m.__file__), sep='\\n')"
    )
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    loaded = {Path(line) for line in done.stdout.splitlines() if line.endswith(".py")}
    lazy, standard = _makers_of_nouns(Path(commonplace.__file__).parent)
    assert len(loaded) > 50
    assert lazy - loaded == set(), "These are not loaded by a search: use the standard library's dataclass."
    assert standard & loaded == set(), "These are loaded by a search: use the dataclass of commonplace.lazy_dataclass."


def _makers_of_nouns(root: Path) -> tuple[set[Path], set[Path]]:
    """Return the modules that take `dataclass` from `lazy_dataclass`, and those that take the standard library's."""
    lazy, standard = set(), set()
    for path in root.rglob("*.py"):
        text = path.read_text("utf-8")
        if "from commonplace.lazy_dataclass import dataclass" in text:
            lazy.add(path)
        if re.search(r"^from dataclasses import .*\bdataclass\b", text, re.MULTILINE):
            standard.add(path)
    return lazy, standard


def test_what_is_printed_arrives_whole_although_the_process_ends_at_once(run: Run, tmp_path: Path) -> None:
    text = "".join(f"Line {number} of a long text.\n" for number in range(20_000))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "long.md").write_text(text, "utf-8")
    run("add", str(tmp_path / "notes"), "--no-embed")
    assert run("get", "notes/long.md").stdout.rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("arguments", [["--help"], ["search", "tea"], ["status"]])
def test_what_a_command_does_not_use_is_not_imported(run: Run, arguments: list[str], tmp_path: Path) -> None:
    script = (
        "import sys; from commonplace.cli.main import cli; cli(sys.argv[1:], standalone_mode=False); "
        "print(sorted({'mcp', 'onnxruntime', 'tokenizers', 'rich'} & set(sys.modules)))"
    )
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def timeless(results: str) -> str:
    """What a search prints but how long it took."""
    return re.sub(r"\d+ ms *", "", results)


def test_what_a_search_leaves_out_of_what_was_asked_is_said_beside_the_answer(run: Run, notes: Path) -> None:
    run("add", str(notes), "--no-embed")
    assert "By words only: There are no vectors yet" in run("query", "oolong").stderr
    for form in ((), ("--json",), ("--explain",)):
        plain, expanded = run("search", "oolong", *form), run("search", "oolong", "--expand", *form)
        assert plain.stderr == ""
        assert timeless(expanded.stdout) == timeless(plain.stdout)
        assert "--expand was left out: it needs meaning, which `commonplace query` goes by" in expanded.stderr
        assert "--expand was left out: there is no meaning" in run("query", "oolong", "--expand", *form).stderr
    run("embed")
    assert run("query", "oolong water", "--expand").stderr == ""


def test_a_collection_that_is_not_there_is_said_also_beside_one_that_has_hits(run: Run, notes: Path) -> None:
    run("add", str(notes), "--no-embed")
    assert "tea.md" in run("search", "oolong", "-c", "notes").stdout
    for wrong in ("nots", ""):
        said = run("search", "oolong", "-c", "notes", "-c", wrong, code=1)
        assert (said.stdout, f'There is no collection called "{wrong}"' in said.stderr) == ("", True)


def test_sentences_name_the_commands_of_the_program_that_was_called(run: Run, notes: Path) -> None:
    assert "Run 'commonplace add .'" in run("ls").stderr
    run("add", str(notes), "--no-embed")
    assert run("vsearch", "tea", code=69).stderr == "There are no vectors yet; `commonplace embed` makes them.\n"
    assert "'commonplace context add'" in run("context", "list").stderr
    assert "commonplace context add PATH" in run("context", "check").stderr
    assert "'commonplace get docs://notes/tea.md'" in run("multi-get", "notes/tea.md", "--max-bytes", "3").stdout
    assert "qmd " not in run("vsearch", "--help").stdout


def test_advice_keeps_the_space_that_the_caller_chose(run: Run, notes: Path) -> None:
    assert "Run 'commonplace --space other add .'" in run("--space", "other", "ls").stderr
    run("--space", "other", "add", str(notes), "--no-embed")
    assert "`commonplace --space other embed` makes them" in run("--space", "other", "vsearch", "tea", code=69).stderr
    assert "Run 'commonplace --space other qmd " not in run("--space", "other", "qmd", "vsearch", "tea", code=1).stderr
    assert (
        "Run 'commonplace qmd --index other embed'" in run("--space", "other", "qmd", "vsearch", "tea", code=1).stderr
    )
    assert "Run 'commonplace qmd embed'" in run("call", "vsearch", '{"query": "tea"}', code=69).stderr


def test_advice_is_typed_and_what_only_looks_like_it_is_not(run: Run, notes: Path) -> None:
    nothing = 'There is no collection called "`commonplace add` it".'
    said = run("--space", "other", "search", "tea", "-c", "`commonplace add` it", code=1).stderr
    assert said == f"{nothing} `commonplace --space other collections list` names them.\n"


@pytest.mark.parametrize(
    ("setting", "value", "arguments", "said"),
    [
        ("HOME", "file", ["status"], r"^home cannot be .*file: "),
        ("HOME", "file/below", ["search", "tea"], r"^home cannot be .*below: Not a directory\. "),
        ("MODEL", "nosuch", ["embed"], r"^model cannot be 'nosuch'\. There is no model called 'nosuch'\. Choose "),
        ("MODEL", "/nowhere/at/all", ["embed"], r"^model cannot be '/nowhere/at/all'\. There is no model folder "),
        ("MODEL", "ollama:", ["embed"], r"^model must be one of ollama:MODEL"),
        ("STORE", "sqlite:///x", ["status"], r"^store must be an address that begins with postgresql://"),
        ("MEMORY_LANGUAGE", "klingon", ["export", "memory"], r"^memory_language must be a language such as english"),
        ("CONFIG", "notes", ["status"], r"notes cannot be read: .*Is a directory"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_with_78_and_its_name(
    run: Run, notes: Path, setting: str, value: str, arguments: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    run("add", str(notes), "--no-embed")
    given = str(tmp_path / value) if setting in ("HOME", "CONFIG") else value
    answer = run(*arguments, code=78, **{f"COMMONPLACE_{setting}": given})
    assert re.search(said, answer.stderr)
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_stream_that_is_closed_is_no_error(run: Run, notes: Path, tmp_path: Path, closed: str) -> None:
    run("add", str(notes), "--no-embed")
    environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home")}
    for arguments in (["search", "oolong"], ["ls", "notes"], ["export", "everything"], ["get", "notes/nothing.md"]):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *PROGRAM, *arguments],
            env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == (1 if "get" in arguments else 0), done.stderr
        assert "Traceback" not in done.stderr
    assert "Everything is in order." in run("doctor").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a folder somebody is in cannot be removed there")
def test_in_a_folder_that_is_gone_everything_works_that_needs_none(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes), "--no-embed")
    gone = tmp_path / "gone"

    def called(program: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        gone.mkdir()
        script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        command = ["sh", "-c", script, "sh", str(gone), sys.executable, "-m", program, *arguments]
        environment = {**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODEL": "static"}
        return subprocess.run(
            command, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False
        )

    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    for arguments in (["search", "oolong"], ["call", "search", '{"query": "oolong"}'], ["mcp"], ["add", str(notes)]):
        done = called("commonplace", *arguments, given=ping)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert 'no collection called "nots"' in called("commonplace", "search", "oolong", "-c", "nots").stderr
    for arguments in (["add", "."], ["collections", "init"], ["context", "add", "Mine."], ["backup", "all"]):
        done = called("commonplace", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("The current folder does not exist any more.")
    for arguments in (["get", "./tea.md"], ["collection", "add"]):
        done = called("commonplace.qmd.cli", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_an_export_that_does_not_end_leaves_the_file_as_it_was(run: Run, notes: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("an older export\n", "utf-8")
    target.chmod(0o640)
    run("export", "everything", str(target))
    assert (target.read_text("utf-8"), target.stat().st_mode & 0o777) == ("", 0o640), "of an empty library"
    run("add", str(notes), "--no-embed")
    run("export", "everything", str(target))
    whole = target.read_bytes()
    assert whole.count(b"\n") == 3
    limited = f"ulimit -f 0; exec {sys.executable} -m commonplace export everything {target}"
    done = subprocess.run(
        ["sh", "-c", f"trap '' XFSZ; {limited}"],
        env={**os.environ, "COMMONPLACE_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 74
    assert "Traceback" not in done.stderr
    assert target.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert "cannot be written" in run("export", "everything", str(tmp_path / "no" / "file"), code=2).stderr
    assert "cannot be written" in run("export", "-o", str(notes), code=2).stderr
    assert run("export", "everything", "/dev/stdout").stdout.encode() == whole
    library = tmp_path / "home" / "spaces" / "default" / "library.db"
    assert "is a library in use" in run("export", "everything", str(library), code=2).stderr
    link = tmp_path / "link"
    link.symlink_to(target)
    run("export", "everything", str(link))
    assert link.is_symlink()
    assert target.read_bytes() == whole
