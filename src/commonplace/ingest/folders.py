"""A folder of files becomes a collection of documents, and stays one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from commonplace.errors import InvalidInput, NotFound
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, Filter
from commonplace.store.base import Store, Write
from commonplace.text.structure import title_of

DEFAULT_PATTERN = "**/*.{md,markdown,mdx,txt,rst,org}"
LARGEST = 16 * 1024 * 1024
BATCH_CHARS = 8_000_000
_SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build", "__pycache__"})
_MARKDOWN = frozenset({".md", ".markdown", ".mdx"})


@dataclass(slots=True)
class Report:
    """What a pass over a folder did."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(path, reason)"""

    def line(self) -> str:
        line = f"{self.added} new, {self.updated} updated, {self.unchanged} unchanged, {self.removed} removed"
        return f"{line}, {len(self.skipped)} skipped" if self.skipped else line


def add_folder(store: Store, name: str, root: Path, pattern: str = DEFAULT_PATTERN) -> Report:
    """Bring a collection level with its folder: new, changed and vanished files, each file's failure its own."""
    root = _checked_root(root, name)
    store.put([prepare(Draft("collection", name, title=name, fields={"root": str(root), "pattern": pattern}))])
    report, seen = Report(), set()
    batch: list[Write] = []
    size = 0
    for path in find_files(root, pattern, report):
        key = path.relative_to(root).as_posix()
        body = _read(path, key, report)
        if body is None:
            if store.item("document", name, key, body=False) is not None and report.skipped[-1][1] != "EMPTY":
                seen.add(key)  # unreadable for now: its last version stays
            continue
        seen.add(key)
        write = prepare(_draft(name, key, body))
        batch.append(write)
        size += len(body)
        if size >= BATCH_CHARS:
            _write(store, batch, report)
            batch, size = [], 0
    _write(store, batch, report)
    report.removed = _remove_vanished(store, name, seen)
    return report


def find_files(root: Path, pattern: str, report: Report) -> Iterator[Path]:
    """The files a pattern names, in order, but for hidden and generated ones. Links never leave the root."""
    from wcmatch import glob  # slow to load, and only folders need it

    matches = glob.compile(pattern, flags=glob.GLOBSTAR | glob.BRACE)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder, name)
            relative = PurePosixPath(path.relative_to(root).as_posix())
            if name.startswith(".") or not matches.match(str(relative)):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
                report.skipped.append((str(relative), "OUTSIDE_COLLECTION"))
                continue
            yield path


def _checked_root(root: Path, name: str) -> Path:
    if not name or len(name) > 100 or "/" in name or name[0] in ".#" or not name.isprintable():
        raise InvalidInput(
            f"A collection's name has 1–100 printable characters, no slash, and no leading dot or #: not {name!r}."
        )
    root = root.expanduser().resolve()
    if not root.exists():
        raise NotFound(f"There is no folder {root}.")
    if not root.is_dir():
        raise InvalidInput(f"{root} is a file. Add the folder it is in.")
    return root


def _read(path: Path, key: str, report: Report) -> str | None:
    """The text of a file, or None with the reason in the report."""
    try:
        if path.stat().st_size > LARGEST:
            report.skipped.append((key, "TOO_LARGE"))
            return None
        data = path.read_bytes()
    except OSError as error:
        report.skipped.append((key, str(error.strerror or error)))
        return None
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        report.skipped.append((key, "BINARY"))
        return None
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    body = data.decode(encoding, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not body.strip():
        report.skipped.append((key, "EMPTY"))
        return None
    return body


def _draft(name: str, key: str, body: str) -> Draft:
    path = PurePosixPath(key)
    format = "markdown" if path.suffix.lower() in _MARKDOWN else "text"
    return Draft("document", key, parent=name, title=title_of(body, format, path.stem), body=body, format=format)


def _write(store: Store, batch: list[Write], report: Report) -> None:
    known = {
        write.draft.key: store.item("document", write.draft.parent, write.draft.key, body=False) for write in batch
    }
    for item in store.put(batch):
        old = known[item.key]
        if old is None:
            report.added += 1
        elif old.version != item.version:
            report.updated += 1
        else:
            report.unchanged += 1


def _remove_vanished(store: Store, name: str, seen: set[str]) -> int:
    gone: list[int] = []
    after = 0
    while items := store.scan(Filter(kinds=("document",), parents=(name,)), after=after):
        after = items[-1].id
        gone += [item.id for item in items if item.key not in seen]
    return store.delete(gone) if gone else 0
