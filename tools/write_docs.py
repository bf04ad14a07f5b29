"""Rewrites the generated parts of the docs. `tests/test_docs.py` fails while one of them is out of date."""

from __future__ import annotations

import re
from pathlib import Path

from commonplace import settings

DOCS = Path(__file__).parent.parent / "docs"
PARTS = {"operations.md": ("settings", settings.reference)}


def written(page: str) -> str:
    """A page as it should be."""
    name, make = PARTS[page]
    text = (DOCS / page).read_text(encoding="utf-8")
    block = f"<!-- {name}: written by `make docs` -->\n\n{make()}\n\n<!-- end of {name} -->"
    return re.sub(rf"<!-- {name}:.*?<!-- end of {name} -->", lambda _: block, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PARTS:
        (DOCS / page).write_text(written(page), encoding="utf-8")
