"""Clients' configuration files as they lie on the disk: read whole, replaced in one step, a copy kept."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.cli.clients import Client
from commonplace.cli.configs import InvalidConfig, read
from commonplace.errors import CommonplaceError

_STAMP = ".%Y%m%d-%H%M%S"
_BACKUP = ".backup"
_MARK = "\ufeff"


class ClientFile(CommonplaceError):
    """The error that a client's file was left as it was. Ends a process with EX_CONFIG."""

    code, status, exit_code = "client_file", 500, 78


@dataclass(frozen=True, slots=True)
class Config:
    """The content of a client's file."""

    path: Path
    """The file itself, where the client's path is a link, which stays one."""
    raw: bytes
    text: str
    servers_by_key: dict[str, Any]

    def encoded(self, text: str) -> bytes:
        """Return a text as the bytes of this file, with the byte order mark that it has."""
        return ((_MARK if self.raw.startswith(_MARK.encode()) else "") + text).encode("utf-8")

    def entries(self, client: Client) -> dict[str, Any]:
        """Return the servers that the client knows, by name."""
        servers = self.servers_by_key.get(client.key)
        return servers if isinstance(servers, dict) else {}


def opened(client: Client, path: Path) -> Config:
    """Return the content of a client's file, empty for none. Raise ClientFile for a file that cannot be read."""
    real = Path(os.path.realpath(path))
    try:
        raw = real.read_bytes() if real.exists() else b""
        text = raw.decode("utf-8").removeprefix(_MARK)
        return Config(real, raw, text, read(text, client.format))
    except (InvalidConfig, UnicodeDecodeError) as error:
        raise ClientFile(f"{path} cannot be read: {error}. Mend it or move it away, then repeat this.") from error


def backups(path: Path) -> list[Path]:
    """Return the copies that `replace_file` made of a file, the newest first."""
    copies = path.parent.glob(f"{path.name}.????????-??????{_BACKUP}*") if path.parent.is_dir() else ()
    return sorted(copies, reverse=True)


def replace_file(path: Path, old: bytes, new: bytes) -> Path | None:
    """Replace a file in one step, keeping its mode, and return its backup. Raise ClientFile if it just changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exists = path.exists()
    mode = path.stat().st_mode & 0o777 if exists else 0o600
    backup = _create(path, time.strftime(_STAMP + _BACKUP), old, mode) if exists else None
    fresh = _create(path, ".new", new, mode)
    try:
        if (path.read_bytes() if path.exists() else b"") != old:
            raise ClientFile(f"{path} was changed by another program meanwhile and was left as it is. Repeat this.")
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        if backup:
            backup.unlink()
        raise
    return backup


def _create(path: Path, suffix: str, content: bytes, mode: int) -> Path:
    """Create a file beside `path`, never replacing one, and never readable by more people than `path` is."""
    for attempt in range(100):
        beside = path.with_name(f"{path.name}{suffix}{f'-{attempt}' if attempt else ''}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        return beside
    raise FileExistsError(17, f"there are too many copies of {path.name} beside it")
