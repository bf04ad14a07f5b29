"""Draw what a terminal shows as SVG: `tmux capture-pane -e -p | python tools/picture.py > picture.svg`.

`python tools/picture.py --run COMMAND...` runs the command itself, in tmux with 100 columns, and prompts with it.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
import unicodedata
from html import escape
from typing import NamedTuple

CELL, ROW, SIZE, PAD = 8.0, 18, 13, 16
PAPER, INK = "#1d1f21", "#d5d8d6"
COLORS = {31: "#f2777a", 32: "#99cc99", 33: "#ffcc66", 34: "#6699cc", 35: "#cc99cc", 36: "#66cccc", 37: "#d5d8d6"}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b[()][A-Z0-9]|[\x0e\x0f\r]")
_WAIT_S = 60.0


class Style(NamedTuple):
    """How text is drawn from here on."""

    color: str = INK
    bold: bool = False
    dim: bool = False


def styled(style: Style, codes: str) -> Style:
    """Return a style after the numbers of an escape sequence."""
    for code in map(int, filter(None, (codes or "0").split(";"))):
        if code in (1, 2):
            style = style._replace(bold=style.bold or code == 1, dim=style.dim or code == 2)
        elif code == 22:
            style = style._replace(bold=False, dim=False)
        else:
            style = Style() if code == 0 else style._replace(color=COLORS.get(code, INK))
    return style if codes else Style()


def cells(text: str) -> int:
    """Return how many columns a text takes."""
    narrow = (unicodedata.combining(sign) or sign in "\u200d\ufe0f" for sign in text)
    wide = (unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return sum(0 if none else 1 + two for none, two in zip(narrow, wide, strict=True))


def svg(screen: str, columns: int) -> str:
    """Return the picture of a screen, as wide as its columns."""
    lines = _OTHER.sub("", screen).rstrip().split("\n")
    width, height = columns * CELL + 2 * PAD, len(lines) * ROW + 2 * PAD
    size = f'viewBox="0 0 {width:g} {height}" width="{width:g}" height="{height}"'
    style, rows = Style(), list[str]()
    for number, line in enumerate(lines):
        at, y = 0, PAD + number * ROW + SIZE
        for place, part in enumerate(_STYLE.split(line)):
            if place % 2:
                style = styled(style, part)
            elif part:
                rows.append(_text(part, PAD + at * CELL, y, style))
                at += cells(part)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
            f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">',
            *rows,
            "</g></svg>\n",
        )
    )


def _text(part: str, x: float, y: float, style: Style) -> str:
    """One run of text, as wide as its columns whatever font is there."""
    weight = ' font-weight="bold"' if style.bold else ""
    faint = ' opacity="0.6"' if style.dim else ""
    blank = len(part) - len(part.lstrip(" "))
    shown = part.strip(" ")
    if not shown:
        return ""
    x += blank * CELL
    size = f' textLength="{cells(shown) * CELL:g}"'
    return f'<text x="{x:g}" y="{y}" fill="{style.color}"{weight}{faint}{size}>{escape(shown)}</text>'


def run(command: list[str], columns: int, rows: int) -> str:
    """Return what a terminal of that size shows once a command is done, after a prompt with it."""
    tmux = ["tmux", "-L", "picture", "-f", "/dev/null"]
    shown = " ".join(f'"{word}"' if " " in word else word for word in command)
    script = f"clear; printf '\\033[32m$\\033[0m %s\\n' {shlex.quote(shown)}; {shlex.join(command)}; exec sleep 60"
    size = ["-x", str(columns), "-y", str(rows)]
    subprocess.run([*tmux, "new-session", "-d", "-s", "picture", *size, "sh", "-c", script], check=True)
    try:
        until = time.monotonic() + _WAIT_S
        while time.monotonic() < until:
            time.sleep(0.2)
            name = ["display-message", "-p", "-t", "picture", "#{pane_current_command}"]
            if subprocess.run([*tmux, *name], capture_output=True, text=True, check=True).stdout.strip() == "sleep":
                break
        screen = [*tmux, "capture-pane", "-e", "-p", "-t", "picture"]
        return subprocess.run(screen, capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run([*tmux, "kill-session", "-t", "picture"], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--run", nargs=argparse.REMAINDER, help="A command to run and its arguments.")
    given = parser.parse_args()
    screen = run(given.run, given.columns, given.rows) if given.run else sys.stdin.read()
    sys.stdout.write(svg(screen, given.columns))


if __name__ == "__main__":
    main()
