-- 0008_tables.sql   JSON tables: projects, data in fragments, tools bound to places, instances with keys, and what is left to index.

create table projects (
  id text primary key,
  name text not null unique,
  description text not null,
  created_at integer not null  -- microseconds since 1970, here and below
) strict, without rowid;

create table tables (
  number integer primary key autoincrement,
  id text not null unique,
  project text not null references projects (id),
  name text not null,
  description text not null,
  searchable integer not null,
  version integer not null,
  size integer not null,  -- bytes of the data as JSON without blanks
  generation integer not null,
  building integer,  -- the generation that is being made beside it
  leaving integer,  -- the one it took the place of, while its rows are being removed
  basis text not null,  -- what the generation was made with: chunk settings and model
  created_at integer not null,
  updated_at integer not null,
  unique (project, name)
) strict;

-- A value that is short is one fragment. A long object has one for each member, a long list one for each few elements.
create table fragments (
  id integer primary key,
  tbl integer not null,
  parent integer not null,  -- a fragment, or minus the table's number for the whole value
  position integer not null,  -- of an element its index, of a member what orders it
  key text,
  count integer not null,  -- elements it holds
  shape text not null check (shape in ('object', 'list', 'value', 'run')),
  size integer not null,  -- bytes of what it holds, as JSON without blanks
  text text  -- JSON; null where its members are fragments of their own
) strict;
create index fragments_in_order on fragments (parent, position);
create unique index fragments_by_key on fragments (parent, key) where key is not null;
create index fragments_of_table on fragments (tbl);

create table tools (
  id text primary key,
  tbl integer not null references tables (number),
  json_path text not null,
  type text not null,
  name text not null,
  description text not null,
  metadata text not null,
  created_at integer not null,
  updated_at integer not null,
  configured_at integer,
  started_at integer,
  indexed_at integer
) strict, without rowid;
create index tools_of_table on tools (tbl);
create index tools_by_name on tools (name);

create table instances (
  id text primary key,
  name text not null unique,
  description text not null,
  enabled integer not null,
  digest blob not null,  -- SHA-256 of the key
  hint text not null,
  created_at integer not null
) strict, without rowid;

create table bindings (
  instance text not null references instances (id),
  tool text not null references tools (id),
  enabled integer not null,
  primary key (instance, tool)
) strict, without rowid;
create index bindings_of_tool on bindings (tool);

-- The places each indexed node is inside of, so that a scope is looked up and not computed.
create table node_places (
  place integer not null,  -- the first 63 bits of a SHA-256, see `store.places`
  item_id integer not null,
  primary key (place, item_id)
) strict, without rowid;
create index node_places_of_item on node_places (item_id);
create trigger node_leaves_its_places after delete on items when old.kind = 'table' begin
  delete from node_places where item_id = old.id;
end;

-- What has changed and is not indexed yet.
create table dirty_places (
  id integer primary key autoincrement,
  tbl integer not null,
  generation integer not null,
  pointer text not null,
  first integer,  -- of a list, from which element on
  alone integer not null,  -- whether only the record of that place is meant
  cursor text,  -- the last node that is done
  swept integer not null,  -- the item up to which superfluous ones are removed
  upto integer not null  -- the last item there was; later ones are not superfluous
) strict;
create index dirty_places_of_table on dirty_places (tbl, generation);

create table table_jobs (
  id integer primary key autoincrement,
  tbl integer not null unique,
  kind text not null,
  progress text not null,
  holder text not null default '',
  lease_until integer not null default 0,
  heartbeat_at integer not null default 0,
  attempts integer not null default 0,
  run_after integer not null,
  error text
) strict;
