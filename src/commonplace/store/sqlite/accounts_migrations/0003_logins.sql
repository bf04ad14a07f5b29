-- 0003_logins.sql   People who use the page: each login stands for a key, and ends with it.

create table logins (
  digest blob primary key,  -- SHA-256 of a random text that only the browser has
  key text not null,  -- the id of the key it was opened with
  used_at integer not null  -- microseconds since 1970, UTC
) strict, without rowid;
create index logins_of_key on logins (key);
