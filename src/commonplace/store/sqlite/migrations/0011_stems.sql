-- 0011_stems.sql   A document is found by the end of its path whatever its case, with its ending or without.

alter table document_names add column ending text not null default '';  -- such as `dm.`, folded; '' where there is none
alter table document_names add column stem text not null default '';  -- what is left without it, folded, backwards too
create index document_names_by_stem on document_names (stem);

update document_names set ending = folded_ending(backwards), stem = folded_stem(backwards);

drop trigger document_is_named;
drop trigger document_is_renamed;
create trigger document_is_named after insert on items when new.kind = 'document' begin
  insert into document_names (item_id, docid, backwards, ending, stem)
  select new.id, name_hash(new.parent, new.key), name, folded_ending(name), folded_stem(name)
  from (select name_backwards(new.parent, new.key) as name);
end;
create trigger document_is_renamed after update of parent, key on items when new.kind = 'document' begin
  update document_names set docid = name_hash(new.parent, new.key), backwards = name, ending = folded_ending(name),
    stem = folded_stem(name)
  from (select name_backwards(new.parent, new.key) as name)
  where item_id = new.id;
end;
