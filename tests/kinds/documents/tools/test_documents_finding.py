"""Searching documents, in batches and by likeness, line by line of the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents_calls import GUIDE, MANUAL, REGISTRY, Tools, first_line, parsed, write
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.kinds.documents.packages.declarations import declarations
from commonplace.kinds.documents.packages.package_sync import SyncTarget, sync
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.store.embeddings import Embeddings
from commonplace.tools.budget import tokens_of
from commonplace.tools.tool import View
from opening import ON_FILES, library_settings, open_library

BODIES = {"guide": GUIDE, "manual": MANUAL}
QUERIES = ("hot water for oolong", "kettle", "bake bread in the oven", "restart the modem", "Maße", "zebra stripes")


_MANIFEST = '{"name": "handbook", "version": "1", "sources": {"glob": ["**/*.md"]}}'


def packaged(library: Library, folder: Path, files: dict[str, str]) -> Tools:
    """A package of these files, declared as `house` in a project and synced; nothing else is in view."""
    write(folder, {"context.json": '{"collections": {"house": "./docs"}}'})
    write(folder / "docs", files)
    (declaration,) = declarations(folder, "project")
    assert sync(SyncTarget(library.store, library.folder, library.settings), declaration).error is None
    return Tools(library, View(folder, with_global=False))


def places(results: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(one["collection"], one["documentId"], one["chunkIndex"]) for one in results]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("hybrid", [True, False])
def test_a_hit_quotes_its_document_and_says_where_it_stands(vectors: Tools, query: str, hybrid: bool) -> None:
    results = vectors("search", query=query, hybridSearch=hybrid)["results"]
    assert results
    for one in results:
        body = BODIES[one["collection"]][one["documentId"]]
        lines = body.split("\n")
        assert one["content"] in body
        assert one["content"].rstrip("\n").split("\n")[0] == lines[one["startLine"] - 1]
        assert 1 <= one["chunkIndex"] <= one["totalChunks"]
        assert one["startLine"] <= one["matchLine"] <= one["endLine"]
        assert one["collectionId"].startswith("pkg:")
        assert 0 <= one["relevanceScore"] <= 1
        assert 0 <= one["distance"] <= 2
        assert vectors.library.get(one["uri"]).body == body


def test_the_best_hit_names_the_section_to_read_next(vectors: Tools) -> None:
    best = vectors("search", query="how long to steep oolong leaves in water")["results"][0]
    assert (best["documentId"], best["documentTitle"]) == ("tea/oolong.md", "Oolong")
    assert "sectionHeading" not in best  # the passage begins before the first heading
    assert (best["matchLine"], best["matchHeading"]) == (9, "Brewing")
    read = vectors("get_section", collection="guide", document=best["documentId"], section=best["matchHeading"])
    assert "steep for three minutes" in read["content"]
    bread = vectors("search", query="knead the dough")["results"][0]
    assert (bread["documentTitle"], bread["sectionHeading"]) == ("Bread", "Bread")
    green = vectors("search", query="eighty degrees")["results"][0]
    assert green["documentTitle"] == "Green tea"


def test_the_text_of_a_search_is_the_bare_list(vectors: Tools) -> None:
    reply = vectors.reply("search", query="oolong")
    assert reply.structured is not None
    assert parsed(reply) == reply.structured["results"]
    assert len(reply.content) == 1
    assert {stage["stage"] for stage in reply.structured["stages"]} >= {"lexical", "vector", "rerank"}


def test_nothing_found_is_a_sentence_and_an_empty_list(words: Tools) -> None:
    reply = words.reply("search", query="xylophone")
    assert first_line(reply) == "No results found for the given query."
    assert reply.structured is not None
    assert reply.structured["results"] == []


@pytest.mark.parametrize("query", QUERIES)
def test_scores_never_rise_and_the_same_call_gives_the_same_list(vectors: Tools, query: str) -> None:
    results = vectors("search", query=query, limit=100)["results"]
    assert results == vectors("search", query=query, limit=100)["results"]
    scores = [one["relevanceScore"] for one in results]
    assert scores == sorted(scores, reverse=True)
    for limit in (1, 2, 5):
        assert vectors("search", query=query, limit=limit)["results"] == results[:limit]


def test_equal_scores_are_ordered_by_collection_document_and_chunk(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path / "home") as library:
        for name in ("zeta", "alpha"):
            files = {f"{number:02}.md": "# Twin\n\nThe very same words.\n" for number in reversed(range(30))}
            library.add_folder(write(tmp_path / name, files), name)
        library.embed()
        tools = Tools(library)
        found = [tools("search", query="the very same words", limit=limit)["results"] for limit in (5, 40, 60)]
        everything = [(name, f"{number:02}.md", 1) for name in ("alpha", "zeta") for number in range(30)]
        assert [places(results) for results in found] == [everything[:5], everything[:40], everything]


def test_distance_is_the_cosine_of_query_and_passage_also_for_keyword_hits(vectors: Tools) -> None:
    embedder = vectors.library.embedding.embedder()
    query = vectors.library.embedding.embedder().embed_queries(["chains"])[0]
    query = query / np.linalg.norm(query)
    model = vectors.library.store.drawer(Embeddings).models()[0]
    assert model.name == embedder.name
    for one in vectors("search", query="chains")["results"]:
        item = vectors.library.get(one["uri"])
        ids, found = vectors.library.store.drawer(Embeddings).vectors_of(model.id, [item.id])
        vector = dict(zip(ids.tolist(), found.astype(np.float32), strict=True))[item.id << 20 | one["chunkIndex"] - 1]
        assert one["distance"] == pytest.approx(1 - float(query @ vector / np.linalg.norm(vector)), abs=2e-3)


@ON_FILES
@settings(max_examples=30)
@given(st.floats(0, 2), st.sampled_from(QUERIES), st.booleans())
def test_no_hit_is_further_than_max_distance_and_none_nearer_is_lost(
    vectors: Tools, bound: float, query: str, hybrid: bool
) -> None:
    everything = vectors("search", query=query, limit=100, hybridSearch=hybrid)["results"]
    found = vectors("search", query=query, limit=100, hybridSearch=hybrid, maxDistance=bound)["results"]
    assert found == [one for one in everything if one["distance"] <= bound]


def test_hits_of_unknown_distance_are_left_out_and_counted(fresh: Tools) -> None:
    fresh.library.settings = fresh.library.settings
    fresh.library.embedding._settings = library_settings(fresh.library.folder, embed_on_search=0)
    fresh.library.put(
        Draft("document", "new.md", parent="guide", title="New", body="# New\n\nQuokkas smile.", format="markdown")
    )
    (hit,) = [one for one in fresh("search", query="quokkas")["results"] if one["documentId"] == "new.md"]
    assert hit["distance"] is None
    answer = fresh("search", query="quokkas", maxDistance=2)
    assert "new.md" not in [one["documentId"] for one in answer["results"]]
    assert any("1 passage" in note and "distance" in note for note in answer["notes"])


def test_without_vectors_it_goes_by_words_and_says_so(words: Tools) -> None:
    for hybrid in (True, False):
        reply = words.reply("search", query="oolong", hybridSearch=hybrid)
        assert reply.structured is not None
        assert reply.structured["results"][0]["documentId"] == "tea/oolong.md"
        assert {one["distance"] for one in reply.structured["results"]} == {None}
        assert any("words only" in note for note in reply.structured["notes"])
        assert "words only" in reply.content[1]["text"]
    assert words("search", query="oolong", maxDistance=1)["results"] == []


def test_collections_limit_a_search_before_its_limit(vectors: Tools) -> None:
    for names in (["manual"], ["MANUAL", "manual"]):
        results = vectors("search", query="brewing tea with water", collections=names, limit=2)["results"]
        assert {one["collection"] for one in results} == {"manual"}
        assert len(results) == 2
    assert vectors.refused("search", query="x", collections=["gide"]).code == "collection_not_found"


def test_a_view_limits_searches_and_what_is_related(vectors: Tools) -> None:
    narrowed = vectors.narrowed("manual")
    assert {one["collection"] for one in narrowed("search", query="oolong tea", limit=100)["results"]} == {"manual"}
    related = narrowed("find_related", collection="manual", document="usage.md", collections=["*"], limit=50)
    assert {one["collection"] for one in related["related"]} == {"manual"}
    assert narrowed.refused("search", query="x", collections=["guide"]).code == "collection_not_found"
    assert narrowed.narrowed("guide")("search", query="oolong")["results"] == []


@pytest.mark.parametrize("word", ["guide", "pkg", "qmd", "windows.md"])
def test_names_of_collections_and_addresses_make_no_hit(words: Tools, word: str) -> None:
    assert words("search", query=word)["results"] == []


@pytest.mark.parametrize("word", ["plain", "handbook", "house", "pkg", "a.md"])
def test_names_of_files_and_packages_make_no_hit(words: Tools, tmp_path: Path, word: str) -> None:
    files = {"plain.md": "Nothing but words about bicycles.\n", "a.md": "# Chains\n", "manifest.json": _MANIFEST}
    tools = packaged(words.library, tmp_path, files)
    assert tools("search", query=word)["results"] == []
    (found,) = tools("search", query="bicycles")["results"]
    assert (found["documentId"], found["documentTitle"]) == ("plain.md", "plain.md")


def test_reranking_is_reported_and_changes_no_promise(vectors: Tools) -> None:
    answer = vectors("search", query="hot water for oolong", rerank=True)
    assert "rerank" in {stage["stage"] for stage in answer["stages"]}
    scores = [one["relevanceScore"] for one in answer["results"]]
    assert scores == sorted(scores, reverse=True)


def test_a_second_look_that_is_not_taken_is_told(vectors: Tools) -> None:
    reply = vectors.reply("search", query="hot water for oolong", rerank=True, hybridSearch=False)
    assert reply.structured is not None
    (note,) = reply.structured["notes"]
    assert note == "Not reranked: a second look needs words and meaning together. Leave hybridSearch at true for one."
    assert reply.content[1]["text"] == note
    assert "notes" not in vectors("search", query="hot water for oolong", rerank=True)
    tool = REGISTRY.find("documents_search")
    assert tool is not None
    assert "hybridSearch" in tool.input["properties"]["rerank"]["description"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search", {"query": ""}, "query"),
        ("search", {"query": " \t"}, "query must have a character that is not blank"),
        ("search", {"query": "x" * 2001}, "query must have at most 2000 characters, not 2001"),
        ("search", {"query": "x", "collections": []}, "collections must have 1 to 50 names, not 0: leave it out"),
        ("search", {"query": "x", "collections": ["a"] * 51}, "collections must have at most 50 entries, not 51"),
        ("search", {"query": "x", "limit": 101}, "limit must be between 1 and 100, not 101"),
        ("search", {"query": "x", "maxDistance": 2.1}, "maxDistance must be between 0 and 2, not 2.1"),
        ("search", {"query": "x", "maxDistance": float("nan")}, "maxDistance"),
        ("search", {"query": "x", "hybrid": True}, 'no argument "hybrid"'),
        ("search_batch", {"queries": []}, "queries must have at least 1 entry"),
        ("search_batch", {"queries": [{"query": "x"}] * 11}, "queries must have at most 10 entries, not 11"),
        ("search_batch", {"queries": [{"query": "x"}, {"query": " "}]}, "queries[1].query"),
        ("search_batch", {"queries": [{"query": "x"}, {"query": "x", "limit": 3}]}, "queries[1].limit"),
        ("search_batch", {"queries": [{"query": "x"}, {}]}, "queries[1].query"),
        ("search_batch", {"queries": [{"query": "x", "collections": []}]}, "queries[0].collections must have 1 to 50"),
        ("search_batch", {"queries": [{"query": "x"}], "rerank": True}, "rerank"),
        ("find_related", {"collection": "guide", "document": "bread.md", "limit": 51}, "between 1 and 50, not 51"),
        (
            "find_related",
            {"collection": "guide", "document": "bread.md", "collections": []},
            "collections must have 1 to 50 names, not 0: leave it out to name none.",
        ),
        ("find_related", {"collection": "guide", "document": "bread.md", "chunk": " "}, "chunk"),
        ("find_related", {"collection": "guide", "document": "bread.md", "chunk": "x" * 8001}, "at most 8000"),
    ],
)
def test_what_is_asked_wrongly_is_refused_in_one_sentence(
    words: Tools, tool: str, arguments: dict[str, Any], said: str
) -> None:
    failure = words.refused(tool, **arguments)
    assert said in failure.message
    assert "\n" not in failure.message


def test_each_entry_of_a_batch_is_what_a_search_gives(vectors: Tools) -> None:
    asked = [{"query": query} for query in (*QUERIES, QUERIES[0])] + [{"query": "tea", "collections": ["manual"]}]
    answer = vectors("search_batch", queries=asked, limit=3, maxDistance=1.2)
    assert [entry["query"] for entry in answer["results"]] == [one["query"] for one in asked]
    for entry, one in zip(answer["results"], asked, strict=True):
        assert entry == {
            "query": one["query"],
            "results": vectors("search", **one, limit=3, maxDistance=1.2)["results"],
        }


def test_nothing_of_a_batch_runs_before_all_of_it_is_accepted(words: Tools) -> None:
    asked = [{"query": "oolong"}, {"query": "x", "collections": ["gide"]}]
    assert words.refused("search_batch", queries=asked).code == "collection_not_found"


@ON_FILES
@settings(max_examples=30)
@given(st.integers(200, 4000), st.lists(st.sampled_from(QUERIES), min_size=1, max_size=6))
def test_a_packed_batch_fits_and_shows_no_passage_twice(vectors: Tools, room: int, queries: list[str]) -> None:
    asked = [{"query": query} for query in queries]
    answer = vectors("search_batch", queries=asked, limit=6, max_tokens=room)
    assert tokens_of(answer) <= room
    assert answer["tokens"] <= room
    shown = [place for entry in answer["results"] for place in places(entry["results"])]
    assert len(shown) == len(set(shown))
    plain = vectors("search_batch", queries=asked, limit=6)["results"]
    for entry, whole in zip(answer["results"], plain, strict=True):
        assert len(entry["results"]) + entry["repeated"] + entry["leftOut"] == len(whole["results"])


def test_null_in_a_query_is_nothing_given_and_an_unknown_collection_is_said_with_its_place(vectors: Tools) -> None:
    plain = vectors("search_batch", queries=[{"query": "oolong"}])
    assert vectors("search_batch", queries=[{"query": "oolong", "collections": None}]) == plain
    failure = vectors.refused("search_batch", queries=[{"query": "x"}, {"query": "x", "collections": ["gide"]}])
    assert (failure.code, failure.message.split("\n")[0]) == ("collection_not_found", 'Collection "gide" not found.')
    assert failure.record()["error"]["argument"] == "queries[1].collections"
    assert "queries[1].collections" in failure.message


def test_a_packing_that_cannot_hold_its_questions_is_refused(vectors: Tools) -> None:
    failure = vectors.refused("search_batch", queries=[{"query": "word " * 390}] * 3, max_tokens=300)
    assert "max_tokens must be at least" in failure.message
    assert "not 300" in failure.message


def test_related_passages_leave_the_source_out_and_are_two_a_document(backend: str, tmp_path: Path) -> None:
    long = "# Tea\n\n" + "\n\n".join(
        f"## Part {n}\n\n" + f"Oolong tea and hot water, part {n}. " * 60 for n in range(8)
    )
    with open_library(backend, tmp_path / "home") as library:
        files = {
            "a.md": "# Oolong\n\nOolong tea wants hot water.\n",
            "long.md": long,
            "bread.md": "# Bread\n\nDough.\n",
        }
        library.add_folder(write(tmp_path / "files", files), "files")
        library.embed()
        tools = Tools(library)
        answer = tools("find_related", collection="files", document="./a.md", limit=50)
        assert answer["source"]["document"] == "a.md"
        names = [one["document"] for one in answer["related"]]
        assert names == [one["documentId"] for one in answer["related"]]
        assert names.count("long.md") == 2
        assert set(names) == {"long.md", "bread.md"}
        assert names[0] == "long.md"
        own = tools("find_related", collection="files", document="long.md", sameDocument=True, limit=50)
        assert [one["document"] for one in own["related"]].count("long.md") == 2


def test_related_looks_in_its_own_collection_unless_told(vectors: Tools) -> None:
    place = {"collection": "manual", "document": "usage.md", "limit": 50}
    assert {one["collection"] for one in vectors("find_related", **place)["related"]} == {"manual"}
    everywhere = vectors("find_related", **place, collections=["*"])["related"]
    assert {one["collection"] for one in everywhere} == {"guide", "manual"}
    assert {one["collection"] for one in vectors("find_related", **place, collections=["guide"])["related"]} == {
        "guide"
    }


def test_a_text_is_not_related_to_itself(vectors: Tools) -> None:
    chunk = "# Zebra\n\nStripes.\n"
    related = vectors("find_related", collection="guide", document="plain.txt", chunk=chunk, limit=50)["related"]
    assert "Zebra.md" not in [one["document"] for one in related]
    assert len(related) == 5
    other = vectors("find_related", collection="guide", document="plain.txt", chunk="striped animals", limit=50)
    assert "Zebra.md" in [one["document"] for one in other["related"]]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("烏龍茶介於綠茶與紅茶之間，適合以接近沸騰的水沖泡。", "烏龍茶介於綠茶與紅茶之間，適合以沸騰的水沖泡。"),
        ("京都の宇治は昔から抹茶の産地として知られています。", "京都の宇治は古くから抹茶の産地として知られている。"),
        ("# Oolong\n\nA tea between green and black.\n", "Oolong\nA tea, between green and black"),
    ],
    ids=["Chinese", "Japanese", "marks"],
)  # fmt: skip
def test_a_text_is_mostly_the_same_in_any_script(backend: str, tmp_path: Path, text: str, given: str) -> None:
    with open_library(backend, tmp_path / "home") as library:
        files = {"same.md": text, "other.md": "# Tea\n\nBlack tea wants boiling water.\n", "source.md": "# Source\n"}
        library.add_folder(write(tmp_path / "files", files), "files")
        library.embed()
        related = Tools(library)("find_related", collection="files", document="source.md", chunk=given)["related"]
        assert [one["document"] for one in related] == ["other.md"]


def test_related_without_vectors_goes_by_telling_words_and_says_so(words: Tools) -> None:
    answer = words("find_related", collection="guide", document="tea/green.md")
    assert answer["related"][0]["document"] == "tea/oolong.md"
    assert any("telling words" in note for note in answer["notes"])


def test_a_source_without_text_gives_nothing_and_a_note(fresh: Tools) -> None:
    fresh.library.put(Draft("document", "empty.md", parent="guide", body="", format="markdown"))
    answer = fresh("find_related", collection="guide", document="empty.md")
    assert answer["related"] == []
    assert "no text" in answer["notes"][0]


def test_a_change_is_seen_by_the_next_call(fresh: Tools) -> None:
    root = fresh.library.folders.get("guide").root
    write(root, {"bread.md": "# Brioche\n\nButter and eggs.\n\n## Oven\n\nWarm.\n"})
    (root / "Zebra.md").unlink()
    fresh.library.folders.update("guide")
    listed = {one["id"]: one["title"] for one in fresh("list_documents", collection="guide")["documents"]}
    assert listed["bread.md"] == "Brioche"
    assert "Zebra.md" not in listed
    assert (
        fresh("get_section", collection="guide", document="bread.md", section="Oven")["content"] == "## Oven\n\nWarm."
    )
    best = fresh("search", query="brioche butter")["results"][0]
    assert (best["documentTitle"], best["sectionHeading"]) == ("Brioche", "Brioche")
    assert all(one["documentId"] != "Zebra.md" for one in fresh("search", query="zebra stripes")["results"])
