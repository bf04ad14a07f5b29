"""Statements about tables that PostgreSQL reads in words of its own. Keys and pointers are bytes there."""

from __future__ import annotations

from commonplace.kinds.tables.rows import FRAGMENT_COLUMNS
from commonplace.model import CHUNK_BITS
from commonplace.store.shaping import PASSAGE_COLUMNS

KEY_HEAD = 100
"""How many bytes of a key are indexed."""

CHAIN = f"""with recursive chain as (
      select 0 as depth, {FRAGMENT_COLUMNS} from fragments where parent = :root
      union all
      select chain.depth + 1, child.* from chain, lateral (
        (select {FRAGMENT_COLUMNS} from fragments where chain.shape = 'object' and parent = chain.id
           and key_head = (:heads::bytea[])[chain.depth + 1] and key = (:keys::bytea[])[chain.depth + 1] limit 1)
        union all
        (select {FRAGMENT_COLUMNS} from fragments where chain.shape = 'list' and parent = chain.id
           and position <= (:indices::bigint[])[chain.depth + 1] order by position desc limit 1)
      ) as child where chain.text is null and chain.depth < :depth
    ) select {FRAGMENT_COLUMNS} from chain order by depth"""
"""The fragments on the way to a place, in one look: of a list the one that could hold the element."""
MEMBERS = f"""select {FRAGMENT_COLUMNS} from fragments
    where parent = :parent and key_head in each(:heads bytes) and key in each(:keys bytes)"""
NODES_AT = """select string_agg(item_id::text, ',' order by item_id),
      string_agg(chunk_count::text, ',' order by item_id)
    from node_places join items on items.id = item_id where place = :place"""
NODES_AMONG = f"{NODES_AT} and item_id in each(:among int)"
PASSAGES = f"""select item_id << {CHUNK_BITS} | ordinal, {PASSAGE_COLUMNS}, fields, content_hash, chunk_count
    from chunks join items on items.id = item_id
    where (item_id, ordinal) in (select * from unnest(:items::bigint[], :ordinals::integer[]))
    and kind = 'table' and parent = :table"""
EMBEDDED = """select count(*) from node_places join chunks using (space, item_id)
    where place = :place and exists (select 1 from embeddings where model = :model and key = vector_key)"""
HIDDEN = """select string_agg(items.id::text, ',' order by items.id) from tables
    join items on items.kind = 'table' and items.parent_head = tables.id and items.parent = tables.id
    where (not searchable or building is not null or leaving is not null)
    and (not searchable or (items.fields::jsonb ->> 'generation')::bigint <> generation)"""
POINTER = "items.fields::jsonb ->> 'pointer'"
FREE_JOB = """id = (select id from table_jobs where id = :id and holder = :seen and lease_until = :seen_until
    and attempts = :attempts for update skip locked)"""
