-- Users, and the keys they call with. What a key looks like is shown once and never stored.

create table users (
  name text primary key,
  space text not null,  -- several users may share one
  created_at integer not null  -- microseconds since 1970, UTC
) strict, without rowid;

create table keys (
  id text primary key,  -- the part of a key that may be shown
  user text not null,  -- the line stays when its user goes
  digest blob not null,  -- SHA-256 of the secret part: 256 random bits need no slow hash
  scopes text not null,  -- with blanks between
  label text not null,
  created_at integer not null,
  expires_at integer,
  revoked_at integer
) strict, without rowid;
create index keys_of_user on keys (user, created_at);
