"""Statements about tables that SQLite reads in words of its own."""

from __future__ import annotations

from commonplace.kinds.tables.rows import FRAGMENT_COLUMNS
from commonplace.store.shaping import PASSAGE_COLUMNS

MEMBER = f"select {FRAGMENT_COLUMNS} from fragments where parent = :parent and key = :key"
NODES_AT = """select group_concat(item_id), group_concat(chunk_count) from (
    select item_id, chunk_count from node_places join items on items.id = item_id where place = :place
    order by item_id)"""
# Crossed, because SQLite would rather walk all of the place than look up the few it does not know of.
NODES_AMONG = """select group_concat(item_id), group_concat(chunk_count) from (
    select item_id, chunk_count from json_each(:few)
    cross join node_places on place = :place and item_id = value cross join items on items.id = item_id
    order by item_id)"""
PASSAGES = f"""select chunks.id, {PASSAGE_COLUMNS}, fields, content_hash, chunk_count
    from json_each(:chunks) cross join chunks on chunks.id = value cross join items on items.id = chunks.id >> 20
    where items.kind = 'table' and items.parent = :table"""
EMBEDDED = """select count(*) from node_places cross join chunks
    on chunks.id >= item_id << 20 and chunks.id < (item_id + 1) << 20
    where place = :place and exists (select 1 from embeddings where model = :model and key = vector_key)"""
HIDDEN = """select group_concat(id) from (
    select items.id from tables join items on kind = 'table' and parent = tables.id
    where not searchable or (coalesce(building, leaving) is not null and fields ->> '$.generation' <> generation)
    order by items.id)"""
POINTER = "fields ->> '$.pointer'"
FREE_JOB = "id = :id and holder = :seen and lease_until = :seen_until and attempts = :attempts"
