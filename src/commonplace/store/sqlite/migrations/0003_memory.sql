-- 0003_memory.sql   Memory entries are numbered by the database, counted by thread, and found by chosen metadata fields.

create index items_by_kind on items (kind);  -- walks a kind in the order of its rows, which are read much faster so

create table memories (
  id integer primary key autoincrement,  -- what callers know an entry by, its item's key; never reused
  item_id integer not null unique references items (id),
  thread text not null,
  source text not null,
  created_at integer not null,
  images integer not null default 0,
  expires_at integer
) strict;
create index memories_by_thread on memories (thread, created_at, id);
create index memories_by_time on memories (created_at, id);
create index memories_expiring on memories (expires_at) where expires_at is not null;

-- Counted as entries come and go: listing threads reads one row for each, however many entries there are.
create table memory_threads (
  thread text primary key,
  entries integer not null,
  from_user integer not null,
  multimodal integer not null
) strict, without rowid;

create table supersessions (
  older integer not null references memories (id),
  newer integer not null references memories (id),
  primary key (older, newer)
) strict, without rowid;
create index supersessions_by_newer on supersessions (newer);

create table memory_history (
  item_id integer not null references items (id),
  version integer not null,
  updated_at integer not null,
  body text not null,
  metadata text not null,
  tags text not null,
  images text not null,
  primary key (item_id, version)
) strict, without rowid;

create trigger memory_stored after insert on memories begin
  insert into memory_threads values (new.thread, 1, new.source = 'user', new.images > 0)
  on conflict (thread) do update set entries = entries + 1, from_user = from_user + excluded.from_user,
    multimodal = multimodal + excluded.multimodal;
end;

create trigger memory_deleted after delete on memories begin
  update memory_threads set entries = entries - 1, from_user = from_user - (old.source = 'user'),
    multimodal = multimodal - (old.images > 0) where thread = old.thread;
  delete from memory_threads where thread = old.thread and entries = 0;
  delete from memory_history where item_id = old.item_id;
  delete from supersessions where older = old.id;
  delete from supersessions where newer = old.id;
end;

create trigger memory_illustrated after update of images on memories when (old.images > 0) <> (new.images > 0) begin
  update memory_threads set multimodal = multimodal + (new.images > 0) - (old.images > 0) where thread = new.thread;
end;

create trigger memory_attached after insert on item_attachments begin
  update memories set images = images + 1 where item_id = new.item_id;
end;

create trigger memory_detached after delete on item_attachments begin
  update memories set images = images - 1 where item_id = old.item_id;
end;

-- The metadata fields whose values are kept here too, elements of lists included, each value once.
create table metadata_fields (
  id integer primary key,
  path text not null unique  -- names as a JSON list
) strict;

create table metadata_values (
  id integer primary key,
  field integer not null references metadata_fields (id),
  shape text not null,  -- what kind of value; with a bracket before it where it is an element of a list
  value any not null,  -- strings folded as filters fold them
  unique (field, shape, value)
) strict;

create table metadata_holders (
  value integer not null references metadata_values (id),
  item_id integer not null references items (id),
  primary key (value, item_id)
) strict, without rowid;
create index metadata_of_item on metadata_holders (item_id);
