"""Judged collections: documents, questions, and which documents answer which question how well.

A folder in the layout of BEIR: `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and
`qrels.tsv` (a header, then query id, document id and grade). Where documents and queries carry a `group`, a query is
asked only among the documents of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from commonplace.errors import InvalidInput
from commonplace.model import JSON

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.tsv"
_COLUMNS = ("query-id", "corpus-id", "score")


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    id: str
    title: str
    text: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A query with its judgments. At least one of its grades is positive."""

    id: str
    text: str
    group: str
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JudgedCollection:
    """A judged collection. A grade may name a document that is not there: it counts as never found, as in trec_eval."""

    name: str
    documents: tuple[JudgedDocument, ...]
    questions: tuple[JudgedQuestion, ...]

    def sample(self, most: int | None) -> JudgedCollection:
        """Return at most `most` questions, evenly spaced.

        A set sorted by topic stays covered and every run asks the same.
        """
        if most is None or most >= len(self.questions):
            return self
        if most < 1:
            raise InvalidInput(f"A sample takes at least one query, not {most}.")
        places = (number * len(self.questions) // most for number in range(most))
        return replace(self, questions=tuple(self.questions[place] for place in places))


def find_judged(folder: Path) -> list[Path]:
    """Return the collections at a place: the folder itself, or those directly below it, by name."""
    if (folder / CORPUS).is_file():
        return [folder]
    folders = sorted(path.parent for path in folder.glob(f"*/{CORPUS}"))
    if not folders:
        raise InvalidInput(f"There is no judged collection in {folder}: no folder there has a {CORPUS}.")
    return folders


def load_judged(folder: Path) -> JudgedCollection:
    """Return a collection. Queries that nothing answers are left out: no ranking of theirs is better than another."""
    documents = tuple(
        JudgedDocument(id, _text(row, "title"), _text(row, "text"), _text(row, "group"))
        for id, row in _rows(folder / CORPUS)
    )
    grades = _grades(folder / QRELS)
    questions = tuple(
        JudgedQuestion(id, _text(row, "text"), _text(row, "group"), grades[id])
        for id, row in _rows(folder / QUERIES)
        if any(grade > 0 for grade in grades.get(id, {}).values())
    )
    if not documents or not questions:
        raise InvalidInput(
            f"{folder} has no {'judged query' if documents else 'document'}, so nothing can be measured."
        )
    return JudgedCollection(folder.resolve().name, documents, questions)


@dataclass(frozen=True, slots=True)
class _Row:
    """A JSON object and where it stands, for whoever has to say what is wrong with it."""

    place: str
    values: Mapping[str, JSON]


def _rows(path: Path) -> Iterator[tuple[str, _Row]]:
    seen: set[str] = set()
    for place, line in _lines(path):
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{place} is not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise InvalidInput(f"{place} is not a JSON object.")
        row = _Row(place, values)
        id = _text(row, "_id")
        if not id or "text" not in values:
            raise InvalidInput(f"{place} has no {'text' if id else '_id'}.")
        if id in seen:
            raise InvalidInput(f'{place} has the _id "{id}" of an earlier line.')
        seen.add(id)
        yield id, row


def _text(row: _Row, name: str) -> str:
    value = row.values.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{row.place}: {name} must be a string, not {json.dumps(value)[:40]}.")
    return value or ""


def _grades(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    lines = _lines(path)
    place, header = next(lines, (f"Line 1 of {path}", ""))
    if tuple(header.split("\t")) != _COLUMNS:
        raise InvalidInput(f"{place} must be the header {', '.join(_COLUMNS)}, separated by tabs.")
    for place, line in lines:
        columns = line.split("\t")
        if len(columns) != len(_COLUMNS):
            raise InvalidInput(f"{place} has {len(columns)} columns separated by tabs, not {len(_COLUMNS)}.")
        query, document, grade = columns
        try:
            grades.setdefault(query, {})[document] = int(grade)
        except ValueError:
            raise InvalidInput(f"{place}: the score must be a whole number, not {grade!r}.") from None
    return grades


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, each with its place in words."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"Line {number} of {path}", line.rstrip("\r\n")
    except FileNotFoundError:
        raise InvalidInput(f"There is no {path}. A judged collection has {CORPUS}, {QUERIES} and {QRELS}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
