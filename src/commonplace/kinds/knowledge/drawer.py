"""What notes, media, chats, characters and prompts have in the store beside their items."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commonplace.model import CHUNK_BITS, JSON, IndexedItem, chunk_id
from commonplace.store.dialect import Tuned, Values
from commonplace.store.facets import facets_of, words_of
from commonplace.store.session import Drawer, reads, reads_together, writes
from commonplace.store.shaping import IN_PARTS, WHOLE_KINDS, json_text


class Cue(NamedTuple):
    """A stretch of a medium's body that is said from one time to another, and by whom."""

    start_ms: int
    end_ms: int
    char_start: int
    char_end: int
    speaker: str | None = None


class Place(NamedTuple):
    """The characters of an item's body that a chunk is, and its anchor."""

    start: int
    end: int
    anchor: Mapping[str, JSON]


class KeptAnswer(NamedTuple):
    """The answer to a call with an idempotency key, and a hash of its arguments."""

    arguments: bytes
    answer: JSON


def _of_chunks(columns: str) -> Tuned:
    """Return a query of these columns of the passages of items, in order, each with its item's id before them."""
    return Tuned(
        sqlite=f"""select value, {columns} from json_each(:list) cross join chunks
                   on chunks.id >= value << {CHUNK_BITS} and chunks.id < (value + 1) << {CHUNK_BITS}
                   order by chunks.id""",
        postgres=f"select item_id, {columns} from chunks where item_id in each(:ids int) order by item_id, ordinal",
    )


_PLACES = _of_chunks("char_start, char_end, anchor")
_SAID = _of_chunks("text, anchor")
_WHOLE_COLUMNS = "id, kind, parent, key, title, language, created_at, updated_at, fields, body"
_WHOLE = Tuned(
    sqlite=f"""select {_WHOLE_COLUMNS}, (select json_group_array(folded) from tags where item_id = items.id)
               from items join bodies on item_id = id
               where id in each(:ids int) and kind in each(:kinds text) order by id""",
    postgres=f"""select {_WHOLE_COLUMNS}, array(select folded from tags where tags.item_id = items.id)
                 from items join bodies on item_id = id
                 where id in each(:ids int) and kind in each(:kinds text) order by id""",
)
_LAST_MODIFIED = Tuned(
    sqlite="""select item.id, coalesce(talk.updated_at, item.updated_at) from items as item
              left join items as talk on item.kind = 'message' and item.fields ->> '$.timestamp' is null
                and talk.kind = 'conversation' and talk.parent = '' and talk.key = item.parent
              where item.id in each(:ids int)""",
    postgres="""select item.id, coalesce(talk.updated_at, item.updated_at) from items as item
                left join items as talk on item.kind = 'message' and item.fields::jsonb ->> 'timestamp' is null
                  and talk.kind = 'conversation' and talk.parent = '' and talk.key_head = item.parent_head
                  and talk.key = item.parent
                where item.id in each(:ids int)""",
)
_MEDIA_TYPES = Tuned(
    sqlite="""select fields ->> '$.media_type' as type, count(*) from items
              where kind = 'media' group by type order by type""",
    postgres="select label, count(*) from items where kind = 'media' group by label order by label nulls first",
)


