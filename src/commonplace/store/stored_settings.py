"""Settings of a space that are kept with it, by name: what every process that opens it has to agree on."""

from __future__ import annotations

import json

from commonplace.model import JSON
from commonplace.store.session import Drawer, reads, writes
from commonplace.store.shaping import json_text


class StoredSettings(Drawer):
    """A row per setting, whose value is JSON."""

    @reads
    def get(self, name: str) -> JSON:
        """Return the value of a setting, or None."""
        row = self._db.row("select value from settings where name = :name", {"name": name})
        return None if row is None else json.loads(row[0])

    @writes
    def set(self, name: str, value: JSON) -> None:
        """Set a setting."""
        self._db.run(
            """insert into settings (name, value) values (:name, :value)
               on conflict key(name) do update set value = excluded.value""",
            {"name": name, "value": json_text(value)},
        )

    def settle(self, name: str, value: JSON) -> JSON:
        """Set a setting unless it is set, and return its value: the same to every process that asks at once."""
        settled = self.get(name)
        if settled is None:  # asked at every opening, which is not to wait for who writes just then
            self._add(name, value)
            settled = self.get(name)
        return settled

    @writes
    def _add(self, name: str, value: JSON) -> None:
        self._db.run(
            "insert into settings (name, value) values (:name, :value) on conflict key(name) do nothing",
            {"name": name, "value": json_text(value)},
        )
