"""Finding documents.

1. Any text is a query; phrases bind, exclusions refuse, beginnings and slips are found.
2. No query with a term in scope is empty, whatever the scope; an excluded collection answers only when named.
3. Scores are one scale from 0 to 1 that depends on nothing but the query and the documents.
4. Snippets are source lines with their numbers; the line of a hit is in the file.
5. What was left out is said, and failures are failures.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, InvalidInput, NotFound
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.tools.tool import Reply
from opening import open_library
from qmd_library import SPECIAL, Tools, failure, found, results, text_of, tools_over

NO_VECTORS = "Vector index not found. Run 'qmd embed' first to create embeddings."


def stages(reply: Reply) -> dict[str, dict[str, Any]]:
    assert reply.structured is not None
    return {stage["stage"]: stage for stage in reply.structured["stages"]}


# the query's text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("quarterly plan", "notes/2025/plan.md"),
        ("username", "notes/code.md"),
        ("getUserName", "notes/code.md"),
        ("user name", "notes/code.md"),
        ("HTTP/2", "notes/code.md"),
        ("C++", "notes/code.md"),
        ("2026.4.10", "notes/code.md"),
        ("DEC-0054", "notes/code.md"),
        ("東京都庁", "docs/日本/東京.md"),
        ("都庁", "docs/日本/東京.md"),
        ("京", "docs/日本/東京.md"),
        ("乌龙茶", "docs/中文/茶.md"),
        ("우롱차", "docs/한국/차.md"),
        ("заваривают", "docs/русский/чай.md"),
        ("strasse", "docs/deutsch/Straße.md"),
        ("resume", "docs/français/résumé.md"),
        ("الشاي", "docs/عربي/شاي.md"),
        ("quart*", "notes/2025/plan.md"),
        ("marmalde", "notes/coverage-all.md"),
        ("🍵", "docs/emoji 🍵.md"),
        ("deep", "notes/x/a/b/deep.md"),
    ],
)
def test_what_is_in_a_document_finds_it(call: Tools, query: str, first: str) -> None:
    assert found(call("search", query=query))[0] == first
    assert found(call("query", query=query))[0] == first


@pytest.mark.parametrize("query", ['"blue lantern"', '"blue lantern" door', 'door "blue lantern"'])
def test_a_phrase_is_required_and_adjacent(call: Tools, query: str) -> None:
    assert found(call("search", query=query)) == ["notes/phrase.md"]


def test_phrases_hold_for_the_whole_document(backend: str, tmp_path: Path) -> None:
    far = "# Far\n\nThe blue lantern.\n\n" + "Filler about nothing. " * 600 + "\n\n## End\n\nThe red door.\n"
    with open_library(backend, tmp_path) as library:
        library.put(Draft("document", "far.md", parent="n", title="Far", body=far, format="markdown"))
        library.put(Draft("document", "near.md", parent="n", title="Near", body="A blue lantern, a red barn."))
        assert library.get("qmd://n/far.md").chunk_count > 1
        call = tools_over(library)
        assert found(call("search", query='"blue lantern" "red door"')) == ["n/far.md"]
        assert found(call("search", query='lantern -"red door"')) == ["n/near.md"]
        assert found(call("search", query="blue -filler")) == ["n/near.md"]


def test_a_phrase_is_found_where_its_words_are_joined(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        for number, text in enumerate(("A real-time clock.", "A real time clock.", "A clock of the real time.")):
            library.put(Draft("document", f"{number}.md", parent="n", title=str(number), body=text))
        call = tools_over(library)
        assert set(found(call("search", query='"real time clock"'))) == {"n/0.md", "n/1.md"}
        assert found(call("search", query='clock -"real time clock"')) == ["n/2.md"]
        assert found(call("search", query='"real-time clock"')) == ["n/0.md"]


def test_a_phrase_that_nothing_has_falls_back_to_its_words_and_says_so(call: Tools) -> None:
    reply = call("search", query='"lantern blue"')
    assert set(found(reply)) == {"notes/phrase.md", "notes/no-phrase.md"}
    assert text_of(reply).endswith('\n\nNote: no document has the phrase "lantern blue", so its words were looked for.')


def test_exclusions_refuse_and_alone_find_nothing(call: Tools) -> None:
    assert found(call("search", query="lantern -door")) == []
    assert found(call("search", query="zeppelin -marmalade")) == ["notes/coverage-some.md", "notes/coverage-far.md"]
    for tool in ("search", "query"):
        assert text_of(call(tool, query="-door -lantern")).startswith('No results found for "-door -lantern"')


def test_exclusions_hold_in_the_vector_leg_of_a_query(vcall: Tools) -> None:
    with_tea = set(found(vcall("query", query="oolong tea steep leaves", limit=100)))
    without = set(found(vcall("query", query="oolong tea steep leaves -oolong", limit=100)))
    assert "notes/journal/2025-01/tea-0.md" in with_tea - without
    assert without


@pytest.mark.parametrize(
    "query",
    ['"unmatched', "-", "*", "AND OR NOT", "NEAR(tea, 3)", "title:tea", "(((", "tea)", "a" * 100_000, "🍵🍵",
     "' OR 1=1 --", "\u202e", "tea\x00", "[", "{}", "\\", "%", '""', '-""', "tea " * 5000,
     " ".join(map(str, range(2000)))],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["search", "query"])
def test_no_text_is_an_error(call: Tools, tool: str, query: str) -> None:
    results(call(tool, query=query))


@given(st.text(min_size=1, max_size=60).filter(str.strip))
def test_any_text_with_something_in_it_is_a_query(words: Library, query: str) -> None:
    reply = tools_over(words)("search", query=query)
    for result in results(reply):
        assert 0 <= result["score"] <= 1


terms = st.lists(
    st.sampled_from(["oolong", "zeppelin", "lantern", "xyzzyqq", "brakes", "東京", "чай", "the"]),
    min_size=1,
    max_size=5,
)


@given(terms)
def test_no_query_with_one_term_in_scope_is_empty(words: Library, query: list[str]) -> None:
    call = tools_over(words)
    known = [term for term in query if term != "xyzzyqq"]
    for tool in ("search", "query"):
        assert bool(results(call(tool, query=" ".join(query)))) or not known


# scope


def test_an_excluded_collection_answers_only_when_named(call: Tools) -> None:
    assert found(call("search", query="xylophone")) == []
    assert found(call("search", query="xylophone", collection="private")) == ["private/diary.md"]
    assert found(call("query", query="xylophone", collections=["private", "docs"])) == ["private/diary.md"]


def test_a_filter_is_applied_before_the_limit(call: Tools) -> None:
    everywhere = found(call("search", query="tea", limit=500))
    for name in ("notes", "docs"):
        inside = found(call("search", query="tea", limit=500, collection=name))
        assert set(inside) == {file for file in everywhere if file.startswith(f"{name}/")}
        assert found(call("search", query="tea", limit=2, collection=name)) == inside[:2]
    both = found(call("search", query="tea", limit=500, collection="notes", collections=["docs"]))
    assert set(both) == set(everywhere)


def test_a_word_of_another_collection_only_is_guessed_at(call: Tools) -> None:
    assert found(call("search", query="xylophone", collection="notes")) == []
    assert found(call("search", query="straße")) == ["docs/deutsch/Straße.md"]
    assert found(call("search", query="quokkas zeppelinn", collection="notes"))


def test_an_unknown_collection_is_named_with_those_there_are(call: Tools) -> None:
    code, said = failure(lambda: call("search", query="tea", collection="nope"))
    assert code == "collection_not_found"
    assert said == "Collection not found: nope. Available collections: docs, notes, private."
    assert failure(lambda: call("query", query="tea", collections=["docs", "nope"]))[0] == "collection_not_found"


def test_only_documents_appear(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        library.put(Draft("note", "tea", title="Tea", body="Oolong."))
        library.put(Draft("document", "tea.md", parent="docs", title="Tea", body="Oolong."))
        library.embed()
        call = tools_over(library)
        for tool in ("search", "query", "vsearch"):
            assert found(call(tool, query="oolong", minScore=0)) == ["docs/tea.md"]


# scores


def scores(reply: Reply) -> dict[str, float]:
    return {result["file"]: result["score"] for result in results(reply)}


def test_all_terms_score_at_least_three_fifths_and_half_of_the_weight_at_most_half(call: Tools) -> None:
    got = scores(call("search", query="zeppelin quokka marmalade"))
    assert got["notes/coverage-all.md"] >= 0.6
    halves = scores(call("search", query="zeppelin lantern"))
    assert halves["notes/coverage-some.md"] <= 0.5
    assert all(score <= 0.5 for score in halves.values())


def test_a_document_with_all_terms_is_above_one_that_repeats_some(call: Tools) -> None:
    order = found(call("search", query="zeppelin quokka marmalade"))
    assert order.index("notes/coverage-all.md") < order.index("notes/coverage-some.md")


def test_terms_are_judged_over_the_whole_document(call: Tools) -> None:
    got = scores(call("search", query="zeppelin quokka"))
    assert got["notes/coverage-far.md"] >= 0.6


def test_a_title_counts_more_than_a_body(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        library.put(Draft("document", "a.md", parent="n", title="Other", body="words zeppelin here", format="markdown"))
        library.put(Draft("document", "b.md", parent="n", title="Zeppelin", body="words other here", format="markdown"))
        library.put(Draft("document", "zeppelin.md", parent="n", title="Third", body="words other here"))
        order = found(tools_over(library)("search", query="zeppelin"))
        assert order[0] == "n/b.md"
        assert len(order) == 3


@pytest.mark.parametrize("tool", ["search", "query", "vsearch"])
def test_a_score_does_not_depend_on_limit_floor_or_earlier_calls(vcall: Tools, tool: str) -> None:
    everything = scores(vcall(tool, query="tea water minutes", limit=20, minScore=0))
    for limit in (1, 5, 10, 20):
        assert scores(vcall(tool, query="tea water minutes", limit=limit, minScore=0)).items() <= everything.items()
    floor = sorted(everything.values())[len(everything) // 2]
    kept = scores(vcall(tool, query="tea water minutes", limit=20, minScore=floor))
    assert kept == {file: score for file, score in everything.items() if file in kept}
    assert set(kept) >= {file for file, score in everything.items() if score > floor}


def test_a_keyword_score_does_not_depend_on_hits_elsewhere(call: Tools) -> None:
    everywhere = scores(call("search", query="oolong water", limit=20))
    for file, score in scores(call("search", query="oolong water", limit=20, collection="notes")).items():
        assert everywhere[file] == score


@pytest.mark.parametrize("tool", ["search", "query", "vsearch"])
def test_results_are_best_first_and_rounded_to_two_decimals(vcall: Tools, tool: str) -> None:
    reply = vcall(tool, query="night train to vienna", limit=50)
    got = [result["score"] for result in results(reply)]
    assert got == sorted(got, reverse=True)
    assert all(score == round(score, 2) for score in got)
    lines = text_of(reply).split("\n")[2 : 2 + len(got)]
    assert [int(re.search(r" (\d+)% ", line)[1]) for line in lines] == [round(100 * score) for score in got]  # type: ignore[index]


def test_equals_stand_by_file(call: Tools) -> None:
    assert found(call("search", query="exactly same words files"))[:2] == ["notes/twin-1.md", "notes/twin-2.md"]


def test_a_second_look_moves_hits_by_no_more_than_its_share(vcall: Tools) -> None:
    asked = {"query": "bread oven", "limit": 100, "explain": True}
    looked, plain = results(vcall("query", **asked)), results(vcall("query", rerank=False, **asked))
    assert {one["file"] for one in looked} == {one["file"] for one in plain}
    assert sum(one["explain"]["rerankScore"] is not None for one in looked) == min(30, len(looked))
    before = {one["file"]: one["explain"] for one in plain}
    for explain, file in ((one["explain"], one["file"]) for one in looked):
        assert explain["retrievalScore"] == before[file]["blendedScore"]
        share = 0.25 if explain["rrf"]["rank"] <= 3 else 0.4 if explain["rrf"]["rank"] <= 10 else 0.6
        assert abs(explain["blendedScore"] - explain["retrievalScore"]) <= share


def test_meaning_finds_other_words_and_drops_the_unrelated(vcall: Tools) -> None:
    files = found(vcall("vsearch", query="baking loaves"))
    assert files
    assert "bread" in files[0]
    assert found(vcall("query", query="baking loaves"))[0] in files


# snippets


SOURCES = {**SPECIAL}


@pytest.mark.parametrize(
    "query", ["oolong water", "quarterly budget", "filler quokka", "line 120", "larger kilobytes", "東京"]
)
@pytest.mark.parametrize("tool", ["search", "query", "vsearch"])
def test_snippets_are_source_lines_with_their_numbers(vcall: Tools, vectors: Library, tool: str, query: str) -> None:
    for result in results(vcall(tool, query=query, minScore=0)):
        source = vectors.get(result["uri"]).body
        assert source is not None
        lines = source.split("\n")
        shown = [re.match(r"(\d+): (.*)\Z", line, re.DOTALL) for line in result["snippet"].split("\n")]
        assert all(shown)
        numbers = [int(match[1]) for match in shown if match]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert result["line"] in numbers
        assert numbers[0] >= result["line"] - 1
        assert numbers[-1] <= result["line"] + 2
        assert sum(len(match[2]) for match in shown if match) <= 300
        for match in filter(None, shown):
            assert match[2].strip("…") in lines[int(match[1]) - 1]


def test_the_best_line_has_most_of_the_query_and_get_shows_it(call: Tools) -> None:
    result = results(call("search", query="budget staff"))[0]
    assert (result["file"], result["line"]) == ("notes/2025/plan.md", 4)
    (block,) = call("get", file=f"{result['file']}:{result['line']}:1").content
    assert block["resource"]["text"].endswith("Budget and staff are in it.")


def test_the_best_line_is_found_behind_any_number_of_lines_that_have_less(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        lines = [f"lantern {number}" for number in range(150)]
        library.put(Draft("document", "log.md", parent="n", body="\n".join([*lines, "lantern quokka", "the end"])))
        (result,) = results(tools_over(library)("search", query="lantern quokka"))
    assert result["line"] == 151
    assert "151: lantern quokka" in result["snippet"].split("\n")


def test_a_long_line_is_cut_where_most_of_the_query_stands(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        library.put(Draft("document", "line.md", parent="n", body="lantern and more " * 150 + "quokka"))
        (result,) = results(tools_over(library)("search", query="lantern quokka"))
    assert "quokka" in result["snippet"]


def test_intent_steers_the_line_but_never_searches(vcall: Tools, call: Tools) -> None:
    plain = call("query", query="the")
    steered = call("query", query="the", intent="marmalade zeppelin quokka")
    assert found(plain) == found(steered)
    line = results(call("query", query="tomatoes", intent="entry log"))[0]["line"]
    assert line == 5


# what is said


def test_the_text_lists_docid_percent_file_and_title(call: Tools) -> None:
    reply = call("search", query="zeppelin  quokka\nmarmalade", limit=2)
    first, second = results(reply)
    assert text_of(reply) == (
        'Found 2 results for "zeppelin quokka marmalade":\n\n'
        f"{first['docid']} {round(100 * first['score'])}% {first['file']} - {first['title']}\n"
        f"{second['docid']} {round(100 * second['score'])}% {second['file']} - {second['title']}"
    )
    assert text_of(call("search", query="marmalade")).startswith('Found 1 result for "marmalade":\n\n')
    assert text_of(call("search", query="xyzzyqq")) == 'No results found for "xyzzyqq"'
    assert text_of(call("search", query="q" * 300)) == f'No results found for "{"q" * 200}…"'


def test_a_result_is_what_the_contract_says(call: Tools) -> None:
    (result,) = results(call("search", query="quarterly"))
    assert list(result) == ["docid", "file", "title", "score", "context", "line", "snippet", "uri"]
    assert re.fullmatch(r"#[0-9a-f]{6}", result["docid"])
    assert result["context"] == "Everything about the house.\n\nPlans of the year --> and more."
    assert result["uri"] == "qmd://notes/2025/plan.md"


def test_stages_say_what_ran_and_what_did_not(call: Tools, vcall: Tools) -> None:
    assert list(stages(call("search", query="tea"))) == ["lexical"]
    assert list(stages(vcall("vsearch", query="tea"))) == ["vector"]
    without = stages(call("query", query="tea"))
    assert {name: stage["status"] for name, stage in without.items()} == {
        "lexical": "ran", "vector": "skipped", "expand": "skipped", "rerank": "ran",
    }  # fmt: skip
    assert without["vector"]["reason"] == NO_VECTORS
    assert stages(vcall("query", query="tea"))["vector"]["status"] == "ran"
    assert all(stage["ms"] >= 0 and ("reason" in stage) == (stage["status"] != "ran") for stage in without.values())


def test_a_query_without_vectors_goes_by_words_and_says_so(call: Tools, vcall: Tools) -> None:
    assert text_of(call("query", query="oolong")).endswith(f"\n\nNote: keyword search only. {NO_VECTORS}")
    assert "Note:" not in text_of(vcall("query", query="oolong"))


def test_meaning_without_vectors_is_a_failure(call: Tools) -> None:
    for run in (
        lambda: call("vsearch", query="tea"),
        lambda: call("query", searches=[{"type": "vec", "query": "tea"}, {"type": "hyde", "query": "tea"}]),
    ):
        assert failure(run) == ("vector_index_missing", NO_VECTORS)


def test_a_script_the_model_cannot_read_goes_by_words(vcall: Tools) -> None:
    reply = vcall("query", query="東京都庁")
    assert found(reply)[0] == "docs/日本/東京.md"
    assert "does not read this script" in stages(reply)["vector"]["reason"]


def test_partial_vectors_are_told(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path, embed_on_search=0) as library:
        library.put(Draft("document", "a.md", parent="n", title="A", body="oolong"))
        library.embed()
        library.put(Draft("document", "b.md", parent="m", title="B", body="oolong too"))
        call = tools_over(library)
        reply = call("query", query="oolong")
        assert set(found(reply)) == {"n/a.md", "m/b.md"}
        assert "\n\nNote: 1 document has no vectors yet" in text_of(reply)
        assert "Note:" not in text_of(call("query", query="oolong", collection="n"))
        assert failure(lambda: call("vsearch", query="oolong", collection="m")) == ("vector_index_missing", NO_VECTORS)
        assert text_of(call("query", query="oolong", collection="m")).endswith(
            f"Note: keyword search only. {NO_VECTORS}"
        )


# typed searches


def test_typed_searches_are_one_list_each_and_the_first_counts_double(vcall: Tools) -> None:
    searches = [
        {"type": "lex", "query": "oolong"},
        {"type": "vec", "query": "baking bread"},
        {"type": "hyde", "query": "Knead the dough"},
    ]
    reply = vcall("query", searches=searches, explain=True, limit=50)
    weights = {(one["queryType"], one["source"]): one["weight"] for result in results(reply)
               for one in result["explain"]["rrf"]["contributions"]}  # fmt: skip
    assert weights == {("lex", "fts"): 2.0, ("vec", "vec"): 1.0, ("hyde", "vec"): 1.0}


def test_a_query_document_means_the_same_as_searches(vcall: Tools) -> None:
    document = "LEX: oolong\n\n vec: how to bake bread\nintent: breakfast"
    searches = [{"type": "lex", "query": "oolong"}, {"type": "vec", "query": "how to bake bread"}]
    assert results(vcall("query", query=document)) == results(vcall("query", searches=searches, intent="breakfast"))
    assert found(vcall("query", query="lex: marmalade"))[0] == "notes/coverage-all.md"
    assert text_of(vcall("query", searches=searches[:1])).startswith("Found ")


def test_a_vec_entry_beside_a_lex_one_is_skipped_without_vectors(call: Tools) -> None:
    reply = call("query", searches=[{"type": "lex", "query": "oolong"}, {"type": "vec", "query": "tea"}])
    assert results(reply)
    assert stages(reply)["vector"] == {"stage": "vector", "status": "skipped", "ms": 0.0, "reason": NO_VECTORS}


def test_exactly_one_of_query_and_searches_is_given(call: Tools) -> None:
    both = {"query": "tea", "searches": [{"type": "lex", "query": "tea"}]}
    assert failure(lambda: call("query", **both)) == (
        "invalid_argument", "Error: 'query' and 'searches' are mutually exclusive; provide only one",
    )  # fmt: skip
    assert failure(lambda: call("query")) == (
        "invalid_argument", "Error: provide either 'query' (plain text) or 'searches' (typed sub-queries)",
    )  # fmt: skip


# explain


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
def test_an_explanation_adds_up(vcall: Tools, tool: str) -> None:
    asked = {"query": "night train", "limit": 30, "explain": True, **({"rerank": False} if tool == "query" else {})}
    reply = vcall(tool, **asked)
    totals = []
    for place, result in enumerate(results(reply), start=1):
        explain = result["explain"]
        rrf = explain["rrf"]
        assert rrf["rank"] == place
        assert rrf["weight"] == (0.75 if place <= 3 else 0.6 if place <= 10 else 0.4)
        assert rrf["baseScore"] == pytest.approx(sum(one["rrfContribution"] for one in rrf["contributions"]))
        assert rrf["totalScore"] == pytest.approx(rrf["baseScore"] + rrf["topRankBonus"])
        for one in rrf["contributions"]:
            assert one["rrfContribution"] == pytest.approx(one["weight"] / (60 + one["rank"]))
            assert (one["queryType"], one["weight"], one["query"]) == ("original", 2.0, "night train")
        best = min(one["rank"] for one in rrf["contributions"])
        assert rrf["topRankBonus"] == (0.05 if best == 1 else 0.02 if best <= 3 else 0)
        assert explain["rerankScore"] is None
        assert explain["blendedScore"] == explain["retrievalScore"]
        assert result["score"] == pytest.approx(explain["blendedScore"], abs=0.0051)
        totals.append(rrf["totalScore"])
    assert totals == sorted(totals, reverse=True)
    assert results(vcall(tool, query="night train", limit=30))[0].get("explain") is None


# arguments


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("search", {}, "query"),
        ("search", {"query": " \n"}, "query must not be empty"),
        ("search", {"query": 5}, "query"),
        ("search", {"query": "x" * 100_001}, "query"),
        ("search", {"query": "tea", "limit": 0}, "limit"),
        ("search", {"query": "tea", "limit": 501}, "limit"),
        ("search", {"query": "tea", "limit": 1.5}, "limit"),
        ("search", {"query": "tea", "limit": True}, "limit"),
        ("search", {"query": "tea", "minScore": 1.1}, "minScore"),
        ("search", {"query": "tea", "minScore": float("nan")}, "minScore"),
        ("search", {"query": "tea", "collections": []}, "collections"),
        ("search", {"query": "tea", "intent": "no"}, "intent"),
        ("search", {"query": "tea", "min_score": 0}, "min_score"),
        ("vsearch", {"query": "tea", "intent": "x" * 2001}, "intent"),
        ("query", {"searches": []}, "searches"),
        ("query", {"searches": [{"type": "sql", "query": "x"}]}, "searches"),
        ("query", {"searches": [{"type": "lex", "query": " "}]}, "query must not be empty"),
        ("query", {"query": "tea", "candidateLimit": 101}, "candidateLimit"),
        ("get", {}, "file"),
        ("get", {"file": "x", "maxLines": 0}, "maxLines"),
        ("get", {"file": "/a" * 5001}, "file"),
        ("multi_get", {"pattern": "a," * 10_001}, "pattern"),
        ("multi_get", {"pattern": "x", "maxBytes": 0}, "maxBytes"),
        ("status", {"x": 1}, "x"),
    ],
)
def test_a_wrong_argument_is_one_sentence_that_names_it(
    call: Tools, tool: str, arguments: dict[str, Any], named: str
) -> None:
    code, said = failure(lambda: call(tool, **arguments))
    assert code == "invalid_argument"
    assert named in said


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "tea \ud800"}),
        ("query", {"searches": [{"type": "lex", "query": "tea \udfff"}]}),
        ("search", {"query": "tea", "collection": "\ud800"}),
        ("search", {"query": "tea", "\ud800": 1}),
        ("get", {"file": "tea\ud800.md"}),
        ("multi_get", {"pattern": "tea\ud800*"}),
    ],
)
def test_half_a_character_never_comes_back(call: Tools, tool: str, arguments: dict[str, Any]) -> None:
    try:
        said = text_of(call(tool, **arguments))
    except CommonplaceError as refused:
        said = str(refused)
    assert "\ufffd" in said
    said.encode()


def test_an_unknown_argument_is_told_with_those_there_are(call: Tools) -> None:
    assert failure(lambda: call("get", file="x", lines=3))[1].endswith(
        "It takes: file, fromLine, maxLines, lineNumbers."
    )


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(), max_size=2)
names = st.sampled_from(["query", "limit", "minScore", "collection", "collections", "explain", "x"])


@given(st.dictionaries(names, values))
def test_any_arguments_are_answered_or_refused(words: Library, arguments: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidInput, NotFound):
        json.dumps(tools_over(words)("search", **arguments).structured)
