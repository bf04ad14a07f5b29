-- 0007_outlines.sql   Headings are read once, when a document is stored: outlines, sections and titles read no text.

-- A document without a row was stored before there were any; whoever asks for its outline first makes the row.
create table outlines (
  item_id integer primary key,
  title text not null,  -- the first heading of level 1, else the front matter's title, else nothing
  size integer not null  -- characters of the body
) strict;

create table headings (
  item_id integer not null,
  line integer not null,  -- from 1; the order of the headings is the order of their lines
  ordinal integer not null,  -- from 0
  level integer not null,
  title text not null,
  path text not null,  -- the titles from the root to this one, a line each
  line_end integer not null,
  char_start integer not null,
  char_end integer not null,
  own_line_end integer not null,  -- without the sections under it
  own_char_end integer not null,
  slug text not null,
  occurrence integer not null,
  primary key (item_id, line)
) strict, without rowid;