class Records(Drawer):
    """The cues of media, and what the items of these kinds are listed and read by."""

    @reads
    def cues(self, item_id: int) -> list[Cue]:
        """Return the cues of a medium in their order."""
        row = self._db.row("select cues from cues where item_id = :item", {"item": item_id})
        return [Cue(*cue) for cue in json.loads(row[0])] if row else []

    @writes
    def set_cues(self, item_id: int, cues: Sequence[Cue]) -> None:
        """Replace the cues of a medium."""
        self._db.run("delete from cues where item_id = :item", {"item": item_id})
        if cues:
            values = {"item": item_id, "cues": json_text([list(cue) for cue in cues])}
            self._db.run("insert into cues (item_id, cues) values (:item, :cues)", values)

    @reads
    def places(self, item_ids: Sequence[int]) -> dict[int, list[Place]]:
        """Return the places of these items' chunks, in order, by item id."""
        places: dict[int, list[Place]] = defaultdict(list)
        for item_id, start, end, anchor in self._db.all(_PLACES, _listed(item_ids)):
            places[item_id].append(Place(start, end, json.loads(anchor) if anchor else {}))
        return places

    @reads_together
    def whole(self, item_ids: Sequence[int]) -> list[IndexedItem]:
        """Return those of the items that are searched whole, each as if it were one chunk."""
        rows = self._db.all(_WHOLE, {"ids": item_ids, "kinds": WHOLE_KINDS})
        parts = self._said([row[0] for row in rows if row[1] in IN_PARTS])
        items = []
        for identity, kind, parent, key, title, language, created, updated, fields, body, tags in rows:
            properties = json.loads(fields)
            labels = tuple(json.loads(tags) if isinstance(tags, str) else tags)
            text = "\n".join(parts[identity]) if kind in IN_PARTS else body
            chunks = [(chunk_id(identity, 0), "", text)]
            item = (identity, kind, parent, key, title, language, labels, created, updated, chunks)
            items.append(IndexedItem(*item, words_of(kind, properties, labels), facets_of(kind, properties)))
        return items

    def _said(self, item_ids: Sequence[int]) -> dict[int, list[str]]:
        """Return what records' fields say, without their headings and their names, which are the titles."""
        texts: dict[int, list[str]] = defaultdict(list)
        for item_id, text, anchor in self._db.all(_SAID, _listed(item_ids)) if item_ids else ():
            if not anchor or json.loads(anchor).get("field") != "name":
                texts[item_id].append(text)
        return texts

    @writes
    def set_version(self, item_id: int, version: int) -> None:
        """Set the version of an item, and of its last change."""
        values = {"item": item_id, "version": version}
        self._db.run("update items set version = :version where id = :item", values)
        self._db.run(
            """update changes set version = :version
               where seq = (select max(seq) from changes where item_id = :item)""",
            values,
        )

    @reads
    def last_modified(self, item_ids: Sequence[int]) -> dict[int, int]:
        """Return when these were changed, in microseconds; for a message without a time, when its conversation was."""
        return dict(self._db.all(_LAST_MODIFIED, {"ids": item_ids}))

    @reads
    def media_types(self) -> dict[str, int]:
        """Return the number of media of each type."""
        return dict(self._db.all(_MEDIA_TYPES))

    @reads
    def latest(self, kind: str, limit: int) -> list[int]:
        """Return the items of a kind that were changed last, the last first."""
        query = "select id from items where kind = :kind order by updated_at desc, id limit :limit"
        return [item for (item,) in self._db.all(query, {"kind": kind, "limit": limit})]

    @reads
    def keys(self, kind: str) -> list[tuple[int, str]]:
        """Return the id and key of every item of a kind."""
        rows = self._db.all("select id, key from items where kind = :kind", {"kind": kind})
        return [(item, key) for item, key in rows]


class KeptAnswers(Drawer):
    """A row per call with an idempotency key: what it was answered."""

    @reads
    def find(self, owner: str, tool: str, key: str, since: int) -> KeptAnswer | None:
        """Return the answer that was stored for a call with this key at or after `since`, in microseconds, or None."""
        row = self._db.row(
            """select arguments, answer from kept_answers
               where owner = :owner and tool = :tool and key = :key and answered_at >= :since""",
            {"owner": owner, "tool": tool, "key": key, "since": since},
        )
        return KeptAnswer(row[0], json.loads(row[1])) if row else None

    @writes
    def keep(self, owner: str, tool: str, key: str, kept: KeptAnswer, *, now: int, since: int) -> None:
        """Store an answer, and remove those from before `since`."""
        self._db.run("delete from kept_answers where answered_at < :since", {"since": since})
        values = {"owner": owner, "tool": tool, "key": key, "now": now}
        self._db.run(
            """insert into kept_answers (owner, tool, key, arguments, answer, answered_at)
               values (:owner, :tool, :key, :arguments, :answer, :now) on conflict key(owner, tool, key) do update
               set arguments = excluded.arguments, answer = excluded.answer, answered_at = excluded.answered_at""",
            {**values, "arguments": kept.arguments, "answer": json_text(kept.answer)},
        )


def _listed(item_ids: Sequence[int]) -> Values:
    """Return ids as both databases take them."""
    return {"ids": item_ids, "list": json.dumps(list(item_ids))}
