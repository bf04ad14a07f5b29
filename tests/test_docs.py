"""The docs say what is so: generated parts are current, examples run, commands and links exist."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from commonplace.cli.main import _COMMANDS
from commonplace.models import DEFAULT, find
from commonplace.settings import Settings
from fresh_user import FreshUser
from needs import missing

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


TOOL = runpy.run_path(str(ROOT / "tools" / "write_docs.py"))


@pytest.mark.parametrize("page", ["docs/operations.md", "docs/tools.md"])
def test_the_settings_and_the_tools_are_described_as_they_are(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == TOOL["written"](page), "run `make docs`"


@pytest.mark.model
def test_the_session_in_the_readme_is_one_that_happened() -> None:
    if find(DEFAULT, Settings.load().models) is None:
        missing(f"{DEFAULT} is not here. Run `commonplace models pull`.")
    amounts = re.compile(r"[\d.,]+")
    shown, run = (ROOT / "README.md").read_text(encoding="utf-8"), TOOL["written"]("README.md")
    assert amounts.sub("0", shown) == amounts.sub("0", run), "run `make docs`"


def test_the_python_example_of_the_readme_opens_the_library_of_the_command_line(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    user = FreshUser(tmp_path, COMMONPLACE_MODEL="static")
    assert "notes://tea" in user.program(sys.executable, "-c", example).stdout
    assert "Oolong wants water" in user.run("get", "notes://tea").stdout


def test_the_charts_are_those_of_the_tables() -> None:
    drawn = runpy.run_path(str(ROOT / "bench" / "charts.py"))["charts"](
        (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    )
    for name, picture in drawn.items():
        shown = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
        assert shown == picture, f"{name} is not what the page says: run `python bench/charts.py`"


def test_the_examples_of_the_python_page_run_one_after_the_other(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    user = FreshUser(tmp_path, COMMONPLACE_MODEL="static")
    printed = user.program(sys.executable, "-c", "".join(examples)).stdout.splitlines()
    assert printed[0] == "notes://tea 1"
    assert "1 new, 0 unchanged" in printed
    assert "['Bread', 'Baking']" in printed
    assert "not_found - There is no notes://coffee. Find it with a search." in printed
    assert printed[-1] == "[]"


def test_every_command_the_readme_names_exists() -> None:
    named = re.findall(r"^    commonplace (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert set(named) <= set(_COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]+)(#[^)]+)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert heading[1:] in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_room_is_in_the_table_of_rooms() -> None:
    explained = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "commonplace"
    for path in (*package.iterdir(), *(package / "kinds").iterdir()):
        if not path.name.startswith("__") and path.name != "kinds" and (path.is_dir() or path.suffix == ".py"):
            assert f"| `{path.relative_to(package)}{'/' if path.is_dir() else ''}` |" in explained


def test_every_dependency_is_explained() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for row in rows[1:] for name in row.split(", ")}
    assert explained - {"---"} == {re.split(r"[<>=\[]", requirement)[0] for requirement in project["dependencies"]}
