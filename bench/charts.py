"""Draw the charts of `docs/benchmarks.md` from its own tables, so that none says anything else.

python bench/charts.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "pictures"
WIDTH, LABEL, BAR = 860, 330, 12
COLORS = ("#9e2a2b", "#8a8577", "#c9b79c", "#54738e", "#3f6b52")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#33302a}.n{fill:#6b665a;font-size:11px}"
    "@media(prefers-color-scheme:dark){text{fill:#e4dfd4}.n{fill:#a8a294}}"
)
Series = tuple[str, Sequence[float]]


def charts(page: str) -> dict[str, str]:
    """Return the SVG of each chart by its file name."""
    peers, sizes, quality = _table(page, "job"), _table(page, "", "10,000"), _table(page, "set")
    ratios = [float(row[3]) for row in peers[1:]]
    names = [row[0] for row in peers[1:]]
    return {
        "bench-peers.svg": _bars(names, [("ours, as a share of the peer's CPU", ratios)], limit=1.0),
        "bench-sizes.svg": _bars(
            [row[0] for row in sizes[1:]],
            [
                (f"{head} passages (ms)", [_number(row[at]) for row in sizes[1:]])
                for at, head in enumerate(sizes[0])
                if at
            ],
            logarithmic=True,
        ),
        "bench-quality.svg": _bars(
            [row[0] for row in quality[1:]],
            [(head, [_number(row[at]) for row in quality[1:]]) for at, head in enumerate(quality[0]) if at],
            limit=1.0,
        ),
    }


def main() -> None:
    """Write the charts."""
    for name, picture in charts(PAGE.read_text("utf-8")).items():
        (PICTURES / name).write_text(picture, "utf-8")


def _table(page: str, *heads: str) -> list[list[str]]:
    """Return the cells of the first table whose heads begin with these."""
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        if rows[0][: len(heads)] == list(heads):
            return [rows[0], *rows[2:]]
    raise ValueError(f"There is no table that begins with {heads}.")


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))


def _bars(names: Sequence[str], series: Sequence[Series], *, limit: float = 0.0, logarithmic: bool = False) -> str:
    """Return horizontal bars, a group for each name and a bar for each series."""
    most = limit or max(max(values) for _, values in series)
    least = min(min(values) for _, values in series)
    room = WIDTH - LABEL - 100
    height = len(series) * BAR + 12
    lines = []
    top = 26
    for row, name in enumerate(names):
        lines.append(f'<text x="{LABEL - 10}" y="{top + height / 2}" text-anchor="end">{escape(_short(name))}</text>')
        for nr, (_, values) in enumerate(series):
            value = values[row]
            share = math.log(value / least * 2) / math.log(most / least * 2) if logarithmic else value / most
            width, y = max(2.0, room * min(share, 1.1)), top + nr * BAR
            lines.append(f'<rect x="{LABEL}" y="{y}" width="{width:.0f}" height="{BAR - 3}" fill="{COLORS[nr]}"/>')
            lines.append(f'<text class="n" x="{LABEL + width + 6:.0f}" y="{y + BAR - 3}">{value:g}</text>')
        top += height
    legend, x = [], LABEL
    for nr, (name, _) in enumerate(series):
        legend.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{COLORS[nr]}"/>')
        legend.append(f'<text class="n" x="{x + 15}" y="15">{escape(name)}</text>')
        x += 30 + 7 * len(name)
    body = "\n".join([*legend, *lines])
    size = f'viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'


def _short(name: str) -> str:
    """Return as much of a name as the room for labels has, without what stands in brackets."""
    bare = re.sub(r"\s*\((?:ms|train|dev)\)", "", name).replace("`", "")
    return bare if len(bare) <= 42 else f"{bare[:41].rstrip(' ,')}…"


if __name__ == "__main__":
    main()
