"""The rows of memory entries beside their items: numbers, threads, expiry, supersession, history and counts."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from commonplace.kinds.memories.entry import MOST_NUMBER, EntryRow, Past, Said, Tally, ThreadRow
from commonplace.model import CHUNK_BITS, Item
from commonplace.store.dialect import Tuned
from commonplace.store.hanging import Hanging
from commonplace.store.items import Items
from commonplace.store.rows import Moment, NumberedWrite, Write
from commonplace.store.session import reads, reads_together, writes, writes_within
from commonplace.store.shaping import is_number, json_text, now_micros

MOST_ACTIVE = 5
"""Threads that a tally names, those with the most entries."""
MOST_TAGS = 10
"""Tags that a tally names, the most frequent."""

_ENTRY = """id, item_id, thread, source, created_at, images, expires_at,
  (select max(newer) from supersessions where older = memories.id),
  (select string_agg(cast(older as text), ',') from supersessions where newer = memories.id)"""
_PUT = """insert into memories (id, item_id, thread, source, created_at, expires_at)
  select :number, id, parent, :source, created_at, cast(:expires_at as bigint) from items where id = :item
  on conflict key(item_id) do update set created_at = excluded.created_at, expires_at = excluded.expires_at"""
_SUPERSEDE = """insert into supersessions (older, newer)
  select memories.id, pair.newer from rows(:pairs older int, newer int) as pair
    join memories on memories.id = pair.older where true on conflict key(older, newer) do nothing"""
_LATEST = Tuned(
    sqlite="""select thread, memories.id, item_id, source,
                exists (select 1 from supersessions where older = memories.id), body, created_at
              from json_each(:list) as wanted cross join memories on memories.id in
                (select id from memories where thread = wanted.value order by created_at desc, id desc limit :limit)
              join bodies using (item_id) order by wanted.id, created_at desc, memories.id desc""",
    postgres="""select wanted, said.id, item_id, source, exists (select 1 from supersessions where older = said.id),
                  body, created_at
                from rows(:threads head text, wanted text) as asked cross join lateral
                  (select id, item_id, source, created_at, body from memories join bodies using (space, item_id)
                   where thread_head = head and thread = wanted order by created_at desc, id desc limit :limit) as said
                order by wanted, created_at desc, said.id desc""",
)
_IN_THREADS = Tuned(
    sqlite="thread in each(:threads text)",
    postgres="thread_head in each(:heads text) and thread in each(:threads text)",
)
_TIMES_OF = Tuned(
    sqlite="""select item_id, created_at from json_each(:list) as wanted
              cross join memories on item_id = wanted.value order by item_id""",
    postgres="select item_id, created_at from memories where item_id in each(:ids int) order by item_id",
)
# The newest and the oldest entry of each thread are the ends of its part of one index.
_THREADS = Tuned(
    sqlite="""select thread, entries, from_user, multimodal,
                (select created_at from memories where thread = counted.thread order by created_at, id limit 1),
                (select created_at from memories where thread = counted.thread
                 order by created_at desc, id desc limit 1) as last_at,
                (select id from memories where thread = counted.thread
                 order by created_at desc, id desc limit 1) as last_id
              from memory_threads as counted order by last_at desc, last_id desc limit :limit offset :offset""",
    postgres="""select counted.thread, entries, from_user, multimodal, oldest.created_at, newest.created_at, newest.id
                from memory_threads as counted
                cross join lateral (select created_at from memories
                  where thread_head = counted.thread_head and thread = counted.thread order by created_at, id limit 1)
                  as oldest
                cross join lateral (select created_at, id from memories
                  where thread_head = counted.thread_head and thread = counted.thread
                  order by created_at desc, id desc limit 1) as newest
                order by newest.created_at desc, newest.id desc limit :limit offset :offset""",
)
_SUMS = """select cast(coalesce(sum(entries), 0) as bigint), count(*), cast(coalesce(sum(from_user), 0) as bigint),
  cast(coalesce(sum(multimodal), 0) as bigint) from memory_threads"""
_COMMON_TAGS = """select min(tag), count(*) as held, count(*) over () from tags
  where exists (select 1 from memories where memories.item_id = tags.item_id)
  group by folded order by held desc, folded limit :most"""
_COUNTS = Tuned(
    sqlite="""select (select count(*) from item_attachments cross join memories using (item_id)),
                (select count(distinct older) from supersessions),
                (select count(*) from memories where expires_at is not null),
                (select count(*) from memories cross join items on items.id = item_id
                 where instr(fields, '"summary"') > 0 and coalesce(trim(fields ->> 'summary'), '') <> ''),
                (select page_count * page_size from pragma_page_count, pragma_page_size)""",
    # Of this space alone: how much others keep is not for its users to know.
    postgres="""select (select coalesce(sum(images), 0) from memories where images > 0),
                  (select count(distinct older) from supersessions),
                  (select count(*) from memories where expires_at is not null),
                  (select count(*) from items where id in (select item_id from memories)
                   and coalesce(trim(fields::jsonb ->> 'summary'), '') <> ''),
                  (select coalesce(sum(pg_column_size(body)), 0) from bodies)
                  + (select coalesce(sum(pg_column_size(text)), 0) from chunks)
                  + (select coalesce(sum(pg_column_size(vector)), 0) from embeddings)
                  + (select coalesce(sum(pg_column_size(data)), 0) from attachments)""",
)
_EMBEDDED = Tuned(
    sqlite=f"""select count(*) filter (where held), coalesce(sum(held), 0), count(*) filter (where held < passages)
               from (select count(*) as passages,
                       sum(exists (select 1 from embeddings where model = :model and key = vector_key)) as held
                     from memories cross join chunks
                       on chunks.id >= item_id << {CHUNK_BITS} and chunks.id < (item_id + 1) << {CHUNK_BITS}
                     group by memories.id)""",
    postgres="""select count(distinct item_id) filter (where held), count(*) filter (where held),
                  count(distinct item_id) filter (where not held)
                from (select chunks.item_id,
                        exists (select 1 from embeddings where model = :model and key = vector_key) as held
                      from memories join chunks on chunks.item_id = memories.item_id) as passages""",
)


class EntryRows(Hanging):
    """A row per entry, a row per pair of a newer and an older one, a row per former state; threads are counted."""

    # reading

    @reads
    def next_number(self) -> int:
        """Return the number of the entry that this transaction stores next. Numbers rise and are never reused."""
        return self._db.last("entry") + 1

    @reads
    def get(self, numbers: Sequence[int]) -> list[EntryRow]:
        """Return the entries of these numbers that exist, in the order of the numbers."""
        wanted = [number for number in numbers if abs(number) <= MOST_NUMBER]
        entries = {entry.number: entry for entry in self._entries("id", wanted)}
        return [entries[number] for number in wanted if number in entries]

    @reads
    def of(self, item_ids: Sequence[int]) -> list[EntryRow]:
        """Return the entries that these items are, in the order of the ids."""
        entries = {entry.item_id: entry for entry in self._entries("item_id", item_ids)}
        return [entries[item_id] for item_id in item_ids if item_id in entries]

    @reads
    def latest(self, threads: Sequence[str], limit: int) -> dict[str, list[Said]]:
        """Return the newest entries of each of these threads, newest first. A thread without any is left out."""
        values = {"list": json.dumps(list(threads)), "threads": [(name[:100], name) for name in threads]}
        latest: dict[str, list[Said]] = defaultdict(list)
        for thread, number, item_id, source, superseded, body, created in self._db.all(
            _LATEST, {**values, "limit": limit}
        ):
            latest[thread].append(Said(number, item_id, source, bool(superseded), body, created))
        return latest

    @reads
    def numbers(
        self,
        *,
        numbers: Sequence[int] | None = None,
        threads: Sequence[str] | None = None,
        source: str | None = None,
        before: int | None = None,
    ) -> list[int]:
        """Return the entries that satisfy every condition, ascending. `before` is a creation time in microseconds."""
        tests, values = ["1 = 1"], dict[str, Any]()  # only what is given: a test for null would hide an index
        if numbers is not None:
            tests.append("id in each(:numbers int)")
            values["numbers"] = [number for number in numbers if abs(number) <= MOST_NUMBER]
        if threads is not None:
            tests.append(self._db.tuned(_IN_THREADS))
            values |= {"heads": [thread[:100] for thread in threads], "threads": threads}
        if source is not None:
            tests.append("source = :source")
            values["source"] = source
        if before is not None:
            tests.append("created_at < :before")
            values["before"] = before
        rows = self._db.all(f"select id from memories where {' and '.join(tests)} order by id", values)
        return [number for (number,) in rows]

    @reads
    def times(self, item_ids: Sequence[int] | None = None) -> list[Moment]:
        """Return the entries among these items, or all there are, in the order of their item ids."""
        if item_ids is None:
            rows = self._db.all("select item_id, created_at from memories order by item_id")
        else:
            wanted = sorted(set(item_ids))
            rows = self._db.all(_TIMES_OF, {"ids": wanted, "list": json.dumps(wanted)})
        return [Moment(*row) for row in rows]

    @reads
    def past(self, item_ids: Sequence[int]) -> dict[int, list[Past]]:
        """Return the former states of entries by item id, newest first."""
        rows = self._db.all(
            """select item_id, version, updated_at, body, metadata, tags, images from memory_history
               where item_id in each(:ids int) order by item_id, version desc""",
            {"ids": item_ids},
        )
        states: dict[int, list[Past]] = defaultdict(list)
        for item_id, version, updated_at, body, metadata, tags, images in rows:
            shown = tuple((hash, media_type) for hash, media_type in json.loads(images))
            state = Past(version, updated_at, body, json.loads(metadata), tuple(json.loads(tags)), shown)
            states[item_id].append(state)
        return states

    @reads_together
    def threads(self, *, limit: int, offset: int) -> tuple[list[ThreadRow], int]:
        """Return threads, the one with the latest entry first, and how many there are in all."""
        rows = self._db.all(_THREADS, {"limit": limit, "offset": offset})
        row = self._db.row("select count(*) from memory_threads")
        return [ThreadRow(*columns) for columns in rows], row[0] if row else 0

    @reads_together
    def tally(self) -> Tally:
        """Return the counts of entries, all of one moment."""
        ((entries, threads, from_user, multimodal),) = self._db.all(_SUMS)
        active = self._db.all(
            "select thread, entries from memory_threads order by entries desc, thread limit :most",
            {"most": MOST_ACTIVE},
        )
        tags = self._db.all(_COMMON_TAGS, {"most": MOST_TAGS})
        (counts,) = self._db.all(_COUNTS)
        images, superseded, expiring, summaries, size = map(int, counts)
        common = tuple((tag, held) for tag, held, _ in tags)
        distinct = tags[0][2] if tags else 0
        return Tally(
            entries, threads, from_user, multimodal, tuple(active), common, images, distinct, superseded, expiring,
            summaries, size,
        )  # fmt: skip

    @reads
    def embedded(self, model_id: int) -> tuple[int, int, int]:
        """Return of a model: entries with vectors, their vectors, and entries that still lack some."""
        ((held, vectors, lacking),) = self._db.all(_EMBEDDED, {"model": model_id})
        return held, vectors, lacking

    # writing

    @writes_within
    def add(self, writes: Sequence[Write]) -> list[tuple[int, int]]:
        """Store new entries, each under the next number, which is its key whatever its draft says.

        Return (number, item id) of each. Where this raises, the transaction it is a part of has to fail too.
        """
        number = self._db.last("entry") + 1
        keyed = [(str(number + place), write) for place, write in enumerate(writes)]
        ids = self._db.drawer(Items).add(keyed, now_micros())
        return [(number + place, item_id) for place, item_id in enumerate(ids)]

    @writes
    def restore(self, write: Write, version: int) -> int:
        """Store an entry that is not here yet, at the version it had when exported, and return its item's id."""
        (item_id,) = self._db.drawer(Items).store([write], now_micros())
        self._db.run("update items set version = :version where id = :item", {"version": version, "item": item_id})
        self._db.run(
            "update changes set version = :version where seq = (select max(seq) from changes)", {"version": version}
        )
        return item_id

    @writes
    def supersede(self, newer: int, older: Sequence[int]) -> None:
        """Note that an entry replaces older ones; those that are not here are left out."""
        self._supersede([(number, newer) for number in older])

    @writes
    def set_summary(self, item_id: int, body: str, summary: str) -> bool:
        """Store the summary of an entry if this is still its text, and return whether it was stored.

        It makes no version and no change: nobody who follows the log has a use for it.
        """
        row = self._db.row(
            "select fields from items where id = :item and kind = 'memory' and content_hash = :digest",
            {"item": item_id, "digest": hashlib.sha256(body.encode("utf-8")).hexdigest()},
        )
        if row is None or not summary.strip():
            return False
        fields = json_text({**json.loads(row[0]), "summary": summary})
        self._db.run("update items set fields = :fields where id = :item", {"fields": fields, "item": item_id})
        return True

    @writes
    def keep_past(self, item_id: int, past: Past, most: int) -> None:
        """Store a former state of an entry, and remove all but the newest `most`."""
        metadata, tags, images = map(json_text, (past.metadata, past.tags, past.images))
        self._db.run(
            """insert into memory_history (item_id, version, updated_at, body, metadata, tags, images)
               values (:item, :version, :updated_at, :body, :metadata, :tags, :images)""",
            {
                "item": item_id, "version": past.version, "updated_at": past.updated_at, "body": past.body,
                "metadata": metadata, "tags": tags, "images": images,
            },
        )  # fmt: skip
        self._db.run(
            """delete from memory_history where item_id = :item and version not in
                 (select version from memory_history where item_id = :item order by version desc limit :most)""",
            {"item": item_id, "most": most},
        )

    # what hangs on items

    def added(self, writes: Sequence[NumberedWrite]) -> None:
        """Store the rows of items that are entries of a thread, and give no number away that one of them is called."""
        entries = [write for write in writes if _is_entry(write)]
        if entries:
            self._db.run_all(_PUT, [_row(entry) for entry in entries])
        pairs = [
            (older, int(entry.key)) for entry in entries for older in entry.write.draft.fields.get("supersedes") or ()
        ]
        self._supersede(pairs)
        is_file = self._db.dialect == "sqlite"  # it counts the rows of entries itself
        named = [int(write.key) for write in writes if is_number(write.key) and not (is_file and _is_entry(write))]
        if named:
            self._db.skip("entry", max(named))

    def changed(self, old: Item, write: NumberedWrite) -> None:
        """Store when the next version of an entry was created and expires, and what it supersedes besides."""
        if _is_entry(write):
            self.added([write])
            return
        self._db.run(
            """update memories set expires_at = cast(:expires_at as bigint),
                 created_at = (select created_at from items where id = :item) where item_id = :item""",
            {"expires_at": write.write.draft.fields.get("expires_at"), "item": old.id},
        )

    def removed(self, item_ids: Sequence[int]) -> None:
        """Remove the rows of entries that go."""
        self._db.run("delete from memories where item_id in each(:ids int)", {"ids": item_ids})

    def _entries(self, column: str, wanted: Sequence[int]) -> list[EntryRow]:
        rows = self._db.all(f"select {_ENTRY} from memories where {column} in each(:wanted int)", {"wanted": wanted})
        return [_entry(row) for row in rows]

    def _supersede(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Store pairs of an older entry and a newer one; those whose older one is not here are left out."""
        pairs = [(older, newer) for older, newer in pairs if abs(older) <= MOST_NUMBER]
        if pairs:
            self._db.run(_SUPERSEDE, {"pairs": pairs})


def _is_entry(write: NumberedWrite) -> bool:
    """Return whether an item of this kind is an entry of a thread."""
    return bool(write.write.draft.fields.get("source")) and write.key.isdecimal()


def _row(entry: NumberedWrite) -> tuple[Any, ...]:
    """Return the values of `_PUT`."""
    fields = entry.write.draft.fields
    return int(entry.key), fields["source"], fields.get("expires_at"), entry.item_id


def _entry(row: tuple[Any, ...]) -> EntryRow:
    *columns, supersedes = row
    number, item_id, thread, source, created, images, expires, superseded_by = columns
    older = sorted(map(int, supersedes.split(","))) if supersedes else []
    return EntryRow(number, item_id, thread, source, created, images, expires, superseded_by, tuple(older))
