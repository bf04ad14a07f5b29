"""What a folder of files costs: the first index, an update with nothing changed, and updates with little changed.

    python bench/files.py                        5,000 Markdown files, 37 MB of real prose (bench/corpus.py)
    python bench/files.py --files 500            fewer
    python bench/files.py --keep DIR             write the files here, or use those written here before
    python bench/files.py --json FILE            the numbers as JSON too

Every number is CPU time (`time.process_time`, all threads) of a step in this process, unless its name says *fresh
process*: then it is the user and system time of a whole `commonplace` command, the interpreter's start included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commonplace.library import Library
from commonplace.model import Filter
from commonplace.models import STATIC, is_gone, open_embedder
from commonplace.models.catalog import DEFAULT
from commonplace.settings import Settings
from commonplace.store.chunks import Chunks
from commonplace.store.listing import Listing
from corpus import Corpus

FILES, FILE_BYTES = 5_000, 6_850  # the last passage goes over: 7,400 bytes on average
FIRST_S, NOTHING_S = 6.0, 0.2
OLD_S = 3600  # how old the files look: what was written a moment ago is rightly not trusted
REPEATS = 5
EMBEDDED = 100  # files whose passages are embedded; by a large model, as many passages


@dataclass(frozen=True)
class Row:
    """One line of the table, in seconds of CPU unless the unit says otherwise."""

    name: str
    value: float
    target: float | None = None
    note: str = ""
    unit: str = "s"


def write_files(folder: Path, corpus: Corpus, count: int) -> int:
    """Markdown with titles, sections, lists and code, in a hundred folders; returns how many bytes."""
    total = 0
    for number in range(count):
        path = folder / f"area-{number % 10}" / f"topic-{number // 10 % 10}" / f"page-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = page(corpus, number)
        path.write_text(text, encoding="utf-8")
        old = time.time() - OLD_S
        os.utime(path, (old, old))
        total += len(text.encode())
    return total


def page(corpus: Corpus, number: int) -> str:
    rng = random.Random(number)
    parts = [f"# {_title(corpus.passage(number * 20))}"]
    passage = number * 20
    while sum(map(len, parts)) < FILE_BYTES:
        passage += 1
        text = corpus.passage(passage)
        if rng.random() < 0.5:
            parts.append(f"{'##' if rng.random() < 0.7 else '###'} {_title(text)}")
        if rng.random() < 0.15:
            parts.append("\n".join(f"- {line}" for line in text.split("\n\n")))
        elif rng.random() < 0.1:
            parts.append(f"```python\n{_title(text).lower().replace(' ', '_')} = {number}\n```")
        else:
            parts.append(text)
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> str:
    return " ".join(text.split()[:5]).strip(".,:;").title()


class Bench:
    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home = folder, home

    def rows(self) -> Iterator[Row]:
        with self._library() as library:
            yield from self._first(library)
            yield from self._again(library)
            yield from self._embedding(library)
        yield from self._fresh("fresh process, update with nothing changed", ["update"])

    def _library(self) -> Library:
        return Library.open(self._home, settings=Settings(home=self._home, model="static"))

    def _first(self, library: Library) -> Iterator[Row]:
        read, report = cpu(lambda: library.add_folder(self._folder, "bench"))
        index, _ = cpu(library.lexical.catch_up)
        yield Row("first lexical index", read + index, FIRST_S, report.line())
        yield Row("  read, cut and store", read)
        yield Row("  index the words", index)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield Row("  peak memory", peak, None, "the corpus included", "MB")

    def _again(self, library: Library) -> Iterator[Row]:
        change = library.store.last_change()
        times = [cpu(lambda: library.folders.update("bench"))[0] for _ in range(REPEATS)]
        assert library.store.last_change() == change
        yield Row("update with nothing changed", statistics.median(times), NOTHING_S)
        for path in self._files()[:10]:
            path.write_text(path.read_text("utf-8") + "\nOne more line about tea.\n", "utf-8")
        spent, report = cpu(lambda: (library.folders.update("bench"), library.lexical.catch_up())[0])
        yield Row("ten files changed, searchable", spent, None, report.line())
        spent, report = cpu(lambda: library.folders.update("bench", force=True))
        yield Row("forced update: every file hashed", spent, None, report.line())

    def _embedding(self, library: Library) -> Iterator[Row]:
        """Passages per second of CPU, by the model that needs no download and by the default where it was pulled."""
        texts = [chunk.text for item in library.store.drawer(Listing).scan(Filter(kinds=("document",)), limit=EMBEDDED)
                 for chunk in library.store.drawer(Chunks).of(item.id)]  # fmt: skip
        for name, count in ((STATIC, len(texts)), (DEFAULT, EMBEDDED)):
            if not is_gone(name, library.settings.models):
                embedder = open_embedder(name, library.settings.models, settings=library.settings)
                embedder.warm()
                spent, _ = cpu(lambda e=embedder, n=count: e.embed_passages(texts[:n]))  # type: ignore[misc]
                yield Row(f"embedding with {name}", count / spent, None, "per second of CPU", "passages")

    def _files(self) -> list[Path]:
        return sorted(self._folder.rglob("*.md"))

    def _fresh(self, name: str, arguments: list[str]) -> Iterator[Row]:
        environment = {**os.environ, "COMMONPLACE_HOME": str(self._home), "COMMONPLACE_MODEL": "static"}
        command = [sys.executable, "-m", "commonplace", *arguments]
        times = []
        for _ in range(REPEATS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        yield Row(name, statistics.median(times), None, done.stdout.splitlines()[0])


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def show(row: Row) -> str:
    mark = "" if row.target is None else "ok" if row.value <= row.target else "OVER"
    target = "" if row.target is None else f"{row.target:.2f}"
    return f"{row.name:46} {row.value:9.3f} {row.unit:3} {target:>7} {mark:4} {row.note}".rstrip()


@contextmanager
def places(keep: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where the files and the library are. The library is always new."""
    made = Path(tempfile.mkdtemp(prefix="commonplace-bench-"))
    try:
        yield keep or made / "files", made / "home"
    finally:
        shutil.rmtree(made, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--text", type=Path, help="Your own text instead of this machine's.")
    parser.add_argument("--keep", type=Path, help="Write the files here, or use those written here before.")
    parser.add_argument("--json", type=Path, help="Write the numbers to this file as well.")
    options = parser.parse_args()
    with places(options.keep) as (folder, home):
        if not folder.exists():
            write_files(folder, Corpus(options.text), options.files)
        sizes = [path.stat().st_size for path in folder.rglob("*.md")]
        print(
            f"{len(sizes):,} files, {sum(sizes) / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
        print(f"{'CPU':46} {'':9} {'':3} {'target':>7}", flush=True)
        rows = []
        for row in Bench(folder, home).rows():
            print(show(row), flush=True)
            rows.append(asdict(row))
    if options.json:
        machine = {"machine": platform.platform(), "python": platform.python_version()}
        result = {**machine, "files": len(sizes), "bytes": sum(sizes), "rows": rows}
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
