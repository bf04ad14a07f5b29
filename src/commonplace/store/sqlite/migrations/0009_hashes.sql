-- 0009_hashes.sql   Only a document is looked for by its hash: what else is stored need not be written there, too.

drop index items_by_hash;
create index items_by_hash on items (content_hash) where kind = 'document';
