"""The vector index on disk: append-only files of one generation and a manifest that says how much of them counts.

    ids-G.bin      int64    the chunk of each row
    codes-G.bin    uint64   the sign bits of each row
    vectors-G.bin  float16  each row at length one, memory-mapped by searches
    dead-G.bin     int64    rows that no longer count
    manifest.json           the commit: it is replaced whole, after the rest is on the disk

Numbers are in the machine's own order of bytes: an index is rebuilt, not carried elsewhere.
Whatever lies past the sizes in the manifest was never committed; the next writer cuts it off.
"""

from __future__ import annotations

import base64
import json
import mmap
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Busy
from commonplace.index.followers import IndexDamaged
from commonplace.index.sealed_files import Sealed, check_content, readable, stamp, sweep, write_atomically, writer_lock
from commonplace.index.vectors.scan import (
    BLOCK,
    Floats,
    Halves,
    Ids,
    Mask,
    RowOrder,
    VectorRows,
    code_words,
    codes_of,
    widen,
)

FORMAT = 1
MANIFEST = "manifest.json"
KINDS = ("ids", "codes", "vectors", "dead")
_DATA_NAME = re.compile(rf"({'|'.join(KINDS)})-(\d+)\.bin")
_EMPTY = Sealed(0, 0, 0)

Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VectorManifest:
    """A commit of the index. `sampled` is the number of rows that the common direction was computed from."""

    generation: int
    dims: int
    fingerprint: str
    rows: int = 0
    dead: int = 0
    position: int = 0
    sampled: int = 0
    direction: bytes = b""
    seals: Mapping[str, Sealed] = field(default_factory=lambda: dict.fromkeys(KINDS, _EMPTY))

    def name(self, kind: str) -> str:
        """Return the name of the file of a kind."""
        return f"{kind}-{self.generation}.bin"

    def common_direction(self) -> Floats:
        """Return the direction that the codes leave out; zeros before the first row."""
        direction: Floats = np.frombuffer(self.direction, np.float32)
        return direction if len(direction) else np.zeros(self.dims, np.float32)

    def to_json(self) -> bytes:
        """Return the content of the manifest file."""
        values = asdict(self) | {"format": FORMAT, "direction": base64.b64encode(self.direction).decode("ascii")}
        return json.dumps(values | {"crc32": _crc_of(values)}, indent=1).encode("ascii")

    @classmethod
    def from_json(cls, data: bytes) -> VectorManifest:
        """Return the manifest in a file's content. Raise `IndexDamaged` if it is not as it was written."""
        try:
            values = json.loads(data)
            if values.pop("crc32") != _crc_of(values) or values.pop("format") != FORMAT:
                raise ValueError("not as it was written, or by another version")
            seals = {kind: Sealed(*values["seals"][kind]) for kind in KINDS}
            return cls(**values | {"direction": base64.b64decode(values["direction"]), "seals": seals})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise IndexDamaged(f"{MANIFEST} cannot be used: {error}") from error


def _crc_of(values: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode("ascii"))


