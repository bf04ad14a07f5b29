"""Stages with a model: what they add where one is there, and that nothing is lost where it is late or broken."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.errors import Unavailable
from commonplace.library import Library
from commonplace.model import Draft, Filter, Stage
from commonplace.models import Generator, Reranker
from commonplace.models.roles import Embedder
from commonplace.search.engine import Budgets, Semantic
from commonplace.search.hybrid import Hybrid
from commonplace.search.question import HybridAnswer, Question, Search
from commonplace.store.items import Items
from opening import library_settings

BODIES = {
    "oolong": "Oolong wants water just off the boil.",
    "bread": "Knead the dough and bake it.",
    "train": "The night train to Vienna leaves at nine.",
    "tea": "A pot of tea for two, oolong or green.",
    "backup": "Copy the database every night.",
}
DOCUMENTS = Filter(kinds=("document",))


@pytest.fixture
def stocked(library: Library) -> Library:
    for key, body in BODIES.items():
        library.put(Draft("document", key, parent="n", title=key.title(), body=body))
    return library


class Writer:
    """A generator that writes what it was told to, and counts how often."""

    name = "writer"

    def __init__(self, *variants: Search) -> None:
        self.variants, self.calls = variants, 0

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 0, timeout: float | None = None) -> str:
        self.calls += 1
        return "\n".join(map(str, self.variants))


class Sleeper:
    """A generator and reranker that never comes to an end, until the test lets it."""

    name = "sleeper"

    def __init__(self) -> None:
        self.waiting = threading.Event()

    def generate(self, prompt: str, *, system: str = "", max_tokens: int = 0, timeout: float | None = None) -> str:
        self.waiting.wait(60)
        return ""

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.waiting.wait(60)
        return [0.0] * len(passages)


class Judge:
    """A reranker that likes passages with a word in them."""

    name = "judge"

    def __init__(self, word: str, failure: Exception | None = None) -> None:
        self.word, self.failure = word, failure
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.asked.append((query, list(passages)))
        if self.failure:
            raise self.failure
        return [1.0 if self.word in passage else 0.0 for passage in passages]


def engine(
    library: Library, generator: Generator | None = None, reranker: Reranker | None = None, seconds: float = 5.0
) -> Hybrid:
    budgets = Budgets(seconds, seconds, seconds)
    lacking = library.embedding.documents_lacking
    return Hybrid(
        library.store,
        library.lexical,
        library.semantic,
        lacking,
        budgets=budgets,
        generator=generator,
        reranker=reranker,
    )


def plain(text: str, **more: object) -> Question:
    return Question((Search("lex", text), Search("vec", text)), DOCUMENTS, plain=True, rerank=True, **more)  # type: ignore[arg-type]


def keys(library: Library, answer: HybridAnswer) -> list[str]:
    return [item.key for item in library.store.drawer(Items).get([hit.item_id for hit in answer.hits])]


def stage(answer: HybridAnswer, name: str) -> Stage:
    return next(stage for stage in answer.stages if stage.name == name)


def test_a_weak_model_is_not_believed_as_much_as_words(stocked: Library) -> None:
    """It is as sure of what it is wrong about: what it alone had found came before what the words had."""
    stocked.embed()
    words, meaning = Search("lex", "night train"), Search("vec", "dough")
    alone = engine(stocked).find(Question((meaning,), DOCUMENTS))
    both = engine(stocked).find(Question((words, meaning), DOCUMENTS))
    scores = dict(zip(keys(stocked, both), [hit.score for hit in both.hits], strict=True))
    assert alone.hits[0].score > 0.5
    assert scores["bread"] <= 0.3 < 0.6 <= scores["train"]


def test_advice_names_the_command_that_the_caller_types(stocked: Library) -> None:
    """The engine knows no program but its own: a door that has another name for the command says so."""
    meaning = (Search("vec", "dough"),)
    with pytest.raises(Unavailable, match="Run 'commonplace embed' first"):
        engine(stocked).find(Question(meaning, DOCUMENTS))
    with pytest.raises(Unavailable, match="Run 'other make-vectors' first"):
        engine(stocked).find(Question(meaning, DOCUMENTS, embed="other make-vectors"))  # type: ignore[arg-type]
    answer = engine(stocked).find(Question((Search("lex", "dough"), *meaning), DOCUMENTS, embed="other make-vectors"))  # type: ignore[arg-type]
    assert "keyword search only. Vector index not found. Run 'other make-vectors' first" in answer.notes[0]


def test_variants_bring_what_the_query_alone_does_not(stocked: Library) -> None:
    writer = Writer(Search("lex", "steep oolong"), Search("lex", "steep bread"), Search("lex", "vienna"))
    answer = engine(stocked, writer).find(plain("steep"))
    assert set(keys(stocked, answer)) == {"oolong", "tea"}
    assert [made.role for made in answer.lists] == ["original", "variant"]
    assert [made.weight for made in answer.lists] == [2.0, 1.0]
    assert stage(answer, "expand").status == "ran"


def test_variants_are_remembered_while_they_are_of_use(stocked: Library) -> None:
    useful, useless = Writer(Search("lex", "oolong boil")), Writer(Search("lex", "oolong xyzzy"))
    for writer, calls in ((useful, 1), (useless, 2)):
        hybrid = engine(stocked, writer)
        for _ in range(2):
            hybrid.find(plain("oolong", min_score=0.0) if writer is useful else plain("oolong", min_score=1.0))
        assert writer.calls == calls


def test_a_match_that_stands_out_needs_no_variants_unless_there_is_an_intent(stocked: Library) -> None:
    stocked.put(Draft("document", "zeppelin", parent="n", title="Zeppelin zeppelin", body="zeppelin " * 50))
    writer = Writer(Search("lex", "zeppelin oolong"))
    answer = engine(stocked, writer).find(plain("zeppelin"))
    assert stage(answer, "expand") == Stage("expand", "skipped", reason="the best keyword match stands out")
    assert stage(engine(stocked, writer).find(plain("zeppelin", intent="airships")), "expand").status == "ran"


def test_a_reranker_reads_the_best_passage_and_moves_a_hit_by_its_share(stocked: Library) -> None:
    judge = Judge("green")
    before = engine(stocked).find(plain("oolong"))
    after = engine(stocked, reranker=judge).find(plain("oolong", intent="what to drink"))
    assert judge.asked[0][0] == "what to drink\noolong"
    assert any(passage.startswith("Tea\nA pot of tea") for passage in judge.asked[0][1])
    assert stage(after, "rerank").status == "ran"
    was = {hit.item_id: hit.score for hit in before.hits}
    for hit in after.hits:
        assert abs(hit.score - was[hit.item_id]) <= 0.25
        assert hit.score == pytest.approx(0.75 * hit.retrieval + 0.25 * (hit.reranked or 0.0))
    assert keys(stocked, after)[0] == "tea"


def test_only_the_first_candidates_are_reranked(stocked: Library) -> None:
    judge = Judge("green")
    answer = engine(stocked, reranker=judge).find(plain("oolong", candidates=1))
    assert len(judge.asked[0][1]) == 1
    assert sorted(hit.reranked is None for hit in answer.hits) == [False, True]


def test_what_is_late_is_left_out_and_said(stocked: Library) -> None:
    sleeper = Sleeper()
    try:
        answer = engine(stocked, sleeper, sleeper, seconds=0.05).find(plain("oolong"))
    finally:
        sleeper.waiting.set()
    assert set(keys(stocked, answer)) == {"oolong", "tea"}
    for name in ("expand", "rerank"):
        assert stage(answer, name) == Stage(name, "skipped", reason="it took longer than 50 ms")


@pytest.mark.parametrize(("failure", "traced"), [(RuntimeError, True), (Unavailable, False)])
def test_what_is_broken_has_failed_and_the_rest_answers(
    stocked: Library, caplog: pytest.LogCaptureFixture, failure: type[Exception], traced: bool
) -> None:
    """An expected failure, such as a service that is away, is one line of the log; a bug is a line with its trace."""
    answer = engine(stocked, reranker=Judge("", failure("the model is gone"))).find(plain("oolong"))
    assert set(keys(stocked, answer)) == {"oolong", "tea"}
    assert stage(answer, "rerank") == Stage("rerank", "failed", reason="it failed: the model is gone")
    (record,) = [record for record in caplog.records if record.name == "commonplace.search.engine"]
    assert bool(record.exc_info) == traced
    assert ("the model is gone" in record.getMessage()) == (not traced)


class Thinker:
    """An embedder that takes its time over questions."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self.waiting = embedder, threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)

    def embed_queries(self, texts: Sequence[str]) -> object:
        self.waiting.wait(60)
        return self._embedder.embed_queries(texts)


