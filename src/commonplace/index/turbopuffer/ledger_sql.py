"""The tables of the ledger, and its longer statements."""

from __future__ import annotations

SCHEMA = """
create table facts (name text primary key, value) without rowid;
create table rows (
  chunk integer primary key, namespace text not null, id text not null, digest blob not null, embedded integer not null,
  kind text not null, parent text not null, language text not null, many integer not null,
  created integer not null, updated integer not null, generation integer not null,
  title text not null, body text not null, words text not null
);
create index rows_by_id on rows (namespace, id);
create index rows_by_parent on rows (parent, namespace);
create index rows_by_language on rows (language);
create table terms (field text, term text, count integer not null, primary key (field, term)) without rowid;
create table tallies (name text primary key, count integer not null) without rowid;
create table sending (namespace text, id text, primary key (namespace, id)) without rowid;
create table emptied (namespace text primary key) without rowid;
create table refused (chunk integer primary key, reason text not null);
create table found (
  namespace text, id text, digest blob not null, version integer not null, primary key (namespace, id)
) without rowid;
create table looked (namespace text primary key) without rowid;
create table made (namespace text primary key) without rowid;
create table left (namespace text primary key) without rowid;
"""
CLEAR = """
delete from rows; delete from terms; delete from tallies; delete from sending; delete from refused; delete from emptied;
delete from found; delete from looked;
delete from facts where name not in ('format', 'model', 'dims', 'log');
"""
COUNTED_ROWS = """
select namespace, generation, kind, language, many, embedded, title, body, words from rows
where chunk >= ? and chunk < ?
"""
INSERT = """
insert or replace into rows values (
  :chunk, :namespace, :id, :digest, :embedded, :kind, :parent, :language, :many,
  :created, :updated, :generation, :title, :body, :words
)
"""
EMPTIED = """
insert or ignore into emptied
  select substr(name, 11) from tallies where count <= 0 and name >= 'namespace:' and name < 'namespace;';
delete from emptied where exists (select 1 from tallies where name = 'namespace:' || namespace and count > 0);
delete from tallies where count <= 0;
"""
