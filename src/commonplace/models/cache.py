"""The folder models are kept in. A model's folder appears whole or not at all, whoever is killed when."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from commonplace.errors import DownloadFailed
from commonplace.lazy_dataclass import dataclass
from commonplace.models.catalog import Card, CatalogEntry, catalog

HUB = "hf:"
CARD = "card.json"
LOCK_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Installed:
    """A model whose files are all in the cache."""

    name: str
    version: str
    path: Path
    size: int


def installed(cache: Path) -> list[Installed]:
    """Return the models in the cache that can be opened, by name."""
    from_catalog = [_installed(entry, path) for entry in catalog().values() if (path := find(entry.name, cache))]
    return sorted([*from_catalog, *_from_hub(cache)], key=lambda model: model.name)


def find(name: str, cache: Path) -> Path | None:
    """Return the folder of a catalog or `hf:` model, or None when it is not there in full."""
    if name.startswith(HUB):
        path = cache / hub_folder(name)
        return path if (path / CARD).is_file() else None
    entry = catalog().get(name)
    if entry is None:
        return None
    return cache / entry.folder if has(entry, cache) else None


def is_gone(name: str, cache: Path) -> bool:
    """Return whether a model is one of those that are pulled, and is not there."""
    return (name in catalog() or name.startswith(HUB)) and find(name, cache) is None


def has(entry: CatalogEntry, cache: Path) -> bool:
    """Return whether every file of a catalog model is there in its full length. Its hash was checked when it came."""
    files = ((cache / entry.folder / member.name, member.bytes) for member in entry.files.values())
    return all(path.is_file() and path.stat().st_size == size for path, size in files)


def damaged(name: str, cache: Path) -> list[Path]:
    """Return the files of a catalog model that are there in full and hold something else than what was pulled."""
    entry, folder = catalog().get(name), find(name, cache)
    if entry is None or folder is None:
        return []
    files = ((folder / member.name, member.sha256) for member in entry.files.values())
    return [path for path, sha256 in files if sha256_of(path) != sha256]


def hub_folder(name: str) -> str:
    """Return `hf:owner/name` as one folder name."""
    return f"hf--{name.removeprefix(HUB).replace('/', '--')}"


def write_card(folder: Path, card: Card) -> None:
    """Write how a model that is not in the catalog is used, beside its files."""
    fields = asdict(card) | {"languages": sorted(card.languages)}
    write_verified(folder / CARD, [json.dumps(fields, indent=2).encode()])


def read_card(folder: Path) -> Card:
    fields: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
    return Card(**fields | {"languages": frozenset(fields["languages"])})


def fill(folder: Path, complete: Callable[[], bool], write: Callable[[Path], None]) -> Path:
    """Return a folder that `write` has made, once: others wait for it, and a call that dies leaves nothing that counts.

    Raise DownloadFailed where another process takes too long, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout  # slow to load, and only a pull needs it

    if complete():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock", timeout=LOCK_TIMEOUT_S):
            if not complete():
                _replace(folder, write)
    except Timeout:
        raise DownloadFailed(
            f"Another process has been fetching {folder.name} for {LOCK_TIMEOUT_S / 60:.0f} minutes. "
            "Wait for it or stop it, then try again."
        ) from None
    except OSError as error:
        raise DownloadFailed(
            f"{folder} could not be written ({error}). Check the disk's free space and the folder's permissions."
        ) from error
    return folder


def write_verified(path: Path, pieces: Iterable[bytes], sha256: str | None = None, size: int | None = None) -> None:
    """Write a file and fsync it.

    Raise DownloadFailed for another hash or length, before the file has a name that counts.
    """
    digest, written = hashlib.sha256(), 0
    with path.open("wb") as file:
        for piece in pieces:
            digest.update(piece)
            written += len(piece)
            if size is not None and written > size:
                break  # more than it may be: no need to see how much more
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    if size not in (None, written) or sha256 not in (None, digest.hexdigest()):
        raise DownloadFailed(
            f"{path.name} is not the file that was expected: its sha256 is {digest.hexdigest()}, not {sha256}. "
            "Try again, or set COMMONPLACE_REGISTRY to a registry you trust."
        )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(folder: Path, write: Callable[[Path], None]) -> None:
    import shutil  # with tempfile 3 ms, and every search loads this module

    partial = f".partial-{folder.name}-"
    for left_over in folder.parent.glob(f"{partial}*"):
        shutil.rmtree(left_over)  # ours is the only process that may write it: the lock is held
    with _staging(folder.parent, partial) as stage:
        write(stage)
        _sync_folder(stage)
        if folder.exists():
            shutil.rmtree(folder)
        stage.rename(folder)
        _sync_folder(folder.parent)


@contextmanager
def _staging(cache: Path, prefix: str) -> Iterator[Path]:
    import shutil
    import tempfile

    stage = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
    try:
        stage.chmod(0o755)  # mkdtemp's 0700 would hide a cache that is shared on purpose
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _sync_folder(path: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _installed(entry: CatalogEntry, path: Path) -> Installed:
    return Installed(entry.name, entry.version, path, entry.size)


def _from_hub(cache: Path) -> Iterator[Installed]:
    for path in sorted(cache.glob(f"hf--*/{CARD}")):
        card = read_card(path.parent)
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        yield Installed(card.name, card.version, path.parent, size)
