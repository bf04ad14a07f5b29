-- Sessions are kept in the space, so that they outlive a restart and any process can serve one.

create table sessions (
  id text primary key,
  client text not null,
  defaults text not null,
  queries text not null,  -- a JSON array, newest first
  created_at integer not null,  -- microseconds since 1970, UTC
  used_at integer not null
) strict, without rowid;
create index sessions_by_use on sessions (used_at);

create table session_uris (
  session text not null references sessions (id),
  uri text not null,
  position integer not null,  -- rises with each return
  primary key (session, uri)
) strict, without rowid;
create index session_uris_by_position on session_uris (session, position);

create table session_lists (
  session text not null references sessions (id),
  key text not null,
  position integer not null,  -- rises with each use
  without text not null,  -- a JSON array: what was seen when the list began, however little of it is kept since
  replayed integer not null,
  primary key (session, key)
) strict, without rowid;
