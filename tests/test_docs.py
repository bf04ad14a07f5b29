"""The docs say what is so: generated parts are current, examples run, commands and links exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from commonplace.cli.main import _COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_settings_table_is_what_the_settings_say() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "write_docs.py"))
    for page in tool["PARTS"]:
        assert (ROOT / "docs" / page).read_text(encoding="utf-8") == tool["written"](page), "run `make docs`"


def test_the_python_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_MODEL", "static")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example.replace("~/commonplace", str(tmp_path)), "README.md", "exec"), {})
    assert "notes://tea" in capsys.readouterr().out


def test_every_command_the_readme_names_exists() -> None:
    named = re.findall(r"^    commonplace (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert set(named) <= set(_COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_room_is_in_the_table_of_rooms() -> None:
    explained = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "commonplace").iterdir():
        if not path.name.startswith("__") and (path.is_dir() or path.suffix == ".py"):
            assert f"| `{path.name}{'/' if path.is_dir() else ''}` |" in explained


def test_every_dependency_is_explained() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for row in rows[1:] for name in row.split(", ")}
    assert explained - {"---"} == {re.split(r"[<>=\[]", requirement)[0] for requirement in project["dependencies"]}
