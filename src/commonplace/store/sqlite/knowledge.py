"""The store on SQLite: what notes, media, chats, characters and prompts have beside their items."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from commonplace.model import CHUNK_BITS, IndexedItem, chunk_id
from commonplace.store.facets import facets_of, words_of
from commonplace.store.filters import fold_value
from commonplace.store.rows import Cue, ImportSource, KeptAnswer, Place
from commonplace.store.shaping import IN_PARTS, WHOLE_KINDS, json_text
from commonplace.store.sqlite.items import SqliteItems, consistent, guarded


class SqliteRecords(SqliteItems):
    """Names that last, numbers, cues, messages in order, where things were imported from, answers to repeated calls."""

    # names

    @guarded
    def uids(self, item_ids: Sequence[int]) -> dict[int, str]:
        query = "select item_id, uid from records where item_id in (select value from json_each(?))"
        return dict(self._database.reading().execute(query, (json.dumps(list(item_ids)),)))

    @guarded
    def item_of_uid(self, kind: str, uid: str) -> int | None:
        query = "select item_id from records where uid = ? and kind = ?"
        row = self._database.reading().execute(query, (uid, kind)).fetchone()
        return int(row[0]) if row else None

    @guarded
    def set_uid(self, item_id: int, uid: str) -> None:
        with self._database.writing() as db:
            db.execute("update records set uid = ? where item_id = ?", (uid, item_id))

    @guarded
    def named(self, kind: str, title: str) -> list[int]:
        query = "select item_id from records where kind = ? and folded = ? order by item_id"
        return [item for (item,) in self._database.reading().execute(query, (kind, fold_value(title)))]

    # numbers

    @guarded
    def next_number(self, kind: str) -> int:
        with self._database.writing() as db:
            db.execute("insert into counters values (?, 1) on conflict (kind) do update set last = last + 1", (kind,))
            return int(next(db.execute("select last from counters where kind = ?", (kind,)))[0])

    @guarded
    def take_number(self, kind: str, number: int) -> None:
        with self._database.writing() as db:
            db.execute(
                "insert into counters values (?, ?) on conflict (kind) do update set last = max(last, excluded.last)",
                (kind, number),
            )

    @guarded
    def set_version(self, item_id: int, version: int) -> None:
        with self._database.writing() as db:
            db.execute("update items set version = ? where id = ?", (version, item_id))
            db.execute(
                "update changes set version = ? where seq = (select max(seq) from changes where item_id = ?)",
                (version, item_id),
            )

    # cues

    @guarded
    def cues(self, item_id: int) -> list[Cue]:
        row = self._database.reading().execute("select cues from cues where item_id = ?", (item_id,)).fetchone()
        return [Cue(*cue) for cue in json.loads(row[0])] if row else []

    @guarded
    def set_cues(self, item_id: int, cues: Sequence[Cue]) -> None:
        with self._database.writing() as db:
            db.execute("delete from cues where item_id = ?", (item_id,))
            if cues:
                db.execute("insert into cues values (?, ?)", (item_id, json_text([list(cue) for cue in cues])))

    @guarded
    def places(self, item_ids: Sequence[int]) -> dict[int, list[Place]]:
        rows = self._database.reading().execute(
            f"""select value, char_start, char_end, anchor from json_each(?) cross join chunks
                on chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS} order by chunks.id""",
            (json.dumps(list(item_ids)),),
        )
        places: dict[int, list[Place]] = defaultdict(list)
        for item_id, start, end, anchor in rows:
            places[item_id].append(Place(start, end, json.loads(anchor) if anchor else {}))
        return places

    @consistent
    def whole(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        db, wanted = self._database.reading(), (json.dumps(list(item_ids)),)
        tags: dict[int, list[str]] = defaultdict(list)
        query = "select item_id, folded from tags where item_id in (select value from json_each(?))"
        for item_id, tag in db.execute(query, wanted):
            tags[item_id].append(tag)
        rows: list[Any] = db.execute(
            """select id, kind, parent, key, title, language, created_at, updated_at, fields, body
               from items join bodies on item_id = id
               where id in (select value from json_each(?)) and kind in (select value from json_each(?)) order by id""",
            (*wanted, json.dumps(WHOLE_KINDS)),
        ).fetchall()
        items = []
        for identity, kind, parent, key, title, language, created, updated, fields, body in rows:
            properties, labels = json.loads(fields), tuple(tags[identity])
            text = self._said(identity) if kind in IN_PARTS else body
            chunks = [(chunk_id(identity, 0), "", text)]
            item = (identity, kind, parent, key, title, language, labels, created, updated, chunks)
            items.append(IndexedItem(*item, words_of(kind, properties, labels), facets_of(kind, properties)))
        return items

    def _said(self, item_id: int) -> str:
        """Return what a record's fields say, without their headings and its name, which is the title."""
        span = (chunk_id(item_id, 0), chunk_id(item_id + 1, 0))
        query = "select text from chunks where id >= ? and id < ? and anchor ->> '$.field' is not 'name' order by id"
        return "\n".join(text for (text,) in self._database.reading().execute(query, span))

    # chats

    @guarded
    def message_ids(self, conversation: str, first: int = 0, limit: int = -1) -> list[int]:
        query = """select id from items where kind = 'message' and parent = ?
                   order by fields ->> '$.index', id limit ? offset ?"""
        return [item for (item,) in self._database.reading().execute(query, (conversation, limit, first))]

    @guarded
    def openings(self, conversations: Sequence[str]) -> dict[str, str]:
        query = """select items.parent, body from json_each(?) cross join items indexed by messages_in_order
                     on items.kind = 'message' and items.parent = value and fields ->> '$.index' = 0
                   join bodies on item_id = items.id"""
        return dict(self._database.reading().execute(query, (json.dumps(list(conversations)),)))

    @guarded
    def conversations_of(self, character: str) -> list[tuple[int, str]]:
        query = "select id, key from items where kind = 'conversation' and fields ->> '$.character' = ? order by id"
        return list(self._database.reading().execute(query, (character,)))

    @guarded
    def last_modified(self, item_ids: Sequence[int]) -> dict[int, int]:
        query = """select item.id, coalesce(talk.updated_at, item.updated_at) from items as item
                   left join items as talk on item.kind = 'message' and item.fields ->> '$.timestamp' is null
                     and talk.kind = 'conversation' and talk.parent = '' and talk.key = item.parent
                   where item.id in (select value from json_each(?))"""
        return dict(self._database.reading().execute(query, (json.dumps(list(item_ids)),)))

    # listings

    @guarded
    def media_types(self) -> dict[str, int]:
        query = """select fields ->> '$.media_type' as type, count(*) from items
                   where kind = 'media' group by type order by type"""
        return dict(self._database.reading().execute(query))

    @guarded
    def latest(self, kind: str, limit: int) -> list[int]:
        query = "select id from items where kind = ? order by updated_at desc, id limit ?"
        return [item for (item,) in self._database.reading().execute(query, (kind, limit))]

    @consistent
    def keys(self, kind: str) -> list[tuple[int, str]]:
        return list(self._database.reading().execute("select id, key from items where kind = ?", (kind,)))

    @guarded
    def titles(self, kind: str, after: str, limit: int) -> list[tuple[int, str]]:
        query = """select records.item_id, title from records join items on items.id = records.item_id
                   where records.kind = ? and folded > ? order by folded limit ?"""
        return list(self._database.reading().execute(query, (kind, after, limit)))

    # imports

    @guarded
    def import_source(self, kind: str, path: str, position: str) -> ImportSource | None:
        query = """select kind, path, position, hash, item_id, version from import_sources
                   where kind = ? and path = ? and position = ?"""
        row = self._database.reading().execute(query, (kind, path, position)).fetchone()
        return ImportSource(*row) if row else None

    @guarded
    def import_sources_of(self, item_id: int) -> list[ImportSource]:
        query = "select kind, path, position, hash, item_id, version from import_sources where item_id = ?"
        return [ImportSource(*row) for row in self._database.reading().execute(query, (item_id,))]

    @guarded
    def import_sources_at(self, kind: str, path: str) -> list[ImportSource]:
        query = """select kind, path, position, hash, item_id, version from import_sources
                   where kind = ? and path = ? order by position"""
        return [ImportSource(*row) for row in self._database.reading().execute(query, (kind, path))]

    @guarded
    def set_import_source(self, source: ImportSource) -> None:
        with self._database.writing() as db:
            db.execute(
                """insert into import_sources values (?, ?, ?, ?, ?, ?) on conflict do update
                   set hash = excluded.hash, item_id = excluded.item_id, version = excluded.version""",
                tuple(source),
            )

    # answers

    @guarded
    def kept_answer(self, owner: str, tool: str, key: str, since: int) -> KeptAnswer | None:
        query = """select arguments, answer from kept_answers
                   where owner = ? and tool = ? and key = ? and answered_at >= ?"""
        row = self._database.reading().execute(query, (owner, tool, key, since)).fetchone()
        return KeptAnswer(row[0], json.loads(row[1])) if row else None

    @guarded
    def keep_answer(self, owner: str, tool: str, key: str, kept: KeptAnswer, *, now: int, since: int) -> None:
        with self._database.writing() as db:
            db.execute("delete from kept_answers where answered_at < ?", (since,))
            db.execute(
                "insert or replace into kept_answers values (?, ?, ?, ?, ?, ?)",
                (owner, tool, key, kept.arguments, json_text(kept.answer), now),
            )
