"""The store on PostgreSQL: what memory entries have beside their items."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from commonplace.model import Draft, Filter
from commonplace.store.filters import path_from
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.store.postgres.filters import HEAD, kept_values
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.rows import ENTRY_BATCH, MOST_NUMBER, EntryRow, Past, Said, Write
from commonplace.store.shaping import is_number, json_text, now_micros

_ENTRY = """id, item_id, thread, source, created_at, images, expires_at,
  (select max(newer) from supersessions where older = memories.id),
  array(select older from supersessions where newer = memories.id order by older)"""


_NEXT = "(select coalesce(max(id), 0) + 1 from {})"


class PostgresEntryRows(PostgresItems):
    """Numbers, threads, expiry, supersession, history, and the metadata fields that are indexed."""

    @reads
    def next_entry(self) -> int:
        current = self._database.current
        if current is not None and current.numbers is not None:
            return current.numbers["entry"] + 1
        return int(self._one("select entry + 1 from spaces"))

    @reads
    def entries(self, numbers: Sequence[int]) -> list[EntryRow]:
        wanted = [number for number in numbers if abs(number) <= MOST_NUMBER]
        entries_by_number = {entry.number: entry for entry in self._entries("id", wanted)}
        return [entries_by_number[number] for number in wanted if number in entries_by_number]

    @reads
    def entries_of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        entries_by_item = {entry.item_id: entry for entry in self._entries("item_id", item_ids)}
        return [entries_by_item[item_id] for item_id in item_ids if item_id in entries_by_item]

    def _entries(self, column: str, wanted: Sequence[int]) -> list[EntryRow]:
        rows = self._all(f"select {_ENTRY} from memories where {column} = any(%s::bigint[])", (list(wanted),))
        return [_entry(row) for row in rows]

    @reads
    def latest_entries(self, threads: Sequence[str], limit: int) -> dict[str, list[Said]]:
        rows = self._all(
            """select wanted, said.id, item_id, source, exists (select 1 from supersessions where older = said.id),
                 body, created_at
               from unnest(%s::text[], %s::text[]) as asked (head, wanted) cross join lateral
                 (select id, item_id, source, created_at, body from memories join bodies using (space, item_id)
                  where thread_head = head and thread = wanted order by created_at desc, id desc limit %s) as said
               order by wanted, created_at desc, said.id desc""",
            ([thread[:HEAD] for thread in threads], list(threads), limit),
        )
        latest: dict[str, list[Said]] = defaultdict(list)
        for thread, *said in rows:
            latest[thread].append(Said(*said))
        return latest

    @writes
    def add_entries(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        number = self.next_entry()
        keyed = [(str(number + place), write) for place, write in enumerate(writes)]
        ids = self.drawer(Items).add(keyed, now_micros())
        return [(number + place, item_id) for place, item_id in enumerate(ids)]

    @reads
    def entry_numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        tests, values = ["true"], dict[str, Any]()
        if numbers is not None:
            tests.append("id = any(%(numbers)s::bigint[])")
            values["numbers"] = [number for number in numbers if abs(number) <= MOST_NUMBER]
        if threads is not None:
            tests.append("thread_head = any(%(heads)s::text[]) and thread = any(%(threads)s::text[])")
            values |= {"heads": [thread[:HEAD] for thread in threads], "threads": list(threads)}
        if source is not None:
            tests.append("source = %(source)s")
            values["source"] = source
        if before is not None:
            tests.append("created_at < %(before)s")
            values["before"] = before
        rows = self._all(f"select id from memories where {' and '.join(tests)} order by id", values)
        return [number for (number,) in rows]

    @reads
    def expired(self, now: int) -> list[int]:
        query = "select item_id from memories where expires_at is not null and expires_at <= %s order by expires_at"
        return [item_id for (item_id,) in self._all(query, (now,))]

    @writes
    def restore_entry(self, write: Write, version: int) -> int:
        item_id = self.drawer(Items).store([write], now_micros())[0]
        self._run("update items set version = %s where id = %s", (version, item_id))
        self._run("update changes set version = %s where seq = (select max(seq) from changes)", (version,))
        return item_id

    @writes
    def supersede(self, newer: int, older: Sequence[int]) -> None:
        self._run(
            """insert into supersessions (older, newer) select id, %s from memories where id = any(%s::bigint[])
               on conflict (space, older, newer) do nothing""",
            (newer, [number for number in older if abs(number) <= MOST_NUMBER]),
        )

    @writes
    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        digest = hashlib.sha256(body.encode("utf-8")).hexdigest()
        fields = self._one(
            "select fields from items where id = %s and kind = 'memory' and content_hash = %s", (item_id, digest)
        )
        if fields is None or not summary.strip():
            return False
        kept = json_text({**json.loads(fields), "summary": summary})
        self._run("update items set fields = %s where id = %s", (kept, item_id))
        return True

    @reads
    def superseded_items(self) -> list[int]:
        query = "select item_id from memories where id in (select older from supersessions) order by item_id"
        return [item_id for (item_id,) in self._all(query)]

    # history

    @writes
    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        self._run(
            """insert into memory_history (item_id, version, updated_at, body, metadata, tags, images)
               values (%s, %s, %s, %s, %s, %s, %s)""",
            (
                item_id,
                past.version,
                past.updated_at,
                past.body,
                *map(json_text, (past.metadata, past.tags, past.images)),
            ),
        )
        self._run(
            """delete from memory_history where item_id = %(item)s and version not in
                 (select version from memory_history where item_id = %(item)s order by version desc limit %(most)s)""",
            {"item": item_id, "most": most},
        )

    @reads
    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        rows = self._all(
            """select item_id, version, updated_at, body, metadata, tags, images from memory_history
               where item_id = any(%s::bigint[]) order by item_id, version desc""",
            (list(item_ids),),
        )
        states: dict[int, list[Past]] = defaultdict(list)
        for item_id, version, updated_at, body, metadata, tags, images in rows:
            shown = tuple((hash, media_type) for hash, media_type in json.loads(images))
            states[item_id].append(
                Past(version, updated_at, body, json.loads(metadata), tuple(json.loads(tags)), shown)
            )
        return states

    # what is kept beside the item, in the transaction that writes it

    def _put_entry(self, item_id: int, draft: Draft, *, fresh: bool) -> None:
        if not fresh:
            self._unindex_metadata([item_id])
        if draft.metadata:
            for path, field in self._fields().items():
                self._hold(item_id, field, kept_values(draft.metadata, path))
        source, current = draft.fields.get("source"), self._database.current
        if current is not None and current.numbers is not None and is_number(draft.key):
            current.numbers["entry"] = max(current.numbers["entry"], int(draft.key))
        if not source or not draft.key.isdecimal():
            return  # an item of this kind that no thread of a conversation put here
        number = int(draft.key)
        self._run(
            """insert into memories (id, item_id, thread, source, created_at, expires_at)
               select %(number)s, id, parent, %(source)s, created_at, %(expires)s::bigint from items where id = %(item)s
               on conflict (space, item_id) do update
                 set created_at = excluded.created_at, expires_at = excluded.expires_at""",
            {"number": number, "item": item_id, "source": source, "expires": draft.fields.get("expires_at")},
        )
        if older := draft.fields.get("supersedes"):
            self.supersede(number, older)

    def _delete_entries(self, item_ids: Sequence[int]) -> None:
        if item_ids:
            self._unindex_metadata(item_ids)
            self._run("delete from memories where item_id = any(%s::bigint[])", (list(item_ids),))

    # indexed metadata

    @reads
    def indexed_fields(self) -> list[tuple[str, ...]]:
        return list(self._fields())

    @writes
    def index_field(self, path: tuple[str, ...]) -> None:
        if path in self._fields():
            return
        field = int(
            self._one(
                f"insert into metadata_fields (id, path) values ({_NEXT.format('metadata_fields')}, %s) returning id",
                (json_text(path),),
            )
        )
        after = 0
        while items := self.drawer(Listing).scan(Filter(kinds=("memory",)), after=after, limit=ENTRY_BATCH):
            after = items[-1].id
            for item in items:
                self._hold(item.id, field, kept_values(item.metadata, path))

    @writes
    def drop_field(self, path: tuple[str, ...]) -> None:
        field = self._fields().get(path)
        if field is None:
            return
        values = "select id from metadata_values where field = %s"
        self._run(f"delete from metadata_holders where value in ({values})", (field,))
        self._run("delete from metadata_values where field = %s", (field,))
        self._run("delete from metadata_fields where id = %s", (field,))

    def refresh_statistics(self) -> None:
        """Do nothing: the server's autovacuum looks after its statistics, and only their owner may."""

    def _fields(self) -> dict[tuple[str, ...], int]:
        return {path_from(path): field for path, field in self._all("select path, id from metadata_fields order by id")}

    def _hold(self, item_id: int, field: int, values: Sequence[tuple[str, str, Decimal]]) -> None:
        for shape, value, number in values:
            bound = {"field": field, "shape": shape, "head": value[:HEAD], "value": value, "number": number}
            found = self._one(
                """select id from metadata_values where (field, shape, value_head) = (%(field)s, %(shape)s, %(head)s)
                   and value = %(value)s and number = %(number)s""",
                bound,
            ) or self._one(
                f"""insert into metadata_values (id, field, shape, value, number)
                    values ({_NEXT.format("metadata_values")}, %(field)s, %(shape)s, %(value)s, %(number)s)
                    returning id""",
                bound,
            )
            self._run(
                """insert into metadata_holders (value, item_id) values (%s, %s)
                   on conflict (space, value, item_id) do nothing""",
                (found, item_id),
            )

    def _unindex_metadata(self, item_ids: Sequence[int]) -> None:
        held = self._all(
            "delete from metadata_holders where item_id = any(%s::bigint[]) returning value", (list(item_ids),)
        )
        if held:
            self._run(
                """delete from metadata_values where id = any(%s::bigint[])
                   and not exists (select 1 from metadata_holders where metadata_holders.value = metadata_values.id)""",
                ([value for (value,) in held],),
            )


def _entry(row: tuple[Any, ...]) -> EntryRow:
    number, item_id, thread, source, created, images, expires, superseded_by, supersedes = row
    return EntryRow(number, item_id, thread, source, created, images, expires, superseded_by, tuple(supersedes))
