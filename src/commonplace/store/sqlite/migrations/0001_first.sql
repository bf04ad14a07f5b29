-- The first schema: one table of items for all kinds, one of chunks for all items, one log for every mutation.

create table items (
  id integer primary key autoincrement,  -- never reused: a follower may still hold a deleted one
  kind text not null,
  parent text not null,
  key text not null,
  title text not null,
  format text not null,
  language text not null,
  fields text not null,
  metadata text not null,
  created_at integer not null,  -- microseconds since 1970, UTC
  updated_at integer not null,
  version integer not null,
  content_hash text not null,  -- SHA-256 of the body, hexadecimal
  chunk_count integer not null,
  unique (kind, parent, key)
) strict;
create index items_by_parent on items (parent, kind);
create index items_by_key on items (key);
create index items_by_created on items (created_at);
create index items_by_updated on items (updated_at);

-- Apart from items, so that a filter over thousands of items reads no text.
create table bodies (
  item_id integer primary key references items (id),
  body text not null
) strict;

create table tags (
  folded text not null,
  item_id integer not null references items (id),
  position integer not null,
  tag text not null,
  primary key (folded, item_id)
) strict, without rowid;
create index tags_of_item on tags (item_id);

create table chunks (
  id integer primary key,  -- item id and ordinal in one, see model.chunk_id
  text text not null,
  char_start integer not null,
  char_end integer not null,
  line_start integer not null,
  line_end integer not null,
  headings text not null,
  anchor text,
  vector_key blob not null
) strict;
create index chunks_by_vector on chunks (vector_key);

create table changes (
  seq integer primary key,
  op text not null check (op in ('put', 'delete', 'embed')),
  item_id integer not null,
  version integer not null
) strict;

create table models (
  id integer primary key,
  fingerprint text not null unique,
  name text not null,
  dims integer not null,
  position integer not null  -- every chunk written up to this change has a vector of this model
) strict;

-- Keyed by what was embedded, not by where it stands: a moved or repeated passage is embedded once.
create table embeddings (
  model integer not null references models (id),
  key blob not null,
  vector blob not null,  -- float16, unit length
  unique (model, key)
) strict;

create table attachments (
  hash blob primary key,  -- SHA-256 of data
  data blob not null
) strict;

create table item_attachments (
  item_id integer not null references items (id),
  position integer not null,
  hash blob not null references attachments (hash),
  media_type text not null,  -- here, because the same bytes may go by two
  fields text not null,
  primary key (item_id, position)
) strict, without rowid;
create index item_attachments_by_hash on item_attachments (hash);

create table jobs (
  id integer primary key autoincrement,
  kind text not null,
  payload text not null,
  attempts integer not null default 0,
  run_after integer not null,
  claimed_until integer not null default 0,
  error text
) strict;
create index jobs_by_time on jobs (kind, run_after);

create table settings (
  name text primary key,
  value text not null
) strict, without rowid;
