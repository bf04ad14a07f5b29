"""Where items were imported from, so that a second import finds them."""

from __future__ import annotations

from typing import NamedTuple

from commonplace.store.dialect import Tuned, marks
from commonplace.store.session import Drawer, reads, writes

_COLUMNS = "kind, path, position, hash, item_id, version"
_AT_PATH = Tuned(
    sqlite="kind = :kind and path = :path",
    postgres="kind = :kind and path_head = left(:path, 100) and path = :path",
)
_INSERT = f"insert into import_sources ({_COLUMNS}) values ({marks(_COLUMNS)})"
_KEEP = Tuned(
    sqlite=f"""{_INSERT} on conflict do update
               set hash = excluded.hash, item_id = excluded.item_id, version = excluded.version""",
    postgres=_INSERT,
)


class ImportSource(NamedTuple):
    """The place an item was imported from, a hash of what came in then, and the version it was given."""

    kind: str
    path: str
    position: str
    hash: bytes
    item_id: int
    version: int


class ImportSources(Drawer):
    """A row per piece of a file that became an item."""

    @reads
    def find(self, kind: str, path: str, position: str) -> ImportSource | None:
        """Return where an item was imported from, by its place there, or None."""
        query = f"select {_COLUMNS} from import_sources where {self._db.tuned(_AT_PATH)} and position = :position"
        row = self._db.row(query, {"kind": kind, "path": path, "position": position})
        return ImportSource(*row) if row else None

    @reads
    def of(self, item_id: int) -> list[ImportSource]:
        """Return the places an item was imported from."""
        rows = self._db.all(f"select {_COLUMNS} from import_sources where item_id = :item", {"item": item_id})
        return [ImportSource(*row) for row in rows]

    @reads
    def at(self, kind: str, path: str) -> list[ImportSource]:
        """Return all pieces of a path, in the order of their positions."""
        query = f"select {_COLUMNS} from import_sources where {self._db.tuned(_AT_PATH)} order by position"
        return [ImportSource(*row) for row in self._db.all(query, {"kind": kind, "path": path})]

    @writes
    def keep(self, source: ImportSource) -> None:
        """Store where an item was imported from."""
        if self._db.dialect == "postgres":  # a path may be too long for a key of an index there
            at = f"{self._db.tuned(_AT_PATH)} and position = :position"
            self._db.run(f"delete from import_sources where {at}", source._asdict())
        self._db.run(_KEEP, source._asdict())
