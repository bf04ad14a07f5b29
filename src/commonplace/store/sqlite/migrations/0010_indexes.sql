-- 0010_indexes.sql   No index holds what nobody looks up in it: a batch of entries changes a third fewer pages.

drop index items_by_parent;
create index items_by_parent on items (parent, kind) where kind <> 'memory';  -- threads are found by `memories_by_thread`

drop index chunks_by_vector;  -- made again by whoever first has vectors; see `sqlite_rows.find_by_vector`
