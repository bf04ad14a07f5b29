"""Known items: does what holds the words of a query alone come first, and does it score what it should?

    python bench/known_items.py                    700 items of docs, code, chats and notes, the static model
    python bench/known_items.py --model NAME       another model
    python bench/known_items.py --items 200 --seed 3

Texts are what every Python installation says about itself: manuals, source code, docstrings as messages of chats and as
notes, with names and codes of our own in some. A query is one to four words that stand together or apart in exactly one
item: a rare word, a name, a code, a few words in a row, a few from anywhere. Prints hit@1 for every mode that looks at
words and hit@10 for meaning alone, of every surface; and the least score of what is alone.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import re
import sys
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics
from typing import Any

from commonplace.kinds.tables.tools import PROFILE
from commonplace.kinds.tables.tools.types import run_tool
from commonplace.library import Library
from commonplace.model import Draft, Filter
from commonplace.search.question import Question, Search
from commonplace.server.calls import run
from commonplace.settings import Settings
from commonplace.store.items import Items
from commonplace.text.analyze import stems
from commonplace.text.languages import stop_words
from commonplace.tools.tool import Call

KINDS = ("docs", "code", "chats", "notes")
SHAPES = ("rare", "name", "code", "together", "apart")
MODULES = (
    "argparse", "ast", "asyncio.base_events", "bdb", "calendar", "codecs", "collections", "configparser", "csv",
    "ctypes.util", "datetime", "decimal", "difflib", "doctest", "email.message", "fractions", "ftplib", "gettext",
    "gzip", "heapq", "http.client", "http.cookiejar", "imaplib", "inspect", "ipaddress", "json.encoder", "locale",
    "logging", "mailbox", "mimetypes", "pathlib", "pickle", "platform", "plistlib", "poplib", "pprint", "queue",
    "random", "sched", "selectors", "shelve", "shutil", "smtplib", "socketserver", "statistics", "string",
    "tarfile", "tempfile", "textwrap", "threading", "tokenize", "trace", "turtle", "typing", "unittest.mock",
    "urllib.parse", "urllib.request", "uuid", "wave", "weakref", "webbrowser", "xml.dom.minidom", "zipfile",
)  # fmt: skip
FIRST = (
    "Ilse",
    "Tomas",
    "Noor",
    "Radu",
    "Svea",
    "Kofi",
    "Marit",
    "Jiro",
    "Elin",
    "Pavel",
    "Amara",
    "Luca",
    "Yara",
    "Otis",
)
LAST = ("Marquardt", "Okonkwo", "Lindqvist", "Ferreira", "Novotny", "Takeda", "Abebe", "Castellano", "Brandt", "Haugen")
_WORD = re.compile(r"[A-Za-z][a-z]{2,}")
_SENTENCE = re.compile(r"[^.!?\n][^.!?]*[.!?]")
MOST_CHARS, LEAST_WORDS = 1_500, 12
TALK = "Talk"
"""What every conversation is called, with a number."""


@dataclass(frozen=True)
class Known:
    """A query, the item that alone holds its words, and how it was made."""

    query: str
    key: str
    kind: str
    shape: str


@dataclass(frozen=True)
class Shelf:
    """The items of a kind each by key, and what is asked of them."""

    texts: Mapping[str, Mapping[str, str]]
    items: Sequence[Known]


def shelf(count: int, seed: int = 7, texts: int = 1_200) -> Shelf:
    """`count` known items, as many of every kind and shape as there are, among so many texts."""
    rng = random.Random(seed)
    made = {kind: _planted(dict(_texts(kind, texts // len(KINDS), rng)), kind, rng) for kind in KINDS}
    holders: dict[str, set[str]] = defaultdict(set)
    for texts_of_kind in made.values():
        for key, text in texts_of_kind.items():
            for stem in set(stems(f"{named(key)}\n{text}", "en").split()):
                holders[stem].add(key)
    items: list[Known] = []
    turn = 0
    while len(items) < count and turn < 40 * count:
        kind, shape = KINDS[turn % len(KINDS)], SHAPES[turn // len(KINDS) % len(SHAPES)]
        turn += 1
        key = rng.choice(sorted(made[kind]))
        query = _query(made[kind][key], shape, rng, lambda stem: len(holders[stem]))
        if query and _holders(query, holders) == {key} and query not in {item.query for item in items}:
            items.append(Known(query, key, kind, shape))
    return Shelf(made, items)


def named(key: str) -> str:
    """What an item is called, which is searched as well: a document by its key, a message by its conversation."""
    return TALK if key.startswith("chats") else key


def _texts(kind: str, count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    sources = {"docs": _manuals, "code": _functions, "chats": _sayings, "notes": _remarks}
    found = [text for text in sources[kind]() if len(_WORD.findall(text)) >= LEAST_WORDS]
    rng.shuffle(found)
    for number, text in enumerate(found[:count]):
        yield f"{kind}-{number}", text[:MOST_CHARS]


def _manuals() -> Iterator[str]:
    for name in sorted(topics.topics):
        text = topics.topics[name]
        for start in range(0, len(text), MOST_CHARS):
            yield text[start : start + MOST_CHARS]


def _functions() -> Iterator[str]:
    for module in MODULES[::2]:
        yield from (source for source, _ in _defined(module))


def _sayings() -> Iterator[str]:
    for module in MODULES[1::4]:
        for _, said in _defined(module):
            yield from _SENTENCE.findall(said)


def _remarks() -> Iterator[str]:
    for module in MODULES[3::4]:
        for _, said in _defined(module):
            yield from textwrap.dedent(said).split("\n\n")


def _defined(module: str) -> Iterator[tuple[str, str]]:
    """The source and the docstring of every function of a module."""
    __import__(module)
    source = inspect.getsource(sys.modules[module])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and (said := ast.get_docstring(node)):
            yield ast.get_source_segment(source, node) or "", said


def _planted(texts: dict[str, str], kind: str, rng: random.Random) -> dict[str, str]:
    """A third of the texts names somebody, another third has a code. Each name is one of a kind, its parts are not."""
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    random.Random(kind).shuffle(names)
    share = KINDS.index(kind), len(KINDS)
    names = sorted(names)[share[0] :: share[1]]
    for number, key in enumerate(sorted(texts)):
        if number % 3 == 0 and names:
            texts[key] += f"\nAsk {names.pop()} about it."
        elif number % 3 == 1:
            code = rng.choice(("ERR-{}", "INV-2024-{}", "build_{}", "v4.{}.1", "RFC{}")).format(
                rng.randrange(1000, 9999)
            )
            texts[key] += f"\nSee {code} for more."
    return texts


def _query(text: str, shape: str, rng: random.Random, spread: Callable[[str], int]) -> str:
    if shape == "name":
        found = re.search(r"Ask (\w+ \w+) about", text)
        return found[1] if found else ""
    if shape == "code":
        found = re.search(r"See (\S+) for more", text)
        return found[1] if found else ""
    words = [word for word in _WORD.findall(text) if word.lower() not in stop_words("en")]
    if len(words) < 4:
        return ""
    if shape == "rare":
        alone = [word for word in words if all(spread(stem) == 1 for stem in stems(word, "en").split())]
        return rng.choice(alone) if alone else ""
    count = rng.randint(2, 4)
    if shape == "together":
        start = rng.randrange(len(words) - count + 1)
        return " ".join(words[start : start + count])
    return " ".join(rng.sample(sorted(set(words)), min(count, len(set(words)))))


def _holders(query: str, holders: Mapping[str, set[str]]) -> set[str]:
    each = [holders.get(stem, set()) for stem in stems(query, "en").split()]
    return set[str].intersection(*each) if each else set()


def fill(library: Library, texts: Mapping[str, Mapping[str, str]]) -> None:
    """Docs and code as documents, notes as notes, chats as conversations of messages."""
    library.put_many(
        Draft("document", key, parent=kind, body=text) for kind in ("docs", "code") for key, text in texts[kind].items()
    )
    library.put_many(Draft("note", key, body=text) for key, text in texts["notes"].items())
    keys = sorted(texts["chats"])
    for first in range(0, len(keys), 20):
        talk = f"talk-{first}"
        library.put(Draft("conversation", talk, title=f"{TALK} {first}"))
        library.put_many(
            Draft("message", key, parent=talk, body=texts["chats"][key]) for key in keys[first : first + 20]
        )
    library.embed()


Ask = Callable[[str, int], list[tuple[str, float]]]
"""The keys and scores of the best hits for a query."""


def asks(library: Library) -> dict[str, tuple[Ask, tuple[str, ...]]]:
    """Every way to ask, with the kinds that it can answer about."""
    found: dict[str, tuple[Ask, tuple[str, ...]]] = {}
    for mode in ("auto", "lexical", "hybrid", "semantic"):
        found[mode] = _search(library, mode=mode), KINDS
    found["auto, second look"] = _search(library, rerank=True), KINDS
    for name, kinds in (("search", ("lex",)), ("query", ("lex", "vec")), ("vsearch, semantic", ("vec",))):
        found[f"qmd {name}"] = _qmd(library, kinds), ("docs", "code")
    found["documents"] = (
        _search(library, mode="auto", filter=Filter(kinds=("document",)), by="document"),
        ("docs", "code"),
    )
    found["knowledge"] = _knowledge(library), KINDS
    return found


def _search(library: Library, *, by: str = "", **more: Any) -> Ask:
    def ask(query: str, limit: int) -> list[tuple[str, float]]:
        return [(hit.item.key, hit.score) for hit in library.search(query, limit=limit, **more).hits]

    return ask


def _qmd(library: Library, kinds: Sequence[Any]) -> Ask:
    def ask(query: str, limit: int) -> list[tuple[str, float]]:
        searches = tuple(Search(kind, query) for kind in kinds)
        asked = Question(searches, Filter(kinds=("document",)), plain=True, limit=limit, rerank=len(kinds) > 1)
        hits = library.hybrid.find(asked).hits
        keys = {item.id: item.key for item in library.store.drawer(Items).get([hit.item_id for hit in hits])}
        return [(keys[hit.item_id], hit.score) for hit in hits]

    return ask


def _knowledge(library: Library) -> Ask:
    from commonplace.kinds.knowledge.item_search import SearchRequest as Knowledge

    sources = ("notes", "media", "characters", "prompts", "documents", "chats")

    def ask(query: str, limit: int) -> list[tuple[str, float]]:
        results = library.knowledge.finding.search(Knowledge(query, sources, limit=limit))
        return [(hit.item.key, hit.score) for hit in results.hits]

    return ask


def tabled(library: Library, texts: Mapping[str, str]) -> Ask:
    """A table with these texts, a row each, and the tool that searches it."""
    call, keys = Call(library), sorted(texts)
    tools = {tool.name: tool for tool in PROFILE.tools}
    run(tools["project_create"], call, {"name": "known"})
    data = {"rows": [{"text": texts[key]} for key in keys]}
    made: Any = run(tools["table_create"], call, {"project_id": "known", "name": "items", "data": data})
    bound = {"table_id": made["table"]["table_id"], "type": "search", "name": "find", "json_path": "/rows"}
    tool: Any = run(tools["tool_create"], call, bound)
    while library.tables.jobs.step():
        pass
    library.embed()

    def ask(query: str, limit: int) -> list[tuple[str, float]]:
        found = library.tables.tool(tool["tool"]["tool_id"])
        hits: Any = run_tool(library, found, {"query": query, "top_k": limit})["results"]
        return [(keys[int(hit["json_path"].split("/")[1])], hit["score"]) for hit in hits]

    return ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=700)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--model", default="static")
    given = parser.parse_args()
    made = shelf(given.items, given.seed)
    print(
        f"{len(made.items)} items:",
        dict(Counter(item.kind for item in made.items)),
        dict(Counter(i.shape for i in made.items)),
    )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = Settings(home=home, model=given.model)
        with Library.open(home, settings=settings) as library:
            fill(library, made.texts)
            for name, (ask, kinds) in asks(library).items():
                print_row(name, ask, [item for item in made.items if item.kind in kinds])
            ask = tabled(library, made.texts["notes"])
            print_row("tables", ask, [item for item in made.items if item.kind == "notes"])


def print_row(name: str, ask: Ask, items: Sequence[Known]) -> None:
    """hit@1, or hit@10 where only meaning is looked at, the shapes that miss, and the least score of a hit."""
    depth = 10 if "semantic" in name else 1
    items = [item for item in items if depth == 1 or item.shape in ("rare", "together", "apart")]
    hits = [(item, ask(item.query, depth)) for item in items]
    right = [(item, found) for item, found in hits if item.key in (key for key, _ in found)]
    missed = Counter(item.shape for item, found in hits if item.key not in (key for key, _ in found))
    least = min((score for item, found in right for key, score in found if key == item.key), default=0.0)
    print(
        f"{name:20} hit@{depth} {len(right) / len(items):.3f} of {len(items)}  least {least:.2f}  missed {dict(missed)}"
    )
    for item, found in [(item, found) for item, found in hits if item.key not in (key for key, _ in found)][:3]:
        print(f"    {item.shape} {item.key}: {item.query!r} brought {found[:2]}")


if __name__ == "__main__":
    main()
