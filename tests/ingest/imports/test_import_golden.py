"""Every text format, read from a file that is small but real in shape, gives exactly the records written beside it.

Binary formats are made by code and come out of the same readers: test_import_documents.py and test_import_cards.py.
"""

from __future__ import annotations

import json

import pytest
from import_samples import GOLDEN, remarks, source_of

from commonplace.ingest.imports.import_file import storable
from commonplace.ingest.imports.import_formats import choose

EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_golden_file_gives_the_records_written_beside_it(name: str) -> None:
    said = remarks(name)
    source = source_of((GOLDEN / name).read_bytes(), name)
    pieces = list(choose(EXPECTED[name]["import"], source)(source, said))
    assert [json.loads(storable(piece.record)[1]) for piece in pieces] == EXPECTED[name]["records"]
    assert [str(one) for one in said.warnings] == EXPECTED[name]["warnings"]


def test_every_golden_file_is_tested() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {*EXPECTED, "expected.json"}
