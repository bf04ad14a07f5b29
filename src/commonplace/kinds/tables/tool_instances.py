"""Instances: endpoints with keys of their own that serve the tools bound to them, and no others.

A key names its space, the only one it opens: 256 random bits, shown once, stored as a digest.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from commonplace.errors import AlreadyExists, NotFound
from commonplace.kinds.tables.drawer import InstanceDrawer, TableDrawer
from commonplace.kinds.tables.names import check_description, check_instance_name, find_instance, find_tool, new_id
from commonplace.kinds.tables.rows import BindingRow, InstanceRow, ToolRow
from commonplace.store.base import Store

PREFIX = "cpi"
_KEY = re.compile(rf"{PREFIX}_([a-z0-9][a-z0-9._-]{{0,63}})_([0-9a-f]{{64}})")
ENABLED, DISABLED = "enabled", "disabled"
HINTED = 4


def new_key(space: str) -> str:
    """Return a new key for a space."""
    return f"{PREFIX}_{space}_{secrets.token_hex(32)}"


def space_of(key: str) -> str | None:
    """Return the space that a key names; None for a text that is no key."""
    match = _KEY.fullmatch(key)
    return match.group(1) if match else None


def digest(key: str) -> bytes:
    """Return the SHA-256 digest of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def is_key_of(key: str, stored_digest: bytes) -> bool:
    """Return whether a key has this digest, comparing in constant time."""
    return hmac.compare_digest(digest(key), stored_digest)


_NOBODY = digest("nobody's key")


class Instances:
    """The instances of one library. `space` is the space that the keys made here are for."""

    def __init__(self, store: Store, space: str) -> None:
        self._store, self._space = store, space
        self._instance_rows, self._table_rows = store.drawer(InstanceDrawer), store.drawer(TableDrawer)

    def create(self, name: str, description: str = "", tool_ids: Sequence[str] = ()) -> tuple[InstanceRow, str]:
        """Create an instance and return it with its key, this once: only a digest of the key is stored."""
        with self._store.transaction():
            check_instance_name(name, self._instance_rows.instances())
            key = new_key(self._space)
            now = time.time_ns() // 1000
            instance = InstanceRow(
                new_id(), name, check_description(description), True, digest(key), key[-HINTED:], now
            )
            self._instance_rows.put_instance(instance)
            if tool_ids:
                self.bind(instance, tool_ids)
            return instance, key

    def update(self, instance: InstanceRow, changes: Mapping[str, Any]) -> tuple[InstanceRow, str | None]:
        """Change what is given. With `rotate_key` the old key ends at once, and the new one is returned."""
        with self._store.transaction():
            instance = self._current(instance)
            name = changes.get("name", instance.name)
            if name != instance.name:
                check_instance_name(name, self._instance_rows.instances(), instance.id)
            new = replace(
                instance,
                name=name,
                description=check_description(changes.get("description", instance.description)),
                enabled=changes.get("status", ENABLED if instance.enabled else DISABLED) == ENABLED,
            )
            key = new_key(self._space) if changes.get("rotate_key") else None
            if key is not None:
                new = replace(new, digest=digest(key), hint=key[-HINTED:])
            self._instance_rows.put_instance(new)
            return new, key

    def delete(self, instance: InstanceRow) -> None:
        with self._store.transaction():
            self._instance_rows.drop_instance(self._current(instance).id)

    def bind(self, instance: InstanceRow, tool_ids: Sequence[str], *, enabled: bool = True) -> None:
        """Bind all of these tools or none. A pair that is bound already gets the status. Raise AlreadyExists."""
        with self._store.transaction():
            instance = self._current(instance)
            tools = {tool.id: tool for tool in (find_tool(self._table_rows, wanted, "tool_ids") for wanted in tool_ids)}
            names = {tool.name: tool.id for tool, _ in self.bound(instance)}
            for tool in tools.values():
                if names.setdefault(tool.name, tool.id) != tool.id:
                    raise AlreadyExists(
                        f'tool_ids has a second tool called "{tool.name}", and an instance has each name once. '
                        "Rename one of them.",
                        argument="tool_ids",
                    )
            self._instance_rows.bind_tools(instance.id, list(tools), enabled=enabled)

    def unbind(self, instance: InstanceRow, tool_ids: Sequence[str]) -> None:
        """Remove these bindings, all or none. Raise NotFound for a tool that is not bound."""
        with self._store.transaction():
            tools = [find_tool(self._table_rows, wanted, "tool_ids") for wanted in tool_ids]
            bound = {tool.id for tool, _ in self.bound(instance)}
            for tool in tools:
                if tool.id not in bound:
                    raise NotFound(f'tool_ids has "{tool.name}", which is not bound there.', argument="tool_ids")
            self._instance_rows.unbind_tools(instance.id, [tool.id for tool in tools])

    def _current(self, instance: InstanceRow) -> InstanceRow:
        current = self._instance_rows.instance(instance.id)
        if current is None:
            raise NotFound(
                f'There is no instance "{instance.name}" any more. instance_list shows them.', argument="instance_id"
            )
        return current

    def bound(self, instance: InstanceRow) -> list[tuple[ToolRow, BindingRow]]:
        """Return the tools of an instance with their bindings, by name."""
        pairs = [
            (self._table_rows.tool(binding.tool), binding) for binding in self._instance_rows.bindings(instance.id)
        ]
        return sorted(((tool, binding) for tool, binding in pairs if tool), key=lambda pair: pair[0].name)

    def find(self, wanted: str) -> InstanceRow:
        """Return an instance by its id or name. Raise NotFound."""
        return find_instance(self._instance_rows, wanted)

    def admitted(self, name: str, key: str) -> InstanceRow | None:
        """Return the instance with a name if this is its key, else None. It may be disabled.

        An unknown name costs as much time as a wrong key.
        """
        instance = self._instance_rows.named_instance(name)
        is_its_key = is_key_of(key, instance.digest if instance else _NOBODY)
        return instance if is_its_key else None

    def served(self, instance_id: str, name: str | None = None) -> list[ToolRow]:
        """Return the tools that an instance serves now, by name; only the tool with `name` where given."""
        return self._instance_rows.bound_tools(instance_id, name)

    def state(self, instance_id: str) -> tuple[tuple[str, str, str, str], ...]:
        """Return a value that differs once the instance's list of tools does."""
        return tuple((tool.id, tool.name, tool.type, tool.description) for tool in self.served(instance_id))
