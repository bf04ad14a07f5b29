-- 0004_files.sql   A file that has not changed since it was read is not opened again.

create table files (
  collection text not null,
  path text not null,  -- below the collection's root: the key of its document
  mtime_ns integer not null,
  size integer not null,
  inode integer not null,
  hash blob not null,  -- SHA-256 of the file's bytes
  read_at integer not null,  -- nanoseconds since 1970
  reader text not null,  -- which reader made the text, by which rules
  skipped text not null,  -- why there is no document, or nothing
  warnings integer not null,
  version integer not null,  -- of the document that was made of it
  primary key (collection, path)
) strict, without rowid;

create table updates (
  collection text primary key,
  changed_at integer not null  -- microseconds: when a document was last added, changed or removed
) strict, without rowid;
