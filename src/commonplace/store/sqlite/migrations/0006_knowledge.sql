-- 0006_knowledge.sql   Notes, media, chats, characters and prompts: names that last, numbers never given twice, where they came from.

create table records (
  item_id integer primary key,
  kind text not null,
  uid text not null unique,  -- a UUID that export and import know the item by, in any home
  folded text not null  -- its title, as names are compared
) strict;
create index records_by_name on records (kind, folded);

insert into records
  select id, kind, lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
    || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), fold(title)
  from items where kind in ('note', 'media', 'conversation', 'character', 'prompt');

create trigger record_is_named after insert on items
when new.kind in ('note', 'media', 'conversation', 'character', 'prompt') begin
  insert into records values (new.id, new.kind,
    lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
      || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), fold(new.title));
end;
create trigger record_is_renamed after update of title on items when new.title <> old.title begin
  update records set folded = fold(new.title) where item_id = new.id;
end;
create trigger record_goes after delete on items begin
  delete from records where item_id = old.id;
  delete from cues where item_id = old.id;
  delete from import_sources where item_id = old.id;
end;

-- The largest number ever given out, so that none is given twice.
create table counters (
  kind text primary key,
  last integer not null
) strict, without rowid;

-- When which part of a medium is said. Apart from its fields: a search shows many items and no cues.
create table cues (
  item_id integer primary key,
  cues text not null  -- a JSON array of [start_ms, end_ms, char_start, char_end, speaker or null]
) strict;

create table import_sources (
  kind text not null,
  path text not null,
  position text not null,  -- which piece of the file
  hash blob not null,  -- of what was imported
  item_id integer not null,
  version integer not null,  -- of the item, once it was imported
  primary key (kind, path, position)
) strict, without rowid;
create index import_sources_by_item on import_sources (item_id);

create table kept_answers (
  owner text not null,
  tool text not null,
  key text not null,
  arguments blob not null,  -- a hash of them
  answer text not null,
  answered_at integer not null,  -- microseconds since 1970
  primary key (owner, tool, key)
) strict, without rowid;
create index kept_answers_by_time on kept_answers (answered_at);

create index items_by_character on items (fields ->> '$.character') where kind = 'conversation';
create index messages_in_order on items (parent, fields ->> '$.index') where kind = 'message';
create index media_by_type on items (fields ->> '$.media_type') where kind = 'media';
