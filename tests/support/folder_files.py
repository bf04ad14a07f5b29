"""A small library of files in several languages, scripts and formats, and ways to make it look old."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# Tides\n", "\n", "Measured at the pier."]},
            {"cell_type": "code", "source": "height = sine(moon)", "outputs": [{"text": "never shown"}]},
            {"cell_type": "code", "source": "   "},
            {"cell_type": "raw", "source": "```\nfenced already\n```"},
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
    }
)
PAGE = (
    "<html><head><title>From the head</title><style>p { color: red }</style><script>alert(1)</script></head><body>"
    "<nav><a href=/>Home navigation</a></nav><h1>Lighthouse</h1><p>It <b>turns</b> at night &amp; by day.</p>"
    "<h2>Lamp</h2><ul><li>Fresnel<li>Lens</ul><pre>code &lt;here&gt;\n  kept</pre>"
    "<table><tr><th>Year<th>Height</tr><tr><td>1870<td>42 m</tr></table></body></html>"
)
WORLD: dict[str, bytes] = {
    "english.md": b"# Oolong\n\nWater just off the boil.\n",
    "deutsch.md": "# Grüße\n\nDer Tee zieht drei Minuten.\n".encode(),
    "日本/茶.md": "# お茶\n\n煎茶は八十度の湯で。\n".encode(),
    "русский/чай.md": "# Чай\n\nЗаваривать три минуты.\n".encode(),
    "العربية.md": "# شاي\n\nثلاث دقائق.\n".encode(),
    "ไทย.txt": "ชาเขียวร้อน\n".encode(),
    "utf16.md": "# Sechzehn\n\nZwei Bytes je Zeichen: ж.\n".encode("utf-16"),
    "bom.md": b"\xef\xbb\xbf# Marked\n\nWith a mark.\n",
    "crlf.md": b"# Lines\r\n\r\nEnd in two characters.\r\n",
    "sections.rst": b"Harbour\n=======\n\nShips.\n",
    "tasks.org": b"#+TITLE: Errands\n* TODO Buy tea\n",
    "plain.txt": b"No title here.\n",
    "tides.ipynb": NOTEBOOK.encode(),
    "lighthouse.html": PAGE.encode(),
    "code/tool.py": b'"""A tool."""\n\n\ndef turn(angle):\n    return angle\n',
    "code/tool.rs": b"fn turn() {}\n",
    "front.md": b"---\ntitle: Given by hand\n---\n\n# Heading\n",
    "notes.md": "# 📝 Notes\n\n## Real title\n\ntext\n".encode(),
}


def build(root: Path, files: dict[str, bytes] = WORLD) -> Path:
    """Write files, an hour old, so that they are trusted once they were read."""
    for path, data in files.items():
        write(root / path, data)
    return root


def write(path: Path, data: bytes | str, *, age_s: float = 3600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    moment = time.time_ns() - int(age_s * 1e9)
    os.utime(path, ns=(moment, moment))


def swap_unseen(path: Path, data: bytes) -> None:
    """Other content of the same size behind the same size, time and inode: only who opens the file can tell."""
    before = path.stat()
    assert len(data) == before.st_size
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_ino == before.st_ino
