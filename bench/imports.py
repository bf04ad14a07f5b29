"""How fast each format is imported, and how much memory a large export takes.

    python bench/imports.py                  a few megabytes of every format
    python bench/imports.py --gigabytes 1    a ChatGPT export of that size as well; 300 MB is the bound

Every import is `commonplace import` in a process of its own, with a home of its own: CPU time and the most memory that
the process ever held, the interpreter's start included.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

_RANDOM = Random(11)
_WORDS = [f"w{rank}" for rank in range(20_000)]
_WEIGHTS = [1 / (rank + 5) for rank in range(20_000)]
MOST_MB = 300


def words(count: int) -> str:
    return " ".join(_RANDOM.choices(_WORDS, _WEIGHTS, k=count))


class Format(NamedTuple):
    kind: str
    suffix: str
    make: Callable[[int], bytes]
    """A file of its own for each number."""
    files: int


def note(number: int) -> bytes:
    return f"# Note {number}\n\n{words(150)}\n\n## {words(3)}\n\n{words(150)}".encode()


def clock(ms: int, point: str) -> str:
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def subtitles(head: str, point: str) -> bytes:
    cues = (f"{clock(n * 3000, point)} --> {clock(n * 3000 + 2500, point)}\n{words(9)}\n" for n in range(3000))
    return (head + "\n".join(cues)).encode()


def whisper(_: int) -> bytes:
    said = [{"start": n * 3.0, "end": n * 3.0 + 2.5, "text": words(9)} for n in range(3000)]
    return json.dumps({"segments": said}).encode()


def page(number: int) -> str:
    parts = "".join(f"<h2>{words(3)}</h2><p>{words(150)}</p>" for _ in range(40))
    return f"<html><head><title>Page {number}</title></head><body><main>{parts}</main></body></html>"


def zipped(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def epub(number: int) -> bytes:
    container = "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles>"
    container += "<rootfile full-path='book.opf' media-type='application/oebps-package+xml'/></rootfiles></container>"
    chapters = [f"c{n}" for n in range(10)]
    items = "".join(f"<item id='{c}' href='{c}.xhtml' media-type='application/xhtml+xml'/>" for c in chapters)
    spine = "".join(f"<itemref idref='{c}'/>" for c in chapters)
    title = f"<dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>Book {number}</dc:title>"
    book = f"<package xmlns='http://www.idpf.org/2007/opf'><metadata>{title}</metadata>"
    book += f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    files = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "book.opf": book}
    return zipped(files | {f"{c}.xhtml": page(number) for c in chapters})


def docx(_: int) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    parts = "".join(f"<w:p><w:r><w:t>{words(80)}</w:t></w:r></w:p>" for _ in range(400))
    types = "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"
    body = f"<w:document xmlns:w='{space}'><w:body>{parts}</w:body></w:document>"
    return zipped({"[Content_Types].xml": types, "word/document.xml": body})


def pdf(_: int) -> bytes:
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    pages = []
    for _ in range(20):
        lines = "".join(f"({words(10)}) Tj 0 -14 Td " for _ in range(40))
        text = f"BT /F1 11 Tf 60 780 Td {lines}ET"
        objects.append(f"<< /Length {len(text)} >>\nstream\n{text}\nendstream")
        pages.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /Contents {len(objects)} 0 R /MediaBox [0 0 595 842] "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{n} 0 R' for n in pages)}] >>"
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, written in enumerate(objects, start=1):
        places.append(len(made))
        made += f"{number} 0 obj\n{written}\nendobj\n".encode()
    start = len(made)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    made += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(made)


def chatgpt_talk(number: int, turns: int = 40) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": ["0"], "message": None}}
    for turn in range(turns):
        content = {"content_type": "text", "parts": [words(60)]}
        message = {"id": f"{number}-{turn}", "author": {"role": ("user", "assistant")[turn % 2]}, "content": content}
        parent, children = str(turn - 1) if turn else "root", [str(turn + 1)] if turn + 1 < turns else []
        mapping[str(turn)] = {"id": str(turn), "parent": parent, "children": children, "message": message}
    return {"id": f"c{number}", "title": words(4), "mapping": mapping, "current_node": str(turns - 1)}


def chatgpt(number: int) -> bytes:
    return json.dumps([chatgpt_talk(number * 100 + talk) for talk in range(50)]).encode()


def claude(number: int) -> bytes:
    talks = []
    for talk in range(40):
        said = [
            {"uuid": f"{number}-{talk}-{n}", "sender": ("human", "assistant")[n % 2], "text": words(60)}
            for n in range(40)
        ]
        talks.append({"uuid": f"{number}-{talk}", "name": words(4), "chat_messages": said})
    return json.dumps(talks).encode()


def sillytavern(_: int) -> bytes:
    lines: list[dict[str, Any]] = [{"user_name": "Me", "character_name": "Ada"}]
    lines += [{"name": ("Me", "Ada")[n % 2], "is_user": n % 2 == 0, "mes": words(60)} for n in range(1000)]
    return "\n".join(map(json.dumps, lines)).encode()


def pairs(_: int) -> bytes:
    return json.dumps({"char_name": "Ada", "history": [[words(60), words(60)] for _ in range(500)]}).encode()


def messages(_: int) -> bytes:
    said = [{"role": ("user", "assistant")[n % 2], "content": words(60)} for n in range(1000)]
    return json.dumps({"title": words(4), "messages": said}).encode()


def card(number: int) -> dict[str, Any]:
    data = {"name": f"Ada {number}", "description": words(300), "personality": words(100), "first_mes": words(80)}
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}


def png(number: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    text = b"chara\0" + base64.b64encode(json.dumps(card(number)).encode())
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head), (b"tEXt", text), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def prompt_list(number: int) -> list[dict[str, str]]:
    return [{"name": f"p{number}-{n}", "details": words(20), "user_prompt": words(150)} for n in range(500)]


def prompt_csv(number: int) -> bytes:
    made = io.StringIO()
    writer = csv.DictWriter(made, ["name", "details", "user_prompt"])
    writer.writeheader()
    writer.writerows(prompt_list(number))
    return made.getvalue().encode()


FORMATS = {
    "markdown": Format("notes", ".md", note, 1000),
    "srt": Format("media", ".srt", lambda _: subtitles("", ","), 10),
    "vtt": Format("media", ".vtt", lambda _: subtitles("WEBVTT\n\n", "."), 10),
    "whisper": Format("media", ".json", whisper, 10),
    "html": Format("media", ".html", lambda n: page(n).encode(), 50),
    "epub": Format("media", ".epub", epub, 5),
    "docx": Format("media", ".docx", docx, 10),
    "pdf": Format("media", ".pdf", pdf, 20),
    "chatgpt": Format("chats", ".json", chatgpt, 2),
    "claude": Format("chats", ".json", claude, 2),
    "sillytavern": Format("chats", ".jsonl", sillytavern, 5),
    "pairs": Format("chats", ".json", pairs, 5),
    "messages": Format("chats", ".json", messages, 5),
    "card (JSON)": Format("characters", ".json", lambda n: json.dumps(card(n)).encode(), 500),
    "card (PNG)": Format("characters", ".png", png, 500),
    "prompts (JSON)": Format("prompts", ".json", lambda n: json.dumps(prompt_list(n)).encode(), 2),
    "prompts (CSV)": Format("prompts", ".csv", prompt_csv, 2),
}


def imported(kind: str, path: Path, home: Path) -> tuple[float, float, str]:
    """CPU seconds, megabytes held at most, and what it said."""
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_IMPORT_MAX_BYTES": str(1 << 40)}
    command = [sys.executable, "-m", "commonplace", "import", kind, str(path), "--json"]
    with tempfile.TemporaryFile() as out:
        started = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        told = json.loads(out.read())
    line = ", ".join(f"{told[name]} {name}" for name in ("created", "failed") if told[name] or name == "created")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, line


def talks(size: int) -> Iterator[bytes]:
    """A ChatGPT export of about this many bytes, written as it grows: the same hundred talks under other ids."""
    made = [json.dumps(chatgpt_talk(n, 100)).replace(f'"{n}-', '"@-').replace(f'"c{n}"', '"c@"') for n in range(100)]
    written = number = 0
    yield b"["
    while written < size:
        talk = made[number % len(made)].replace("@", f"x{number}").encode()
        yield (b",\n" if number else b"") + talk
        written, number = written + len(talk), number + 1
    yield b"]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=0, help="import a ChatGPT export of this size, too")
    parser.add_argument("--only-large", action="store_true", help="leave the small files out")
    parser.add_argument("--folder", type=Path, help="where files and homes are made; a temporary one by default")
    asked = parser.parse_args()
    kept = True
    with tempfile.TemporaryDirectory(dir=asked.folder) as made:
        print(f"{'format':16}{'MB':>7}{'CPU s':>8}{'MB/s':>7}{'RSS MB':>8}")
        for name, format in () if asked.only_large else FORMATS.items():
            folder = Path(made) / name.replace(" ", "-")
            folder.mkdir()
            for number in range(format.files):
                (folder / f"{number}{format.suffix}").write_bytes(format.make(number))
            size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            cpu, rss, told = imported(format.kind, folder, Path(made) / f"home-{folder.name}")
            print(f"{name:16}{size:7.1f}{cpu:8.2f}{size / cpu:7.2f}{rss:8.0f}  {told}", flush=True)
        if asked.gigabytes:
            path = Path(made) / "conversations.json"
            with path.open("wb") as file:
                file.writelines(talks(int(asked.gigabytes * 1e9)))
            cpu, rss, told = imported("chats", path, Path(made) / "home-large")
            size = path.stat().st_size / 1e6
            kept = rss <= MOST_MB
            print(f"{'chatgpt, large':16}{size:7.0f}{cpu:8.1f}{size / cpu:7.2f}{rss:8.0f}  {told}, bound {MOST_MB} MB")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
