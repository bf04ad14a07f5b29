-- 0002_outlines.sql   Headings are read once, when a document is stored: outlines, sections and titles read no text.

-- A document without a row was stored before there were any; whoever asks for its outline first makes the row.
create table outlines (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  title text collate "C" not null,  -- the first heading of level 1, else the front matter's title, else nothing
  size bigint not null,  -- characters of the body
  primary key (space, item_id)
);

create table headings (
  space text collate "C" not null default current_setting('commonplace.space'),
  item_id bigint not null,
  line integer not null,  -- from 1; the order of the headings is the order of their lines
  ordinal integer not null,  -- from 0
  level integer not null,
  title text collate "C" not null,
  path text collate "C" not null,  -- the titles from the root to this one, a line each
  line_end integer not null,
  char_start bigint not null,
  char_end bigint not null,
  own_line_end integer not null,  -- without the sections under it
  own_char_end bigint not null,
  slug text collate "C" not null,
  occurrence integer not null,
  primary key (space, item_id, line)
);

select isolate(name) from unnest(array['outlines', 'headings']) as name;
