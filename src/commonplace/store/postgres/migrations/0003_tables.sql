-- 0003_tables.sql   JSON tables: projects, data in fragments, tools bound to places, instances with keys, and what is left to index.
--
-- Keys and pointers may hold U+0000, which no text can: they are bytes, in UTF-8. Data is JSON, which writes it as an escape.

alter table spaces add column part bigint not null default 0;  -- of tables, fragments, dirty places and jobs, together

create table projects (
  space text collate "C" not null default current_setting('commonplace.space'),
  id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  created_at bigint not null,  -- microseconds since 1970, here and below
  primary key (space, id),
  unique (space, name)
);

create table tables (
  space text collate "C" not null default current_setting('commonplace.space'),
  number bigint not null,  -- never reused
  id text collate "C" not null,
  project text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  searchable boolean not null,
  version bigint not null,
  size bigint not null,  -- bytes of the data as JSON without blanks
  generation bigint not null,
  building bigint,  -- the generation that is being made beside it
  leaving bigint,  -- the one it took the place of, while its rows are being removed
  basis text collate "C" not null,  -- what the generation was made with: chunk settings and model
  created_at bigint not null,
  updated_at bigint not null,
  primary key (space, number),
  unique (space, id),
  unique (space, project, name)
);

-- A value that is short is one fragment. A long object has one for each member, a long list one for each few elements.
create table fragments (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  tbl bigint not null,
  parent bigint not null,  -- a fragment, or minus the table's number for the whole value
  position bigint not null,  -- of an element its index, of a member what orders it
  key bytea,
  count bigint not null,  -- elements it holds
  shape text collate "C" not null check (shape in ('object', 'list', 'value', 'run')),
  size bigint not null,  -- bytes of what it holds, as JSON without blanks
  text text collate "C",  -- JSON; null where its members are fragments of their own
  key_head bytea generated always as (substring(key from 1 for 100)) stored,
  primary key (space, id)
);
create index fragments_in_order on fragments (space, parent, position);
create index fragments_by_key on fragments (space, parent, key_head) where key is not null;
create index fragments_of_table on fragments (space, tbl);

create table tools (
  space text collate "C" not null default current_setting('commonplace.space'),
  id text collate "C" not null,
  tbl bigint not null,
  json_path bytea not null,
  type text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  metadata text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  configured_at bigint,
  started_at bigint,
  indexed_at bigint,
  primary key (space, id)
);
create index tools_of_table on tools (space, tbl);

create table instances (
  space text collate "C" not null default current_setting('commonplace.space'),
  id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  enabled boolean not null,
  digest bytea not null,  -- SHA-256 of the key
  hint text collate "C" not null,
  created_at bigint not null,
  primary key (space, id),
  unique (space, name)
);

create table bindings (
  space text collate "C" not null default current_setting('commonplace.space'),
  instance text collate "C" not null,
  tool text collate "C" not null,
  enabled boolean not null,
  primary key (space, instance, tool)
);
create index bindings_of_tool on bindings (space, tool);

-- The places each indexed node is inside of, so that a scope is looked up and not computed.
create table node_places (
  space text collate "C" not null default current_setting('commonplace.space'),
  place bigint not null,  -- the first 63 bits of a SHA-256, see `store.places`
  item_id bigint not null,
  primary key (space, place, item_id)
);
create index node_places_of_item on node_places (space, item_id);

-- What has changed and is not indexed yet.
create table dirty_places (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  tbl bigint not null,
  generation bigint not null,
  pointer bytea not null,
  first bigint,  -- of a list, from which element on
  alone boolean not null,  -- whether only the record of that place is meant
  cursor bytea,  -- the last node that is done
  swept bigint not null,  -- the item up to which superfluous ones are removed
  upto bigint not null,  -- the last item there was; later ones are not superfluous
  primary key (space, id)
);
create index dirty_places_of_table on dirty_places (space, tbl, generation);

create table table_jobs (
  space text collate "C" not null default current_setting('commonplace.space'),
  id bigint not null,
  tbl bigint not null,
  kind text collate "C" not null,
  progress text collate "C" not null,
  holder text collate "C" not null default '',
  lease_until bigint not null default 0,
  heartbeat_at bigint not null default 0,
  attempts integer not null default 0,
  run_after bigint not null,
  error text collate "C",
  primary key (space, id),
  unique (space, tbl)
);

select isolate(name) from unnest(array[
  'projects', 'tables', 'fragments', 'tools', 'instances', 'bindings', 'node_places', 'dirty_places', 'table_jobs'
]) as name;
