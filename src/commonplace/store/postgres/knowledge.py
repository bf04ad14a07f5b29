"""The store on PostgreSQL: what notes, media, chats, characters and prompts have beside their items."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from commonplace.model import IndexedItem, chunk_id
from commonplace.store.facets import facets_of, words_of
from commonplace.store.filters import fold_value
from commonplace.store.postgres.filters import HEAD
from commonplace.store.postgres.items import PostgresItems, reads, writes
from commonplace.store.rows import Cue, ImportSource, KeptAnswer, Place
from commonplace.store.shaping import IN_PARTS, WHOLE_KINDS, json_text


class PostgresRecords(PostgresItems):
    """Names that last, numbers, cues, messages in order, where things were imported from, answers to repeated calls."""

    # names

    @reads
    def uids(self, item_ids: Sequence[int]) -> dict[int, str]:
        return dict(self._all("select item_id, uid from records where item_id = any(%s::bigint[])", (list(item_ids),)))

    @reads
    def item_of_uid(self, kind: str, uid: str) -> int | None:
        item_id = self._one("select item_id from records where uid = %s and kind = %s", (uid, kind))
        return None if item_id is None else int(item_id)

    @writes
    def set_uid(self, item_id: int, uid: str) -> None:
        self._run("update records set uid = %s where item_id = %s", (uid, item_id))

    @reads
    def named(self, kind: str, title: str) -> list[int]:
        folded = fold_value(title)
        query = "select item_id from records where kind = %s and folded_head = %s and folded = %s order by item_id"
        return [item for (item,) in self._all(query, (kind, folded[:HEAD], folded))]

    # numbers

    @writes
    def next_number(self, kind: str) -> int:
        return int(
            self._one(
                """insert into counters (kind, last) values (%s, 1)
                   on conflict (space, kind) do update set last = counters.last + 1 returning last""",
                (kind,),
            )
        )

    @writes
    def take_number(self, kind: str, number: int) -> None:
        self._run(
            """insert into counters (kind, last) values (%s, %s)
               on conflict (space, kind) do update set last = greatest(counters.last, excluded.last)""",
            (kind, number),
        )

    @writes
    def set_version(self, item_id: int, version: int) -> None:
        self._run("update items set version = %s where id = %s", (version, item_id))
        self._run(
            "update changes set version = %s where seq = (select max(seq) from changes where item_id = %s)",
            (version, item_id),
        )

    # cues

    @reads
    def cues(self, item_id: int) -> list[Cue]:
        found = self._one("select cues from cues where item_id = %s", (item_id,))
        return [Cue(*cue) for cue in json.loads(found)] if found else []

    @writes
    def set_cues(self, item_id: int, cues: Sequence[Cue]) -> None:
        self._run("delete from cues where item_id = %s", (item_id,))
        if cues:
            kept = json_text([list(cue) for cue in cues])
            self._run("insert into cues (item_id, cues) values (%s, %s)", (item_id, kept))

    @reads
    def places(self, item_ids: Sequence[int]) -> dict[int, list[Place]]:
        rows = self._all(
            """select item_id, char_start, char_end, anchor from chunks
               where item_id = any(%s::bigint[]) order by item_id, ordinal""",
            (list(item_ids),),
        )
        places: dict[int, list[Place]] = defaultdict(list)
        for item_id, start, end, anchor in rows:
            places[item_id].append(Place(start, end, json.loads(anchor) if anchor else {}))
        return places

    @reads
    def whole(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        rows = self._all(
            """select id, kind, parent, key, title, language, created_at, updated_at, fields, body,
                 array(select folded from tags where tags.item_id = items.id)
               from items join bodies on item_id = id
               where id = any(%s::bigint[]) and kind = any(%s::text[]) order by id""",
            (list(item_ids), list(WHOLE_KINDS)),
        )
        said = self._said([row[0] for row in rows if row[1] in IN_PARTS])
        items = []
        for identity, kind, parent, key, title, language, created, updated, fields, body, tags in rows:
            properties, labels = json.loads(fields), tuple(tags)
            text = "\n".join(said[identity]) if kind in IN_PARTS else body
            chunks = [(chunk_id(identity, 0), "", text)]
            item = (identity, kind, parent, key, title, language, labels, created, updated, chunks)
            items.append(IndexedItem(*item, words_of(kind, properties, labels), facets_of(kind, properties)))
        return items

    def _said(self, item_ids: Sequence[int]) -> dict[int, list[str]]:
        """Return what records' fields say, without their headings and their names, which are the titles."""
        query = """select item_id, text, anchor from chunks
                   where item_id = any(%s::bigint[]) order by item_id, ordinal"""
        said: dict[int, list[str]] = defaultdict(list)
        for item_id, text, anchor in self._all(query, (list(item_ids),)):
            if not anchor or json.loads(anchor).get("field") != "name":
                said[item_id].append(text)
        return said

    # chats

    @reads
    def message_ids(self, conversation: str, first: int = 0, limit: int = -1) -> list[int]:
        rows = self._all(
            """select id from items where kind = 'message' and parent_head = %s and parent = %s
               order by seat nulls first, id limit %s offset %s""",
            (conversation[:HEAD], conversation, limit if limit >= 0 else None, first),
        )
        return [item for (item,) in rows]

    @reads
    def openings(self, conversations: Sequence[str]) -> dict[str, str]:
        rows = self._all(
            """select parent, body from items join bodies on item_id = items.id
               where kind = 'message' and parent_head = any(%s::text[]) and parent = any(%s::text[]) and seat = 0""",
            ([parent[:HEAD] for parent in conversations], list(conversations)),
        )
        return dict(rows)

    @reads
    def conversations_of(self, character: str) -> list[tuple[int, str]]:
        query = """select id, key from items
                   where kind = 'conversation' and label_head = %s and label = %s order by id"""
        return [(item_id, key) for item_id, key in self._all(query, (character[:HEAD], character))]

    @reads
    def last_modified(self, item_ids: Sequence[int]) -> dict[int, int]:
        query = """select item.id, coalesce(talk.updated_at, item.updated_at) from items as item
                   left join items as talk on item.kind = 'message' and item.fields::jsonb ->> 'timestamp' is null
                     and talk.kind = 'conversation' and talk.parent = '' and talk.key_head = item.parent_head
                     and talk.key = item.parent
                   where item.id = any(%s::bigint[])"""
        return dict(self._all(query, (list(item_ids),)))

    # listings

    @reads
    def media_types(self) -> dict[str, int]:
        query = """select label, count(*) from items where kind = 'media'
                   group by label order by label nulls first"""
        return dict(self._all(query))

    @reads
    def latest(self, kind: str, limit: int) -> list[int]:
        query = "select id from items where kind = %s order by updated_at desc, id limit %s"
        return [item for (item,) in self._all(query, (kind, limit))]

    @reads
    def keys(self, kind: str) -> list[tuple[int, str]]:
        return [(item_id, key) for item_id, key in self._all("select id, key from items where kind = %s", (kind,))]

    @reads
    def titles(self, kind: str, after: str, limit: int) -> list[tuple[int, str]]:
        query = """select item_id, title from records join items on items.id = item_id
                   where records.kind = %s and folded_head >= %s and records.folded > %s
                   order by folded_head, records.folded limit %s"""
        return [(item_id, title) for item_id, title in self._all(query, (kind, after[:HEAD], after, limit))]

    # imports

    @reads
    def import_source(self, kind: str, path: str, position: str) -> ImportSource | None:
        rows = self._all(
            """select kind, path, position, hash, item_id, version from import_sources
               where kind = %s and path_head = %s and path = %s and position = %s""",
            (kind, path[:HEAD], path, position),
        )
        return ImportSource(*rows[0]) if rows else None

    @reads
    def import_sources_of(self, item_id: int) -> list[ImportSource]:
        query = "select kind, path, position, hash, item_id, version from import_sources where item_id = %s"
        return [ImportSource(*row) for row in self._all(query, (item_id,))]

    @reads
    def import_sources_at(self, kind: str, path: str) -> list[ImportSource]:
        query = """select kind, path, position, hash, item_id, version from import_sources
                   where kind = %s and path_head = %s and path = %s order by position"""
        return [ImportSource(*row) for row in self._all(query, (kind, path[:HEAD], path))]

    @writes
    def set_import_source(self, source: ImportSource) -> None:
        self._run(
            "delete from import_sources where kind = %s and path_head = %s and path = %s and position = %s",
            (source.kind, source.path[:HEAD], source.path, source.position),
        )
        self._run(
            """insert into import_sources (kind, path, position, hash, item_id, version)
               values (%s, %s, %s, %s, %s, %s)""",
            tuple(source),
        )

    # answers

    @reads
    def kept_answer(self, owner: str, tool: str, key: str, since: int) -> KeptAnswer | None:
        rows = self._all(
            """select arguments, answer from kept_answers
               where owner = %s and tool = %s and key = %s and answered_at >= %s""",
            (owner, tool, key, since),
        )
        return KeptAnswer(rows[0][0], json.loads(rows[0][1])) if rows else None

    @writes
    def keep_answer(self, owner: str, tool: str, key: str, kept: KeptAnswer, *, now: int, since: int) -> None:
        self._run("delete from kept_answers where answered_at < %s", (since,))
        self._run(
            """insert into kept_answers (owner, tool, key, arguments, answer, answered_at)
               values (%s, %s, %s, %s, %s, %s) on conflict (space, owner, tool, key) do update
               set arguments = excluded.arguments, answer = excluded.answer, answered_at = excluded.answered_at""",
            (owner, tool, key, kept.arguments, json_text(kept.answer), now),
        )
