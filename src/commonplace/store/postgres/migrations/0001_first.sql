-- The first schema: the tables of the SQLite store, for any number of spaces at once.
--
-- Each row names its space and is seen in no other: that is what the policies at the end are for, and why no query says
-- so again. Text is compared by its code points, like everywhere in Commonplace. An index entry holds 2,700 bytes at most
-- and names have no such limit, so what is indexed of a text without one is its beginning (`…_head`).

create function isolate(name text) returns void language plpgsql as $$
begin
  execute format('alter table %I enable row level security', name);
  execute format('create policy own_space on %I using (space = current_setting(''commonplace.space'', true))
                  with check (space = current_setting(''commonplace.space'', true))', name);
end $$;

-- The numbers given out last. Whoever writes locks the row of their space first: writes of a space have one order.
create table spaces (
  space text collate "C" primary key default current_setting('commonplace.space') check (space <> ''),
  change bigint not null default 0,
  item bigint not null default 0,
  entry bigint not null default 0
);

create table items (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,  -- never reused: a follower may still hold a deleted one
  kind text collate "C" not null,
  parent text collate "C" not null,
  key text collate "C" not null,
  title text collate "C" not null,
  format text collate "C" not null,
  language text collate "C" not null,
  fields text collate "C" not null,
  metadata text collate "C" not null,  -- as it was written: jsonb keeps neither 1.0 nor the order of names
  created_at bigint not null,  -- microseconds since 1970, UTC
  updated_at bigint not null,
  version bigint not null,
  content_hash text collate "C" not null,  -- SHA-256 of the body, hexadecimal
  chunk_count integer not null,
  address bytea not null,  -- a hash of kind, parent and key
  exact jsonb not null,  -- metadata as filters compare it: numbers in full, strings in NFC
  folded jsonb not null,  -- the same with case folded
  seat bigint,  -- a message's place in its conversation
  label text collate "C",  -- a conversation's character, a medium's type
  parent_head text collate "C" not null generated always as (left(parent, 100)) stored,
  key_head text collate "C" not null generated always as (left(key, 100)) stored,
  label_head text collate "C" generated always as (left(label, 100)) stored,
  primary key (space, id),
  unique (space, address)
);
create index items_by_parent on items (space, parent_head, kind);
create index items_by_key on items (space, key_head);
create index items_by_created on items (space, created_at, id);
create index items_by_updated on items (space, updated_at, id);
create index items_by_kind on items (space, kind, id);
create index items_by_hash on items (space, content_hash);
create index items_by_label on items (space, kind, label_head) where label is not null;
create index messages_in_order on items (space, parent_head, seat, id) where kind = 'message';

create table bodies (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  body text collate "C" not null,
  primary key (space, item_id)
);

create table tags (
  space text collate "C" not null default current_setting('commonplace.space'),
  folded text collate "C" not null,
  item_id bigint not null,
  position integer not null,
  tag text collate "C" not null,
  folded_head text collate "C" not null generated always as (left(folded, 100)) stored,
  primary key (space, item_id, position)
);
create index tags_by_name on tags (space, folded_head, item_id);

create table chunks (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  ordinal integer not null,
  text text collate "C" not null,
  char_start integer not null,
  char_end integer not null,
  line_start integer not null,
  line_end integer not null,
  headings text collate "C" not null,
  anchor text collate "C",
  vector_key bytea not null,
  primary key (space, item_id, ordinal)
);
create index chunks_by_vector on chunks (space, vector_key);

create table changes (
  space text collate "C" not null default current_setting('commonplace.space'),
  seq bigint not null,
  op text collate "C" not null check (op in ('put', 'delete', 'embed')),
  item_id bigint not null,
  version bigint not null,
  primary key (space, seq)
);

create table models (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  fingerprint text collate "C" not null,
  name text collate "C" not null,
  dims integer not null,
  position bigint not null,  -- every chunk written up to this change has a vector of this model
  primary key (space, id),
  unique (space, fingerprint)
);

-- Keyed by what was embedded, not by where it stands: a moved or repeated passage is embedded once.
create table embeddings (
  space text collate "C" not null default current_setting('commonplace.space'),
  model bigint not null,
  key bytea not null,
  vector bytea not null,  -- float16, unit length
  primary key (space, model, key)
);
create index embeddings_by_key on embeddings (space, key);

create table attachments (
  space text collate "C" not null default current_setting('commonplace.space'),
  hash bytea not null,  -- SHA-256 of data
  data bytea not null,
  primary key (space, hash)
);

create table item_attachments (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  position integer not null,
  hash bytea not null,
  media_type text collate "C" not null,  -- here, because the same bytes may go by two
  fields text collate "C" not null,
  primary key (space, item_id, position)
);
create index item_attachments_by_hash on item_attachments (space, hash);

create table jobs (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint generated always as identity,
  kind text collate "C" not null,
  payload text collate "C" not null,
  attempts integer not null default 0,
  run_after bigint not null,
  claimed_until bigint not null default 0,
  error text collate "C",
  primary key (space, id)
);
create index jobs_by_time on jobs (space, kind, run_after);

create table settings (
  space text collate "C" not null default current_setting('commonplace.space'),
  name text collate "C" not null,
  value text collate "C" not null,
  primary key (space, name)
);

-- sessions

create table sessions (
  space text collate "C" not null default current_setting('commonplace.space'),
  id text collate "C" not null,
  client text collate "C" not null,
  defaults text collate "C" not null,
  queries text collate "C" not null,  -- a JSON array, newest first
  created_at bigint not null,
  used_at bigint not null,
  primary key (space, id)
);
create index sessions_by_use on sessions (space, used_at);

create table session_uris (
  space text collate "C" not null default current_setting('commonplace.space'),
  session text collate "C" not null,
  uri text collate "C" not null,
  position bigint not null,  -- rises with each return
  primary key (space, session, position)
);

create table session_lists (
  space text collate "C" not null default current_setting('commonplace.space'),
  session text collate "C" not null,
  key text collate "C" not null,
  position bigint not null,  -- rises with each use
  without text collate "C" not null,  -- a JSON array
  replayed boolean not null,
  primary key (space, session, key)
);

-- memory entries

create table memories (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,  -- what callers know an entry by, its item's key; never reused
  item_id bigint not null,
  thread text collate "C" not null,
  source text collate "C" not null,
  created_at bigint not null,
  images integer not null default 0,
  expires_at bigint,
  thread_head text collate "C" not null generated always as (left(thread, 100)) stored,
  primary key (space, id),
  unique (space, item_id)
);
create index memories_by_thread on memories (space, thread_head, created_at, id);
create index memories_by_time on memories (space, created_at, item_id);
create index memories_expiring on memories (space, expires_at) where expires_at is not null;

-- Counted as entries come and go: listing threads reads one row for each, however many entries there are.
create table memory_threads (
  space text collate "C" not null default current_setting('commonplace.space'),
  thread text collate "C" not null,
  entries bigint not null,
  from_user bigint not null,
  multimodal bigint not null,
  thread_head text collate "C" not null generated always as (left(thread, 100)) stored
);
create index memory_threads_by_name on memory_threads (space, thread_head);

create table supersessions (
  space text collate "C" not null default current_setting('commonplace.space'),
  older bigint not null,
  newer bigint not null,
  primary key (space, older, newer)
);
create index supersessions_by_newer on supersessions (space, newer);

create table memory_history (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  version bigint not null,
  updated_at bigint not null,
  body text collate "C" not null,
  metadata text collate "C" not null,
  tags text collate "C" not null,
  images text collate "C" not null,
  primary key (space, item_id, version)
);

create function memory_stored() returns trigger language plpgsql set search_path = commonplace, pg_temp as $$
begin
  update memory_threads set entries = entries + 1, from_user = from_user + (new.source = 'user')::int,
    multimodal = multimodal + (new.images > 0)::int
  where thread_head = new.thread_head and thread = new.thread;
  if not found then
    insert into memory_threads (thread, entries, from_user, multimodal)
    values (new.thread, 1, (new.source = 'user')::int, (new.images > 0)::int);
  end if;
  return null;
end $$;

create function memory_deleted() returns trigger language plpgsql set search_path = commonplace, pg_temp as $$
begin
  update memory_threads set entries = entries - 1, from_user = from_user - (old.source = 'user')::int,
    multimodal = multimodal - (old.images > 0)::int
  where thread_head = old.thread_head and thread = old.thread;
  delete from memory_threads where thread_head = old.thread_head and thread = old.thread and entries = 0;
  delete from memory_history where item_id = old.item_id;
  delete from supersessions where older = old.id;
  delete from supersessions where newer = old.id;
  return null;
end $$;

create function memory_illustrated() returns trigger language plpgsql set search_path = commonplace, pg_temp as $$
begin
  update memory_threads set multimodal = multimodal + (new.images > 0)::int - (old.images > 0)::int
  where thread_head = new.thread_head and thread = new.thread;
  return null;
end $$;

create function memory_attached() returns trigger language plpgsql set search_path = commonplace, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    update memories set images = images + 1 where item_id = new.item_id;
  else
    update memories set images = images - 1 where item_id = old.item_id;
  end if;
  return null;
end $$;

create trigger memory_stored after insert on memories for each row execute function memory_stored();
create trigger memory_deleted after delete on memories for each row execute function memory_deleted();
create trigger memory_illustrated after update of images on memories for each row
  when ((old.images > 0) <> (new.images > 0)) execute function memory_illustrated();
create trigger memory_attached after insert or delete on item_attachments for each row
  execute function memory_attached();

-- The metadata fields whose values are kept here too, elements of lists included, each value once.
create table metadata_fields (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  path text collate "C" not null,  -- names as a JSON list
  primary key (space, id)
);

create table metadata_values (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  field bigint not null,
  shape text collate "C" not null,  -- what kind of value; with a bracket before it where it is an element of a list
  value text collate "C" not null,  -- of a string: folded as filters fold it
  number numeric not null,  -- of a number
  value_head text collate "C" not null generated always as (left(value, 100)) stored,
  primary key (space, id)
);
create index metadata_by_value on metadata_values (space, field, shape, value_head, number);

create table metadata_holders (
  space text collate "C" not null default current_setting('commonplace.space'),
  value bigint not null,
  item_id bigint not null,
  primary key (space, value, item_id)
);
create index metadata_of_item on metadata_holders (space, item_id);

-- collections of files

create table files (
  space text collate "C" not null default current_setting('commonplace.space'),
  collection text collate "C" not null,
  path text collate "C" not null,  -- below the collection's root: the key of its document
  mtime_ns bigint not null,
  size bigint not null,
  inode numeric not null,  -- 64 bits without a sign
  hash bytea not null,
  read_at bigint not null,
  reader text collate "C" not null,
  skipped text collate "C" not null,
  warnings integer not null,
  version bigint not null,
  path_head text collate "C" not null generated always as (left(path, 100)) stored
);
create index files_by_path on files (space, collection, path_head);

create table updates (
  space text collate "C" not null default current_setting('commonplace.space'),
  collection text collate "C" not null,
  changed_at bigint not null,
  primary key (space, collection)
);

create table document_names (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  docid text collate "C" not null,  -- SHA-256 of collection/path, hexadecimal
  backwards text collate "C" not null,  -- collection/path in NFC, last character first
  backwards_head text collate "C" not null generated always as (left(backwards, 100)) stored,
  primary key (space, item_id)
);
create index document_names_by_docid on document_names (space, docid);
create index document_names_by_end on document_names (space, backwards_head);

-- notes, media, chats, characters and prompts

create table records (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  kind text collate "C" not null,
  uid text collate "C" not null,  -- a UUID that export and import know the item by, in any home
  folded text collate "C" not null,  -- its title, as names are compared
  folded_head text collate "C" not null generated always as (left(folded, 100)) stored,
  primary key (space, item_id),
  unique (space, uid)
);
create index records_by_name on records (space, kind, folded_head);

create table counters (
  space text collate "C" not null default current_setting('commonplace.space'),
  kind text collate "C" not null,
  last bigint not null,
  primary key (space, kind)
);

create table cues (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  cues text collate "C" not null,  -- a JSON array of [start_ms, end_ms, char_start, char_end, speaker or null]
  primary key (space, item_id)
);

create table import_sources (
  space text collate "C" not null default current_setting('commonplace.space'),
  kind text collate "C" not null,
  path text collate "C" not null,
  position text collate "C" not null,  -- which piece of the file
  hash bytea not null,
  item_id bigint not null,
  version bigint not null,
  path_head text collate "C" not null generated always as (left(path, 100)) stored
);
create index import_sources_by_path on import_sources (space, kind, path_head);
create index import_sources_by_item on import_sources (space, item_id);

create table kept_answers (
  space text collate "C" not null default current_setting('commonplace.space'),
  owner text collate "C" not null,
  tool text collate "C" not null,
  key text collate "C" not null,
  arguments bytea not null,  -- a hash of them
  answer text collate "C" not null,
  answered_at bigint not null,
  primary key (space, owner, tool, key)
);
create index kept_answers_by_time on kept_answers (space, answered_at);

-- Users and the keys they call with. They belong to no space of a user's: their rows have one that no user can have.
create table users (
  space text collate "C" not null default current_setting('commonplace.space'),
  name text collate "C" not null,
  works_in text collate "C" not null,
  created_at bigint not null,
  primary key (space, name)
);

create table keys (
  space text collate "C" not null default current_setting('commonplace.space'),
  id text collate "C" not null,  -- the part of a key that may be shown
  "user" text collate "C" not null,  -- the line stays when its user goes
  digest bytea not null,  -- SHA-256 of the secret part: 256 random bits need no slow hash
  scopes text collate "C" not null,
  label text collate "C" not null,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  collections text collate "C" not null default '[]',  -- a JSON list of names; empty: not limited
  primary key (space, id)
);
create index keys_of_user on keys (space, "user", created_at);

select isolate(name) from unnest(array[
  'spaces', 'items', 'bodies', 'tags', 'chunks', 'changes', 'models', 'embeddings', 'attachments', 'item_attachments',
  'jobs', 'settings', 'sessions', 'session_uris', 'session_lists', 'memories', 'memory_threads', 'supersessions',
  'memory_history', 'metadata_fields', 'metadata_values', 'metadata_holders', 'files', 'updates', 'document_names',
  'records', 'counters', 'cues', 'import_sources', 'kept_answers', 'users', 'keys'
]) as name;
