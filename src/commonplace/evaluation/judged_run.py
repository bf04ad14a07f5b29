"""Puts a judged collection through the real Library, so that what is measured is what users get."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from commonplace.evaluation.judged import JudgedCollection, JudgedQuestion
from commonplace.evaluation.ranking_metrics import ndcg, recall, reciprocal_rank
from commonplace.evaluation.report import CPU, DEEP_RECALL, MRR, NDCG, RECALL, ModeResult, SetResult
from commonplace.ingest.prepare import prepare
from commonplace.ingest.suited import best_here
from commonplace.library import Library
from commonplace.model import Draft, Filter, Mode, fingerprint
from commonplace.models import Embedder, open_embedder
from commonplace.search.question import Kind, Search
from commonplace.search.question import Question as Typed
from commonplace.search.rerank import allowed
from commonplace.settings import Settings
from commonplace.store.items import Items

Measured = Literal["lexical", "semantic", "hybrid", "expand", "rerank", "full"]
"""A way to ask: by words, by meaning, by both; by both with more of what the best have, with a second look at
them, and with the one after the other."""

Through = Literal["search", "qmd"]
"""The search that is measured: `Library.search`, or `Library.hybrid` as the tools of qmd ask it."""

MODES: Mapping[Through, tuple[Measured, ...]] = {
    "search": get_args(Measured),
    "qmd": ("lexical", "semantic", "hybrid", "rerank"),  # whose queries only a generator expands
}
_KINDS: Mapping[Measured, tuple[Kind, ...]] = {
    "lexical": ("lex",),
    "semantic": ("vec",),
    "hybrid": ("lex", "vec"),
    "expand": ("lex", "vec"),
    "rerank": ("lex", "vec"),
    "full": ("lex", "vec"),
}
DEPTH = 100
UNHURRIED_S = 60.0
_SNIPPET = 40  # characters: snippets are made, as they are for users, but nobody reads these

Watch = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""


def evaluate(
    collection: JudgedCollection,
    settings: Settings,
    *,
    work: Path | None = None,
    modes: Sequence[Measured] = (),
    through: Through = "search",
    watch: Watch | None = None,
) -> SetResult:
    """Ask every question in these modes, or all, and return the result. The library stays in `work` for the next time.

    `work` is the home's `eval` where it is not given. Each mode opens the library anew, so that none profits from the
    query vectors another has left in memory. A second look has all the time it needs: how much of it a busy machine
    leaves says nothing about how well it ranks.
    """
    watch, modes = watch or _unwatched, modes or MODES[through]
    settings = replace(settings, store="", store_owner="", index="local")  # never among what people keep
    settings = replace(settings, model=settings.model or suited_to(collection, settings))
    model = open_embedder(settings.model, settings.models, threads=settings.threads, settings=settings)
    home = library_home(collection, model, work or settings.home / "eval")
    fill(home, collection, settings, embed=any(mode != "lexical" for mode in modes), watch=watch)
    measured: dict[str, ModeResult] = {}
    for mode in modes:
        with Library.open(home, settings=settings) as library, allowed(UNHURRIED_S):
            ask = _search if through == "search" else _hybrid
            measured[mode] = _ask_all(partial(ask, library, mode), mode, collection.questions, watch)
    queries = tuple(question.id for question in collection.questions)
    return SetResult(collection.name, model.name, len(collection.documents), queries, measured)


def suited_to(collection: JudgedCollection, settings: Settings) -> str:
    """Return the model that a library of these documents would choose for itself."""
    return best_here(Counter(prepare(draft).language for draft in _drafts(collection)), settings)


def library_home(collection: JudgedCollection, model: Embedder, work: Path) -> Path:
    """Return where the library of a collection lives, named by all that decides what is in it.

    That is what preparing the documents makes of them, and not only their content: with another way to cut passages or
    to tell languages, a library made before it would measure the engine of then.
    """
    parts: list[str | bytes] = [model.fingerprint]
    for draft in _drafts(collection):
        write = prepare(draft)
        parts += [draft.parent, draft.key, write.language, *(passage.vector_key for passage in write.passages)]
    return work / f"{collection.name}-{fingerprint(*parts, size=8).hex()}"


def fill(
    home: Path, collection: JudgedCollection, settings: Settings, *, embed: bool = True, watch: Watch | None = None
) -> None:
    """Bring the library up to the collection. One left half done by a killed run is gone on with."""
    watch, total = watch or _unwatched, len(collection.documents)
    settings = replace(settings, store="", store_owner="", index="local")
    with Library.open(home, settings=settings) as library:
        if sum(library.status().items.values()) < total:
            library.put_many(_drafts(collection), lambda done, _: watch("store", done, total))
        if embed:
            library.embed(lambda done, total: watch("embed", done, total))
        library.rebuild()  # indexes of an earlier run would measure the analyzer of then


def _drafts(collection: JudgedCollection) -> Iterator[Draft]:
    """Yield notes, because the key of a document is searched as its path and ids are not words; groups are parents."""
    for document in collection.documents:
        parent = document.group or collection.name
        yield Draft("note", document.id, parent=parent, title=document.title, body=document.text)


Ask = Callable[[str, Filter], list[str]]
"""Finds the keys of documents, best first, for a text among those of a filter."""


def _search(library: Library, mode: Measured, text: str, keep: Filter) -> list[str]:
    expand, rerank = mode in ("expand", "full"), mode in ("rerank", "full")
    search_mode: Mode = mode if mode in ("lexical", "semantic") else "hybrid"
    page = library.search(
        text, mode=search_mode, filter=keep, limit=DEPTH, snippet_length=_SNIPPET, expand=expand, rerank=rerank
    )
    return [hit.item.key for hit in page.hits]


def _hybrid(library: Library, mode: Measured, text: str, keep: Filter) -> list[str]:
    """Ask as the tools of qmd do: `search`, `vsearch`, and `query` without and with its second look."""
    searches = tuple(Search(kind, text) for kind in _KINDS[mode])
    question = Typed(searches, replace(keep, kinds=("note",)), plain=True, limit=DEPTH, rerank=mode == "rerank")
    hits = library.hybrid.find(question).hits
    keys = {item.id: item.key for item in library.store.drawer(Items).get([hit.item_id for hit in hits])}
    return [keys[hit.item_id] for hit in hits]


def _ask_all(ask: Ask, mode: str, questions: Sequence[JudgedQuestion], watch: Watch) -> ModeResult:
    ask("warm", Filter())  # loads the model and opens the indexes, which is no query's own cost
    rows = []
    for done, question in enumerate(questions, start=1):
        rows.append(_measured(ask, question))
        watch(mode, done, len(questions))
    return ModeResult({column: tuple(row[column] for row in rows) for column in (NDCG, RECALL, DEEP_RECALL, MRR, CPU)})


def _measured(ask: Ask, question: JudgedQuestion) -> dict[str, float]:
    keep = Filter(parents=(question.group,)) if question.group else Filter()
    start = time.process_time()
    ranking = ask(question.text, keep)
    spent = time.process_time() - start
    grades = question.grades
    return {
        NDCG: ndcg(ranking, grades, 10),
        RECALL: recall(ranking, grades, 10),
        DEEP_RECALL: recall(ranking, grades, DEPTH),
        MRR: reciprocal_rank(ranking, grades, 10),
        CPU: spent * 1000,
    }


def _unwatched(what: str, done: int, total: int) -> None:
    """Do nothing: nobody is looking."""
