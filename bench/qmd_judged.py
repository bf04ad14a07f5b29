"""How the qmd profile answers the judged queries of qmd itself, which are in a checkout of its repository.

    python bench/qmd_judged.py DIR

Prints, for each tool and each grade of difficulty, for how many queries the expected document is among the first 1, 3
and 5.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

QUERY = re.compile(r'\{ query: "([^"]+)", expectedDoc: "([^"]+)", difficulty: "([^"]+)" \}')
TOOLS = {"search": (), "vsearch": ("--min-score", "0"), "query": ()}
AT = (1, 3, 5)


def main(checkout: Path) -> None:
    judged = QUERY.findall((checkout / "test" / "eval-bm25.test.ts").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as home:
        os.environ["COMMONPLACE_HOME"] = home
        _commonplace("add", str(checkout / "test" / "eval-docs"))
        for tool, options in TOOLS.items():
            first = [(grade, _rank(tool, options, text, name)) for text, name, grade in judged]
            counts = Counter(grade for grade, _ in first)
            for grade in (*counts, "all"):
                ranks = [rank for of, rank in first if grade in (of, "all")]
                shown = (f"{sum(rank <= at for rank in ranks):3} of {len(ranks)}" for at in AT)
                print(f"{tool:8} {grade:8} {'  '.join(shown)}")


def _rank(tool: str, options: tuple[str, ...], text: str, name: str) -> int:
    """Return the place of the expected document among the results, from 1; one behind all where it is none of them."""
    results = json.loads(_commonplace("qmd", tool, text, "-n", "6", "--format", "json", *options))
    files = [result["file"].lower() for result in results]
    return next((rank for rank, file in enumerate(files, 1) if name in file), 99)


def _commonplace(*arguments: str) -> str:
    program = [sys.executable, "-m", "commonplace", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