def test_a_query_that_cannot_be_embedded_in_time_goes_by_words(stocked: Library) -> None:
    stocked.embed()
    index, embedder = stocked.embedding.ready()
    thinker = Thinker(embedder)
    semantic = Semantic(index, thinker, stocked.embedding.mean_of)  # type: ignore[arg-type]
    lacking = stocked.embedding.documents_lacking
    hybrid = Hybrid(stocked.store, stocked.lexical, lambda: semantic, lacking, budgets=Budgets(1, 0.05, 1))
    try:
        answer = hybrid.find(plain("oolong"))
    finally:
        thinker.waiting.set()
    assert set(keys(stocked, answer)) == {"oolong", "tea"}
    assert stage(answer, "vector").reason == "it took longer than 50 ms"
    assert answer.notes == ("keyword search only. Embedding the query was left out: it took longer than 50 ms.",)


def test_lists_are_a_hundred_deep_whatever_the_limit(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put_many(
            Draft("document", f"{n:03}", parent="n", title="", body=f"tea {n} " * (n % 7 + 1)) for n in range(150)
        )
        both = (Search("lex", "tea"), Search("lex", "tea -nothing"))
        small = library.hybrid.find(Question(both, DOCUMENTS, limit=1))
        assert [len(made.listed.items) for made in small.lists] == [100, 100]
        large = library.hybrid.find(Question((Search("lex", "tea"),), DOCUMENTS, plain=True, limit=150))
        assert len(large.hits) == 150


def test_the_first_few_are_the_same_whether_few_or_all_are_looked_at(tmp_path: Path) -> None:
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put_many(
            Draft("document", f"{999 - n}", parent="n", body="tea " * (n % 9 + 1) + "pot " * (n % 4) + f"w{n % 5} " * 9)
            for n in range(300)
        )
        question = Question((Search("lex", "tea pot"),), DOCUMENTS, plain=True, limit=20)
        twenty = [(hit.item_id, hit.chunk_id, hit.score) for hit in library.hybrid.find(question).hits]
        for limit in (1, 3, 7, 12):
            few = library.hybrid.find(replace(question, limit=limit)).hits
            assert [(hit.item_id, hit.chunk_id, hit.score) for hit in few] == twenty[:limit]


def test_hundreds_of_terms_are_all_counted(tmp_path: Path) -> None:
    many = [f"term{number}" for number in range(60)]
    with Library.open(tmp_path, settings=library_settings(tmp_path)) as library:
        library.put(Draft("document", "all", parent="n", body=" ".join(many)))
        library.put(Draft("document", "half", parent="n", body=" ".join(many[:30])))
        answer = library.hybrid.find(Question((Search("lex", " ".join(many)),), DOCUMENTS, plain=True))
        assert keys(library, answer) == ["all", "half"]
        assert answer.hits[0].score >= 0.6
        assert answer.hits[1].score <= 0.5


def test_all_stages_with_a_model_share_one_time(stocked: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.search.hybrid.MODELS_S", 0.1)
    sleeper = Sleeper()
    try:
        answer = engine(stocked, sleeper, sleeper, seconds=60.0).find(plain("oolong"))
    finally:
        sleeper.waiting.set()
    assert set(keys(stocked, answer)) == {"oolong", "tea"}
    for name in ("expand", "rerank"):
        assert stage(answer, name).status == "skipped"
    assert stage(answer, "rerank").reason == "there was no time left for it"
