"""The index of metadata: chosen fields of memory entries, each value kept once beside the entries that hold it.

Filters read it (`filters.py` of either database), and a copy of a store has the same fields indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from commonplace.model import JSON
from commonplace.store.dialect import Tuned
from commonplace.store.filters import Fields, path_from, shapes
from commonplace.store.hanging import Hanging
from commonplace.store.rows import NumberedWrite
from commonplace.store.session import reads, writes
from commonplace.store.shaping import json_text, json_value

_BATCH = 500
"""Entries that are read at a time when a field is indexed."""
_IS_VALUE = Tuned(
    sqlite="(field, shape, value) = (:field, :shape, :value)",
    postgres="""(field, shape, value_head) = (cast(:field as bigint), :shape, left(:value, 100)) and value = :value
                and number = cast(:number as numeric)""",
)
_ADD_VALUE = Tuned(
    sqlite="insert into metadata_values (field, shape, value) values (:field, :shape, :value) on conflict do nothing",
    postgres=f"""insert into metadata_values (id, field, shape, value, number)
                 select (select coalesce(max(id), 0) + 1 from metadata_values), cast(:field as bigint), :shape, :value,
                   cast(:number as numeric)
                 where not exists (select 1 from metadata_values where {_IS_VALUE.postgres})""",
)
_HOLD = """insert into metadata_holders (value, item_id) select id, cast(:item as bigint) from metadata_values
  where {} on conflict key(value, item_id) do nothing"""
_ADD_HOLDER = Tuned(_HOLD.format(_IS_VALUE.sqlite), _HOLD.format(_IS_VALUE.postgres))


class MetadataIndex(Hanging):
    """A row per indexed field, per value that it has, and per entry that holds the value.

    A list's elements are values too, which no index of an expression could reach.
    """

    @reads
    def fields(self) -> dict[tuple[str, ...], int]:
        """Return the metadata paths by which entries are found without reading them all, and their numbers here."""
        return self._fields()

    @writes
    def add(self, path: tuple[str, ...]) -> None:
        """Index a metadata path, so that filters on it are fast. What they answer stays the same."""
        if path in self._fields():
            return
        row = self._db.row(
            """insert into metadata_fields (id, path)
               values ((select coalesce(max(id), 0) + 1 from metadata_fields), :path) returning id""",
            {"path": json_text(path)},
        )
        fields, after = {path: row[0] if row else 0}, 0
        while rows := self._db.all(
            "select id, metadata from items where kind = 'memory' and id > :after order by id limit :limit",
            {"after": after, "limit": _BATCH},
        ):
            after = rows[-1][0]
            self._hold([(item_id, json_value(metadata)) for item_id, metadata in rows], fields)

    @writes
    def drop(self, path: tuple[str, ...]) -> None:
        """Remove the index of a metadata path."""
        of_field = "select id from metadata_values where field = (select id from metadata_fields where path = :path)"
        values = {"path": json_text(path)}
        self._db.run(f"delete from metadata_holders where value in ({of_field})", values)
        self._db.run(f"delete from metadata_values where id in ({of_field})", values)
        self._db.run("delete from metadata_fields where path = :path", values)

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Store the values that new items hold."""
        metadata = [(write.item_id, write.write.draft.metadata) for write in writes if write.write.draft.metadata]
        if metadata:
            self._hold(metadata, self._fields())

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove what items hold, and the values that nobody holds any more."""
        rows = self._db.all(
            "delete from metadata_holders where item_id in each(:ids int) returning value", {"ids": item_ids}
        )
        if held := list({value for (value,) in rows}):
            self._db.run(
                """delete from metadata_values where id in each(:held int) and not exists
                     (select 1 from metadata_holders where metadata_holders.value = metadata_values.id)""",
                {"held": held},
            )

    def _fields(self) -> dict[tuple[str, ...], int]:
        query = "select path, id from metadata_fields order by id"
        return {path_from(path): field for path, field in self._db.all(query)}

    def _hold(self, metadata: Sequence[tuple[int, Mapping[str, JSON]]], fields: Fields) -> None:
        """Store which items hold which values of these fields."""
        columns = self._columns
        holders = [
            (item_id, *columns(field, *pair))
            for item_id, values in metadata
            for path, field in fields.items()
            if path[0] in values  # few entries have all of the fields
            for pair in shapes(values, path)
        ]
        self._db.run_all(_ADD_VALUE, list(dict.fromkeys(holder[1:] for holder in holders)))
        self._db.run_all(_ADD_HOLDER, holders)

    @cached_property
    def _columns(self) -> Callable[[int, str, Any], tuple[Any, ...]]:
        """Return the function of the columns of a field's value that tell it from others."""
        if self._db.dialect == "sqlite":
            return lambda field, shape, value: (field, shape, value)
        from commonplace.store.postgres.filters import kept_value

        return kept_value
