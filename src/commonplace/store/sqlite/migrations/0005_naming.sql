-- 0005_naming.sql   A document is found by a short id or by the end of its path, without looking at all the others.

create table document_names (
  item_id integer primary key,
  docid text not null,  -- SHA-256 of collection/path, hexadecimal
  backwards text not null  -- collection/path in NFC, last character first: the end of a path is a beginning here
) strict;
create index document_names_by_docid on document_names (docid);
create index document_names_by_end on document_names (backwards);
create index items_by_hash on items (content_hash);

insert into document_names select id, name_hash(parent, key), name_backwards(parent, key) from items where kind = 'document';

create trigger document_is_named after insert on items when new.kind = 'document' begin
  insert into document_names values (new.id, name_hash(new.parent, new.key), name_backwards(new.parent, new.key));
end;
create trigger document_is_renamed after update of parent, key on items when new.kind = 'document' begin
  update document_names set docid = name_hash(new.parent, new.key), backwards = name_backwards(new.parent, new.key)
  where item_id = new.id;
end;
create trigger document_name_goes after delete on items when old.kind = 'document' begin
  delete from document_names where item_id = old.id;
end;
