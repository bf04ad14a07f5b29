"""What a call of the documents surface costs, in process, beside doing it without what was kept at ingest.

    python bench/documents.py                        20,000 documents of real prose (bench/corpus.py)
    python bench/documents.py --documents 2000       fewer
    python bench/documents.py --keep DIR             keep the library here, or use the one kept before
    python bench/documents.py --json FILE            the numbers as JSON too

Every number is milliseconds of CPU (`time.process_time`, all threads) of one call of a tool, its arguments checked: the
mean of up to a hundred calls with different arguments, the least of five such rounds. *naive* loads whole documents and
finds headings in them with a regular expression, which is what a server without outlines does and gets wrong inside
code; for the batch it is one search after another.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from commonplace.kinds.documents.collection_files import CollectionFiles
from commonplace.kinds.documents.outlines import Outlines
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.registry import profile
from commonplace.settings import Settings
from commonplace.store.items import Items
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call
from corpus import Corpus
from files import Row

DOCUMENTS, CHARS = 20_000, 2_000
CALLS = 100
COLLECTION = "bench"
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.M)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep or Path(scratch)
        corpus = Corpus()
        with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
            fill(library, home, corpus, options.documents)
            total = library.store.drawer(Outlines).counts([COLLECTION])[COLLECTION]
            print(f"{total:,} documents; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
            rows = []
            for row in Bench(library, corpus, total).rows():
                mark = "" if row.target is None else "ok" if row.value <= row.target else "OVER"
                target = "" if row.target is None else f"{row.target:g}"
                print(
                    f"{row.name:44} {row.value:9.2f} {row.unit:3} {target:>6} {mark:4} {row.note}".rstrip(), flush=True
                )
                rows.append(asdict(row))
    if options.json:
        options.json.write_text(json.dumps({"documents": total, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def fill(library: Library, home: Path, corpus: Corpus, count: int) -> None:
    """Documents with titles, sections and code in them, indexed and embedded."""
    if library.store.drawer(Outlines).counts([COLLECTION]):
        return
    root = home / "empty"
    root.mkdir(parents=True, exist_ok=True)
    library.folders.add(root, COLLECTION)
    library.put_many(
        Draft("document", key(number), parent=COLLECTION, title=_title(text), body=text, format="markdown")
        for number, text in ((number, document(corpus, number)) for number in range(count))
    )
    library.lexical.catch_up()
    library.embed()


def key(number: int) -> str:
    return f"area-{number % 20}/page-{number:05}.md"


def document(corpus: Corpus, number: int) -> str:
    rng = random.Random(number)
    passage = number * 5
    parts = [f"# {_title(corpus.passage(passage))}"]
    while sum(map(len, parts)) < CHARS:
        passage += 1
        text = corpus.passage(passage)
        parts += [f"## {_title(text)}", text]
        if rng.random() < 0.3:
            parts.append(f"```python\n# {_title(text).lower()}\nvalue = {number}\n```")
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> str:
    return " ".join(text.removeprefix("# ").split()[:5]).strip(".,:;").title()


class Bench:
    def __init__(self, library: Library, corpus: Corpus, total: int) -> None:
        self._library, self._total = library, total
        self._registry = Registry(profile("documents"), writable=False)
        rng = random.Random(1)
        self._numbers = [rng.randrange(total) for _ in range(CALLS)]
        self._queries = corpus.short_queries(CALLS, total)
        self._questions = corpus.long_queries(CALLS, total)

    def rows(self) -> Iterator[Row]:
        pages = [{"collection": COLLECTION, "offset": number // 100 * 100} for number in self._numbers]
        places = [{"collection": COLLECTION, "document": key(number)} for number in self._numbers]
        yield self._tool("list collections", "list_collections", [{}])
        yield self._tool("list documents, a page of 100", "list_documents", pages, 5)
        yield _row("  naive", cpu(self._naive_page, self._numbers[:20]))
        yield self._tool("outline", "get_outline", places, 5)
        yield _row("  naive", cpu(self._naive_outline, self._numbers))
        sections = [{**place, "section": self._heading(place["document"])} for place in places]
        yield self._tool("section", "get_section", sections, 5)
        yield _row("  naive", cpu(self._naive_section, sections))
        yield self._tool("search, three words", "search", [{"query": query} for query in self._queries])
        yield self._tool("search, a question", "search", [{"query": query} for query in self._questions])
        ten = [{"query": query} for query in (*self._queries[:5], *self._questions[:5])]
        rng = random.Random(2)
        yield self._tool("batch of 10", "search_batch", [{"queries": rng.sample(ten, 10)} for _ in range(20)], 20)
        yield _row(
            "  naive: ten searches",
            cpu(lambda _: [self._call("search", {**one, "limit": 5}) for one in ten], range(10)),
        )
        yield self._tool("related", "find_related", places, 5)
        text = "How threads share memory and when a lock is needed to keep it consistent."
        yield self._tool("related to a text", "find_related", [{**place, "chunk": text} for place in places])

    def _tool(self, name: str, tool: str, arguments: Sequence[dict[str, Any]], target: float | None = None) -> Row:
        return _row(name, cpu(lambda given: self._call(tool, given), arguments), target)

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        found = self._registry.find(f"documents_{tool}")
        assert found is not None
        return found.call(Call(self._library), arguments)

    def _heading(self, document: str) -> str:
        item = self._library.store.drawer(Items).find("document", COLLECTION, document)
        return str(_HEADING.findall(item.body)[-1][1])

    def _body(self, document: str) -> str:
        return str(self._library.store.drawer(Items).find("document", COLLECTION, document).body)

    def _naive_page(self, number: int) -> list[tuple[str, str, int]]:
        keys = sorted(self._library.store.drawer(CollectionFiles).versions(COLLECTION))[number // 100 * 100 :][:100]
        texts = ((name, self._body(name)) for name in keys)
        return [(name, found[2] if (found := _HEADING.search(text)) else name, len(text)) for name, text in texts]

    def _naive_outline(self, number: int) -> list[tuple[int, str, int]]:
        text = self._body(key(number))
        return [(len(one[1]), one[2], text.count("\n", 0, one.start()) + 1) for one in _HEADING.finditer(text)]

    def _naive_section(self, given: dict[str, Any]) -> str:
        text = self._body(given["document"])
        found = list(_HEADING.finditer(text))
        at = next(number for number, one in enumerate(found) if given["section"].lower() in one[2].lower())
        ends = [one.start() for one in found[at + 1 :] if len(one[1]) <= len(found[at][1])]
        return text[found[at].start() : ends[0] if ends else len(text)]


def cpu(work: Callable[[Any], Any], arguments: Sequence[Any]) -> float:
    """Milliseconds of CPU per call, the least of five rounds, of which the first also warms up."""
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for given in arguments:
            work(given)
        rounds.append((time.process_time() - start) / len(arguments) * 1000)
    return min(rounds)


def _row(name: str, value: float, target: float | None = None) -> Row:
    return Row(name, value, target, unit="ms")


if __name__ == "__main__":
    main()
