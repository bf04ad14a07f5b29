"""Embedding documents in batches: second tries, an end to failures, a limit of time, and one run at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from commonplace.ingest import embed_lock, model_vectors
from commonplace.ingest.embed_lock import AlreadyEmbedding
from commonplace.ingest.embed_run import EmbedLimits, EmbedOutcome, embed_documents
from commonplace.ingest.embedding import BATCH, Embedding
from commonplace.library import Library
from commonplace.model import Chunk, Draft
from commonplace.store.embeddings import Embeddings
from commonplace.store.listing import Listing
from commonplace.store.rows import Model
from opening import open_library


class Moody(Embedding):
    """The real thing, but for passages with certain words: each time one is tried it fails, so many times."""

    moods: dict[str, int]
    calls: list[int]

    def embed_chunks(self, model: Model, chunks: Sequence[Chunk]) -> int:
        self.calls.append(len(chunks))
        for chunk in chunks:
            for word, left in self.moods.items():
                if word in chunk.text and left:
                    self.moods[word] -= 1
                    raise RuntimeError(f"not in the mood for {word}")
        return super().embed_chunks(model, chunks)


def moody(library: Library, **moods: int) -> Moody:
    embedding = Moody(library.store, library.embedding.folder, library.settings)
    embedding.moods, embedding.calls = moods, []
    return embedding


def fill(library: Library, count: int, word: str = "tea", collection: str = "notes") -> None:
    library.put_many(
        Draft("document", f"{number}.md", parent=collection, body=f"{word} number {number}") for number in range(count)
    )


def run(library: Library, embedding: Embedding | None = None, **limits: float | None) -> EmbedOutcome:
    return embed_documents(library.store, embedding or library.embedding, EmbedLimits(**limits))  # type: ignore[arg-type]


def test_everything_missing_is_made_and_nothing_twice(library: Library) -> None:
    fill(library, 100)
    outcome = run(library)
    assert (outcome.documents, outcome.passages, outcome.complete) == (100, 100, True)
    assert library.embedding.documents_lacking() == 0
    assert run(library).passages == 0
    assert not library.embedding.lacks_some()


def test_what_is_no_document_gets_its_vectors_too(library: Library) -> None:
    fill(library, 3)
    library.put(Draft("note", "tea", body="A note about tea."))
    run(library)
    assert library.embedding.coverage().pending == 0


def test_a_document_that_moves_during_the_run_has_the_vector_of_its_own_words(library: Library) -> None:
    """Its passages are those that were pending under the old name, where there is no title to read any more."""
    fill(library, 2 * BATCH)
    old, moved = (Draft("document", key, parent="notes", title="Oolong", body="Steep it twice.") for key in "ab")
    library.put(old)

    def move(done: int, total: int) -> None:
        if done == BATCH:
            library.delete("docs://notes/a")
            library.put(moved)

    embed_documents(library.store, library.embedding, EmbedLimits(documents=3 * BATCH), progress=move)
    embedding, item = library.embedding, library.get("docs://notes/b")
    found, expected = embedding.mean_of(item.id), embedding.embedder().embed_passages(["Oolong\nSteep it twice."])[0]
    assert found is not None
    assert float(found @ expected) > 0.999
    assert embedding.coverage().pending == 0


def test_a_passage_whose_key_older_rules_gave_gets_its_vector(library: Library) -> None:
    fill(library, 2)
    with library.store._database.writing() as db:  # type: ignore[attr-defined]
        db.execute("update chunks set vector_key = randomblob(16)")
    library.embed()
    assert library.embedding.coverage().pending == 0


def test_only_the_collections_asked_for(library: Library) -> None:
    fill(library, 5)
    fill(library, 4, "cake", collection="docs")
    outcome = embed_documents(library.store, library.embedding, collections=["docs"])
    assert (outcome.documents, library.embedding.documents_lacking(["docs"])) == (4, 0)
    assert library.embedding.documents_lacking(["notes"]) == 5


def test_batches_hold_so_many_documents_and_so_many_bytes(library: Library) -> None:
    fill(library, 10)
    by_count = moody(library)
    run(library, by_count, documents=4)
    assert by_count.calls == [4, 4, 2]
    by_size = moody(library)
    embed_documents(library.store, by_size, EmbedLimits(bytes=30), anew=True)
    assert max(by_size.calls) == 2


def test_documents_are_counted_as_they_are_done_also_within_a_batch(library: Library) -> None:
    fill(library, 2 * BATCH + 10)
    seen: list[tuple[int, int]] = []
    total = 2 * BATCH + 10
    embed_documents(
        library.store,
        library.embedding,
        EmbedLimits(documents=total),
        progress=lambda done, of: seen.append((done, of)),
    )
    assert seen == [(BATCH, total), (2 * BATCH, total), (total, total)]


def test_a_passage_has_three_attempts(library: Library) -> None:
    fill(library, 10)
    library.put(Draft("document", "odd.md", parent="notes", body="A poison."))
    outcome = run(library, moody(library, poison=2))
    assert (outcome.passages, outcome.failed) == (11, 0)


def test_a_passage_that_never_works_costs_no_other(library: Library) -> None:
    fill(library, 40)
    library.put(Draft("document", "odd.md", parent="notes", body="A poison."))
    embedding = moody(library, poison=10**9)
    outcome = run(library, embedding)
    assert (outcome.passages, outcome.failed, outcome.hopeless) == (40, 1, False)
    assert embedding.moods["poison"] == 10**9 - 3
    assert outcome.reasons == ["RuntimeError: not in the mood for poison"]
    assert library.embedding.documents_lacking() == 1
    assert run(library).passages == 1


def test_it_stops_where_nothing_works(library: Library) -> None:
    fill(library, 200)
    outcome = run(library, moody(library, tea=10**9))
    assert outcome.hopeless
    assert outcome.passages == 0
    assert outcome.failed < 100


def test_it_stops_when_its_time_is_up_and_goes_on_the_next_time(library: Library) -> None:
    fill(library, 100)
    outcome = run(library, seconds=1e-9)
    assert (outcome.late, outcome.complete) == (True, False)
    assert run(library, seconds=None).passages == 100 - outcome.passages


def test_anew_makes_them_all_again_and_an_early_end_loses_one_batch_at_most(library: Library) -> None:
    fill(library, 100)
    run(library)
    late = embed_documents(library.store, library.embedding, EmbedLimits(documents=10, seconds=1e-9), anew=True)
    assert late.late
    assert library.embedding.documents_lacking() <= 10
    again = embed_documents(library.store, library.embedding, anew=True)
    assert again.passages == 100
    assert library.doctor() == []
    assert library.search("tea number 7", mode="semantic").hits


def test_one_run_at_a_time(library: Library, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_lock, "PATIENCE_S", 0.1)
    fill(library, 3)
    with open_library(backend, tmp_path) as other, other.embedding.exclusive():
        with pytest.raises(AlreadyEmbedding):
            run(library)
        with pytest.raises(AlreadyEmbedding):
            library.embed()
    assert run(library).passages == 3


def counted(library: Library, *parents: str) -> tuple[int, int]:
    """The passages with a vector and the documents without one, by a look at all of them."""
    model = library.embedding.model_id
    assert model is not None
    return library.store.drawer(Embeddings).total(model), library.store.drawer(Embeddings).documents_lacking(
        model, parents
    )


@pytest.mark.parametrize("walked", [1000, 3])
def test_what_lacks_vectors_is_told_alike_from_the_log_and_by_counting(
    library: Library, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    monkeypatch.setattr(model_vectors, "MOST_WALKED", walked)

    def told(*parents: str) -> tuple[int, int]:
        return library.embedding.coverage().embedded, library.embedding.documents_lacking(parents)

    fill(library, 5)
    assert told() == (0, 5), "before there is a model"
    library.embed()
    assert told() == counted(library) == (5, 0)
    fill(library, 2, "cake", collection="docs")
    library.put(Draft("note", "n", body="A note about tea."))
    assert told() == counted(library) == (5, 2)
    assert told("docs") == counted(library, "docs")
    assert told("notes") == counted(library, "notes") == (5, 0)
    library.delete("docs://docs/0.md")
    library.put(Draft("document", "1.md", parent="notes", body="other words"))
    assert told() == counted(library) == (4, 2)
    (item,) = library.store.drawer(Listing).ids_of([("document", "notes", "2.md")])
    assert library.embedding.model_id is not None
    library.store.drawer(Embeddings).drop(library.embedding.model_id, [item])
    assert told() == counted(library) == (3, 3)


def test_where_the_log_is_short_not_every_passage_is_looked_at(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(library, 5)
    library.embed()
    fill(library, 2, "cake", collection="docs")
    embeddings = library.store.drawer(Embeddings)
    monkeypatch.setattr(embeddings, "total", lambda *_: pytest.fail("it counted all of them"))
    monkeypatch.setattr(embeddings, "documents_lacking", lambda *_: pytest.fail("it counted all of them"))
    assert library.status().coverage.pending == 2
    assert library.embedding.documents_lacking() == 2
