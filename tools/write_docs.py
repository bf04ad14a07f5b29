"""Rewrites the generated parts of the docs. `tests/test_docs.py` fails while one of them is out of date."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commonplace import settings
from commonplace.profiles.commonplace import TOOLS
from commonplace.tools.tool import Tool

ROOT = Path(__file__).parent.parent
SESSION = (
    "commonplace add sample",
    'commonplace query "why is my bread gummy" -n 1',
    "commonplace install claude-code",
)
"""What a new user types in a checkout, as the README shows it."""


def tool_reference() -> str:
    """Every tool, what it is for and what it takes."""
    return "\n\n".join("\n".join(_tool(tool)) for tool in TOOLS)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"## `{tool.name}`\n"
    yield tool.description
    if not tool.input["properties"]:
        return
    yield "\n| argument | | |"
    yield "|---|---|---|"
    for name, spec in tool.input["properties"].items():
        kind = spec.get("type", "string or list")
        facts = [kind, "**required**" if name in tool.input.get("required", ()) else ""]
        facts += [f"{spec['minimum']}–{spec['maximum']}" if "maximum" in spec else ""]
        facts += [", ".join(f"`{value}`" for value in spec.get("enum", ()))]
        facts += [f"default `{spec['default']}`" if spec.get("default") not in (None, "") else ""]
        yield f"| `{name}` | {', '.join(filter(None, facts))} | {spec.get('description', '')} |"


def session() -> str:
    """Return what a new user types and sees, run in a home folder that is empty and with the models of this user."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        shutil.copytree(ROOT / "sample", home / "sample", copy_function=shutil.copyfile)  # as old as for a new user
        others = {name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE_", "CLAUDE_"))}
        ours = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COMMONPLACE_MODELS": str(settings.Settings.load().models),
            "COMMONPLACE_OFFLINE": "1",
        }
        lines = []
        for command in SESSION:
            done = subprocess.run(
                shlex.split(command), env={**others, **ours}, cwd=home, stdout=subprocess.PIPE, text=True, check=True
            )
            lines += [f"$ {command}", *done.stdout.rstrip().replace(str(home), "~").splitlines()]
    return "\n".join(f"    {line}".rstrip() for line in lines)


PARTS = {
    "docs/operations.md": ("settings", settings.reference),
    "docs/tools.md": ("tools", tool_reference),
    "README.md": ("session", session),
}


def written(page: str) -> str:
    """A page as it should be."""
    name, make = PARTS[page]
    text = (ROOT / page).read_text(encoding="utf-8")
    block = f"<!-- {name}: written by `make docs` -->\n\n{make()}\n\n<!-- end of {name} -->"
    return re.sub(rf"<!-- {name}:.*?<!-- end of {name} -->", lambda _: block, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PARTS:
        (ROOT / page).write_text(written(page), encoding="utf-8")
