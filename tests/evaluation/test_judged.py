"""Judged collections: what is read, what is left out, and what is said of a file that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.errors import InvalidInput
from commonplace.evaluation.judged import JudgedCollection, JudgedDocument, JudgedQuestion, find_judged, load_judged

FILES = {
    "corpus.jsonl": '{"_id": "d1", "title": "Tea", "text": "Oolong", "group": "drinks"}\n{"_id": "d2", "text": "Rope"}',
    "queries.jsonl": '{"_id": "q1", "text": "hot?", "group": "drinks"}\n{"_id": "q2", "text": "knots?"}\n',
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n",
}


def folder_with(home: Path, **changed: str) -> Path:
    folder = home / "tiny"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(changed.get(name.partition(".")[0], text), encoding="utf-8")
    return folder


def test_a_collection_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert load_judged(folder_with(tmp_path)) == JudgedCollection(
        "tiny",
        (JudgedDocument("d1", "Tea", "Oolong", "drinks"), JudgedDocument("d2", "", "Rope")),
        (JudgedQuestion("q1", "hot?", "drinks", {"d1": 2}), JudgedQuestion("q2", "knots?", "", {"d2": 1})),
    )


@pytest.mark.parametrize("judgement", ["", "q2\td2\t0\n", "q2\td2\t-1\n"])
def test_a_query_without_a_positive_judgement_is_left_out(tmp_path: Path, judgement: str) -> None:
    folder = folder_with(tmp_path, qrels=f"query-id\tcorpus-id\tscore\nq1\td1\t1\n{judgement}")
    assert [question.id for question in load_judged(folder).questions] == ["q1"]


def test_judgements_of_queries_and_documents_elsewhere_are_no_error(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, qrels="query-id\tcorpus-id\tscore\nq1\tgone\t1\nother split\td1\t1\n")
    assert [question.grades for question in load_judged(folder).questions] == [{"gone": 1}]


def test_blank_lines_and_line_separators_inside_a_text_are_no_line_ends(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, corpus='{"_id": "d1", "text": "one\u2028two"}\n\n{"_id": "d2", "text": "three"}')
    assert [document.text for document in load_judged(folder).documents] == ["one\u2028two", "three"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("corpus", '{"_id": "d1", "text": "a"}\n{"_id": ', "Line 2 of .*corpus.jsonl is not JSON"),
        ("corpus", '["d1"]', "Line 1 of .*corpus.jsonl is not a JSON object"),
        ("corpus", '{"text": "a"}', "Line 1 of .*corpus.jsonl has no _id"),
        ("corpus", '\n{"_id": "d1", "title": "a"}', "Line 2 of .*corpus.jsonl has no text"),
        ("corpus", '{"_id": 7, "text": "a"}', "Line 1 of .*: _id must be a string, not 7"),
        (
            "corpus",
            '{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}',
            'Line 2 of .* has the _id "d1" of an earlier',
        ),
        ("corpus", "", "has no document"),
        ("queries", '{"_id": "q1"}', "Line 1 of .*queries.jsonl has no text"),
        ("queries", '{"_id": "q1", "text": ["a"]}', r'Line 1 of .*queries.jsonl: text must be a string, not \["a"\]'),
        ("queries", "", "has no judged query"),
        ("qrels", "", "Line 1 of .*qrels.tsv must be the header query-id, corpus-id, score"),
        ("qrels", "q1\td1\t1\n", "Line 1 of .*qrels.tsv must be the header"),
        ("qrels", "query-id\tcorpus-id\tscore\nq1 d1 1\n", "Line 2 of .*qrels.tsv has 1 columns"),
        (
            "qrels",
            "query-id\tcorpus-id\tscore\nq1\td1\thigh\n",
            "Line 2 of .*: the score must be a whole number, not 'high'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, file: str, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        load_judged(folder_with(tmp_path, **{file: text}))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_unreadable_file_is_named(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path)
    (folder / name).write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InvalidInput, match=f"{name} cannot be read"):
        load_judged(folder)
    (folder / name).unlink()
    with pytest.raises(InvalidInput, match=f"There is no .*{name}. A judged collection has"):
        load_judged(folder)


def test_collections_are_found_at_a_folder_and_below_it(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (tmp_path / "empty").mkdir()
    assert find_judged(folder) == find_judged(tmp_path) == [folder]
    with pytest.raises(InvalidInput, match=r"no judged collection in .*empty"):
        find_judged(tmp_path / "empty")


@pytest.mark.parametrize(
    ("most", "expected"),
    [(None, range(10)), (99, range(10)), (10, range(10)), (5, [0, 2, 4, 6, 8]), (3, [0, 3, 6]), (1, [0])],
)
def test_a_sample_is_evenly_spaced(most: int | None, expected: list[int]) -> None:
    questions = tuple(JudgedQuestion(str(number), "", "", {"d": 1}) for number in range(10))
    collection = JudgedCollection("ten", (), questions)
    assert [int(question.id) for question in collection.sample(most).questions] == list(expected)


def test_a_sample_of_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one query"):
        JudgedCollection("one", (), (JudgedQuestion("q", "", "", {"d": 1}),)).sample(0)
