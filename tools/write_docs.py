"""Rewrites the generated parts of the docs. `tests/test_docs.py` fails while one of them is out of date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from commonplace import settings
from commonplace.surfaces.commonplace import TOOLS
from commonplace.surfaces.tool import Tool

DOCS = Path(__file__).parent.parent / "docs"


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


PARTS = {"operations.md": ("settings", settings.reference), "tools.md": ("tools", tool_reference)}


def written(page: str) -> str:
    """A page as it should be."""
    name, make = PARTS[page]
    text = (DOCS / page).read_text(encoding="utf-8")
    block = f"<!-- {name}: written by `make docs` -->\n\n{make()}\n\n<!-- end of {name} -->"
    return re.sub(rf"<!-- {name}:.*?<!-- end of {name} -->", lambda _: block, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PARTS:
        (DOCS / page).write_text(written(page), encoding="utf-8")
