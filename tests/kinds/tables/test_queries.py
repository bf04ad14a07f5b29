"""JMESPath: what it answers, what is refused, and that nothing runs on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from commonplace.errors import InvalidInput, TooLarge
from commonplace.kinds.tables.queries import SECONDS, Queries


@pytest.fixture
def queries() -> Iterator[Queries]:
    found = Queries()
    yield found
    found.close()


def test_an_expression_is_evaluated_and_null_is_an_answer(queries: Queries) -> None:
    data = '{"rows":[{"a":1,"b":"x"},{"a":2,"b":"é"}]}'
    assert queries.run("rows[?a > `1`].b", data) == ["é"]
    assert queries.run("nothing.here", data) is None
    assert queries.run("max_by(rows, &a).b", data) == "é"
    assert queries.run("sum([`12345678901234567890`, `1`])", "{}") == 12345678901234567891


@pytest.mark.parametrize(
    ("expression", "answer"),
    [("[?price > `5`].name", ["b"]), ("[?price < 'o'].name", ["c"]), ("[0].price >= [2].price", None)],
)
def test_what_has_no_order_is_left_out_and_is_no_error(queries: Queries, expression: str, answer: object) -> None:
    data = '[{"name":"a","price":3},{"name":"b","price":7.5},{"name":"c","price":"n/a"},{"name":"d","price":true},{}]'
    assert queries.run(expression, data) == answer


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("rows[", "position"),
        ("a..b", "position"),
        ("[?", "query is not JMESPath"),
        ("((((", "query is not JMESPath"),
        ("rows[*].no_such(@)", r"query is not JMESPath at position 8: there is no function no_such\(\)\."),
    ],
)
def test_a_bad_expression_is_refused_with_its_position(queries: Queries, expression: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        queries.run(expression, "{}")


@pytest.mark.parametrize("expression", ["length()", "abs('x')", "length(`1`)", "sort_by([{a:'x'},{a:`1`}], &a)"])
def test_what_cannot_be_evaluated_is_refused(queries: Queries, expression: str) -> None:
    with pytest.raises(InvalidInput, match="query cannot be evaluated"):
        queries.run(expression, "{}")


@pytest.mark.parametrize("depth", [151, 260, 940])
def test_an_answer_too_deep_to_be_sent_is_refused(queries: Queries, depth: int) -> None:
    fits = "[" * 150 + "]" * 150
    assert json.dumps(queries.run(f"`{fits}`", "{}")) == fits
    with pytest.raises(InvalidInput, match="nested more than 150 deep"):
        queries.run(f"`{'[' * depth}{']' * depth}`", "{}")
    assert queries.run("@", "1") == 1


DOUBLED = "[@,@]" + "|[@,@]" * 60
BOMBS = [
    DOUBLED,
    f"to_string({DOUBLED})",
    "[@,@][]" + "|[@,@][]" * 60,
    f"({DOUBLED}) == ({DOUBLED})",
    "join('', [to_string(@), to_string(@)])" + "|join('', [@, @])" * 60,
    "map(&map(&map(&map(&@, $), $), $), $)".replace("$", "rows"),
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_is_stopped_in_bounded_time_and_the_next_query_answers(queries: Queries, bomb: str) -> None:
    data = json.dumps({"rows": list(range(2000))})
    started = time.monotonic()
    with pytest.raises((InvalidInput, TooLarge)):
        queries.run(bomb, data)
    assert time.monotonic() - started < 10 * SECONDS
    assert queries.run("length(rows)", data) == 2000


def test_an_answer_that_is_too_large_is_refused_and_not_cut(queries: Queries) -> None:
    with pytest.raises(TooLarge, match=r"1200007 bytes, and at most 1048576 \(1 MiB\) are sent") as refusal:
        queries.run("[@, @]", '"' + "a" * 600_000 + '"')
    assert refusal.value.details["size"] == 1_200_007
    with pytest.raises(TooLarge, match="The answer has more than"):  # it has no end that could be waited for
        queries.run(DOUBLED, '"' + "a" * 1000 + '"')
    with pytest.raises(InvalidInput, match="nested too deep"):
        queries.run("(" * 900 + "a" + ")" * 900, "{}")


def test_queries_run_where_packages_are_found_by_the_environment_alone(tmp_path: Path) -> None:
    """As where they were installed into a folder, and `PYTHONPATH` names it."""
    program = (
        "from commonplace.kinds.tables.queries import Queries; "
        "q = Queries(); print(q.run('a', '{\"a\": 1}')); q.close()"
    )
    venv.create(tmp_path / "bare", symlinks=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [tmp_path / "bare/bin/python", "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("1\n", "")
