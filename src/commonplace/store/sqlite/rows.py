"""The store on SQLite: values of indexed metadata, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw


def hold_values(db: apsw.Connection, held: Sequence[tuple[tuple[int, str, Any], int]]) -> None:
    """Note which items hold which values of indexed fields. A value (field, shape, value) is kept once."""
    values = list(dict.fromkeys(value for value, _ in held))
    find = "select (select id from metadata_values where (field, shape, value) = (?, ?, ?))"
    rows: Any = db.executemany(find, values)
    known = {value: identity for value, (identity,) in zip(values, rows, strict=True)}
    unknown = [value for value in values if known[value] is None]
    rows = db.executemany("insert into metadata_values (field, shape, value) values (?, ?, ?) returning id", unknown)
    known |= {value: identity for value, (identity,) in zip(unknown, rows, strict=True)}
    pairs = sorted({(known[value], item_id) for value, item_id in held})  # neighbours in the table go in together
    db.executemany("insert or ignore into metadata_holders (value, item_id) values (?, ?)", pairs)