class VectorFolder:
    """The files of one index and their latest commit. Methods that write are for the holder of `writer_lock`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def manifest_stamp(self) -> tuple[int, int, int] | None:
        """Return a stamp that changes with every commit, for the cost of one `stat`; None if there is no commit."""
        try:
            status = os.stat(f"{self.path}/{MANIFEST}")  # at every search, so no path is made of it
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def manifest(self) -> VectorManifest | None:
        """Return the latest commit; None if there never was one. Raise `IndexDamaged` if it is lost or unreadable."""
        path = self.path / MANIFEST
        with readable(path), suppress(FileNotFoundError):
            return VectorManifest.from_json(path.read_bytes())
        if any(self._data_files()):
            raise IndexDamaged(f"{self.path / MANIFEST} is missing")
        return None

    def commit(self, manifest: VectorManifest) -> VectorManifest:
        """Write a manifest, which makes it the latest commit, and return it."""
        write_atomically(self.path / MANIFEST, manifest.to_json())
        return manifest

    def start_over(self, dims: int, fingerprint: str) -> VectorManifest:
        """Commit an empty index, then remove the old files: other processes see the empty commit first."""
        manifest = self.commit(VectorManifest(self.next_generation(), dims, fingerprint))
        self.remove_others(manifest.generation)
        return manifest

    def next_generation(self) -> int:
        """Return a generation whose files no process can have open, not even one that knew a deleted folder."""
        generations = [generation for _, generation in self._data_files()]
        with suppress(IndexDamaged):
            manifest = self.manifest()
            generations.append(manifest.generation if manifest else 0)
        return max(int(time.time() * 1000), *(generation + 1 for generation in generations), 0)

    def remove_others(self, generation: int) -> None:
        """Remove the files of other generations. A process that still has them mapped keeps them until it lets go."""
        for path, other in list(self._data_files()):
            if other != generation:
                path.unlink(missing_ok=True)

    def prepare(self, manifest: VectorManifest) -> VectorManifest:
        """Make the folder ready for an append and return its commit: cut what a killed writer left, check what changed.

        A file that was touched is read in full before new bytes are sealed together with its content.
        """
        sweep(self.path)
        self.remove_others(manifest.generation)
        doubtful = self.doubtful(manifest)
        if not doubtful:
            return manifest
        seals = {kind: self._cut(manifest, kind) for kind in doubtful}
        return self.commit(replace(manifest, seals={**manifest.seals, **seals}))

    def doubtful(self, manifest: VectorManifest, vouched: Mapping[str, Stamp] | None = None) -> list[str]:
        """Return the kinds of files that changed since they were sealed and are not as `vouched` for.

        Raise `IndexDamaged` if one is missing or cut short.
        """
        kinds = []
        for kind, sealed in manifest.seals.items():
            if not sealed.size:
                continue
            size, mtime_ns = stamp(self.path / manifest.name(kind))
            if size < sealed.size:
                raise IndexDamaged(f"{manifest.name(kind)} ends {sealed.size - size} bytes early")
            as_sealed = (size, mtime_ns) == sealed[:2]
            if not as_sealed and (vouched or {}).get(manifest.name(kind)) != (size, mtime_ns):
                kinds.append(kind)
        return kinds

    def read(self, manifest: VectorManifest, kind: str, start: int) -> bytes:
        """Return the committed bytes of a file from `start` on. Raise `IndexDamaged` if it ends early."""
        size = manifest.seals[kind].size
        if size <= start:
            return b""
        path = self.path / manifest.name(kind)
        with readable(path), path.open("rb") as file:
            file.seek(start)
            data = file.read(size - start)
        if len(data) != size - start:
            raise IndexDamaged(f"{manifest.name(kind)} ends early")
        return data

    def map_vectors(self, manifest: VectorManifest) -> Halves:
        """Return the committed vectors, memory-mapped: (rows, dims). Raise `IndexDamaged` if the file ends early."""
        if not manifest.rows:
            return np.empty((0, manifest.dims), np.float16)
        size = manifest.rows * manifest.dims * 2
        path = self.path / manifest.name("vectors")
        with readable(path), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < size:
                raise IndexDamaged(f"{manifest.name('vectors')} ends early")
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, np.float16).reshape(manifest.rows, manifest.dims)

    def _cut(self, manifest: VectorManifest, kind: str) -> Sealed:
        """Check the committed part of a file, cut off the rest, and return the new seal."""
        path, sealed = self.path / manifest.name(kind), manifest.seals[kind]
        check_content(path, sealed)
        with path.open("r+b") as file:
            file.truncate(sealed.size)
            os.fsync(file.fileno())
        return Sealed(*stamp(path), sealed.crc32)

    def _data_files(self) -> Iterator[tuple[Path, int]]:
        for path in self.path.glob("*-*.bin"):
            if match := _DATA_NAME.fullmatch(path.name):
                yield path, int(match[2])


class Loaded:
    """One generation in a process: ids and codes in memory, which grow as commits arrive, and vectors mapped."""

    def __init__(self, folder: VectorFolder, manifest: VectorManifest) -> None:
        self._folder = folder
        self.generation = manifest.generation
        self._rows = 0
        self._ids = np.empty(0, np.int64)
        self._blocks: list[NDArray[np.uint64]] = []
        self._dead = np.empty(0, np.int64)
        self._order = RowOrder()
        self._direction = manifest.common_direction()
        self._vouched: dict[str, Stamp] = {}

    def advance(self, manifest: VectorManifest, *, writing: bool) -> VectorRows:
        """Return the rows as of a commit of this generation. Only bytes that were not read before are read."""
        self._trust(manifest, writing=writing)
        if not self._rows:
            self._direction = manifest.common_direction()
        self._grow(manifest)
        vectors = self._folder.map_vectors(manifest)
        return VectorRows(
            self._ids[: self._rows], tuple(self._blocks), vectors, self._live(), self._direction, self._order
        )

    def _trust(self, manifest: VectorManifest, *, writing: bool) -> None:
        """Check files that changed since the commit: a writer may be appending, or something else touched them.

        Raise `IndexDamaged` if there is a newer commit, or the content of a file differs.
        """
        doubtful = self._folder.doubtful(manifest, self._vouched)
        if not doubtful:
            return
        if writing:
            self._vouch(manifest, doubtful)
            return
        with suppress(Busy), writer_lock(self._folder.path, timeout=0):
            if self._folder.manifest() != manifest:
                raise IndexDamaged("a newer commit exists")
            self._vouch(manifest, doubtful)

    def _vouch(self, manifest: VectorManifest, kinds: list[str]) -> None:
        for kind in kinds:
            path = self._folder.path / manifest.name(kind)
            stamp_before = stamp(path)
            check_content(path, manifest.seals[kind])
            self._vouched[path.name] = stamp_before

    def _grow(self, manifest: VectorManifest) -> None:
        """Read the rows that were committed since. Raise `IndexDamaged` if the files do not fit each other."""
        words = code_words(manifest.dims)
        ids = np.frombuffer(self._folder.read(manifest, "ids", self._rows * 8), np.int64)
        dead = np.frombuffer(self._folder.read(manifest, "dead", len(self._dead) * 8), np.int64)
        codes = np.frombuffer(self._folder.read(manifest, "codes", self._rows * words * 8), np.uint64)
        if len(ids) != manifest.rows - self._rows or len(codes) != len(ids) * words:
            raise IndexDamaged("the files of the index do not have the same number of rows")
        if len(self._dead) + len(dead) != manifest.dead or (
            len(dead) and not 0 <= dead.min() <= dead.max() < manifest.rows
        ):
            raise IndexDamaged("the list of removed rows does not fit the index")
        self._add_ids(ids)
        self._add_codes(codes.reshape(len(ids), words))
        self._dead = np.concatenate([self._dead, dead])
        self._rows = manifest.rows

    def _add_ids(self, ids: Ids) -> None:
        total = self._rows + len(ids)
        if total > len(self._ids):
            grown = np.empty(total + total // 4, np.int64)
            grown[: self._rows] = self._ids[: self._rows]
            self._ids = grown
        self._ids[self._rows : total] = ids

    def _add_codes(self, codes: NDArray[np.uint64]) -> None:
        done = 0
        while done < len(codes):
            place = (self._rows + done) % BLOCK
            if place == 0:
                self._blocks.append(np.empty((codes.shape[1], BLOCK), np.uint64))
            part = codes[done : done + BLOCK - place]
            self._blocks[-1][:, place : place + len(part)] = part.T
            done += len(part)

    def _live(self) -> Mask | None:
        if not len(self._dead):
            return None
        live = np.ones(self._rows, np.bool_)
        live[self._dead] = False
        return live


class Append:
    """A batch of new rows and removals. Leaving the block without `commit` takes back what was written."""

    def __init__(self, folder: VectorFolder, manifest: VectorManifest) -> None:
        self._folder, self._manifest = folder, manifest
        self._committed = manifest.seals
        self._seals = dict(manifest.seals)
        self._direction = manifest.common_direction()
        self._files: dict[str, int] = {}

    def __enter__(self) -> Append:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            for file in self._files.values():
                closing.callback(os.close, file)  # also where a disk that fails lets nothing be cut off
            for kind, file in self._files.items():
                if os.fstat(file).st_size != self._committed[kind].size:
                    os.ftruncate(file, self._committed[kind].size)

    @property
    def rows(self) -> int:
        """Return the number of rows, those of this batch included."""
        return self._manifest.rows

    def set_direction(self, direction: Floats, sampled: int) -> None:
        """Fix the common direction of a generation, before its first row."""
        stored = direction.tobytes()
        self._direction, self._manifest = direction, replace(self._manifest, direction=stored, sampled=sampled)

    def add(self, ids: Ids, vectors: Halves) -> None:
        """Write new rows."""
        for start in range(0, len(ids), BLOCK):
            part = vectors[start : start + BLOCK]
            self._write("vectors", part.tobytes())
            self._write("codes", codes_of(widen(part), self._direction).tobytes())
        self._write("ids", ids.tobytes())
        self._manifest = replace(self._manifest, rows=self._manifest.rows + len(ids))

    def bury(self, rows: Ids) -> None:
        """Mark rows as dead."""
        self._write("dead", rows.tobytes())
        self._manifest = replace(self._manifest, dead=self._manifest.dead + len(rows))

    def commit(self, position: int) -> VectorManifest:
        """Flush everything to the disk, then write the manifest that commits it, and return that."""
        for kind, file in self._files.items():
            os.fsync(file)
            self._seals[kind] = self._seals[kind]._replace(mtime_ns=os.fstat(file).st_mtime_ns)
        self._committed = self._seals  # from here on the new manifest may be in place, even if an error follows
        return self._folder.commit(replace(self._manifest, position=position, seals=self._seals))

    def _write(self, kind: str, data: bytes) -> None:
        if not data:
            return
        if kind not in self._files:
            self._files[kind] = os.open(self._folder.path / self._manifest.name(kind), os.O_WRONLY | os.O_CREAT, 0o666)
        sealed = self._seals[kind]
        _write_at(self._files[kind], data, sealed.size)
        self._seals[kind] = Sealed(sealed.size + len(data), sealed.mtime_ns, zlib.crc32(data, sealed.crc32))


def _write_at(file: int, data: bytes, offset: int) -> None:
    """Write all of the data at an offset: one call to the system may take only a part of it."""
    left = memoryview(data)
    while left:
        written = os.pwrite(file, left, offset)
        left, offset = left[written:], offset + written
