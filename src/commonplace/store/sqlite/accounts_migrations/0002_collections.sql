-- 0002_collections.sql   A key may be limited to collections of documents.

alter table keys add column collections text not null default '[]';  -- a JSON list of names; empty: not limited
