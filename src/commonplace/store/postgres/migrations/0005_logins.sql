-- 0005_logins.sql   People who use the page: each login stands for a key, and ends with it.

create table logins (
  space text collate "C" not null default current_setting('commonplace.space'),
  digest bytea not null,  -- SHA-256 of a random text that only the browser has
  key text collate "C" not null,  -- the id of the key it was opened with
  used_at bigint not null,  -- microseconds since 1970, UTC
  primary key (space, digest)
);
create index logins_of_key on logins (space, key);

select isolate('logins');
