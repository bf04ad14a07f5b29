-- 0004_stems.sql   A document is found by the end of its path whatever its case, with its ending or without.

-- Folded where they are written: what a database takes for the same letter depends on how it was set up.
alter table document_names
  add column ending text collate "C" not null default '',  -- such as `dm.`, backwards as the rest; '' where there is none
  add column stem text collate "C" not null default '',  -- what is left without it
  add column stem_head text collate "C" not null generated always as (left(stem, 100)) stored;
create index document_names_by_stem on document_names (space, stem_head);
