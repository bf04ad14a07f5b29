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
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import Busy
from commonplace.index.files import Sealed, check_content, readable, stamp, sweep, write_atomically, writer_lock
from commonplace.index.follower import IndexDamaged
from commonplace.index.vectors.scan import BLOCK, Floats, Halves, Ids, Mask, RowOrder, Rows, code_words, codes_of, widen
from commonplace.lazy_dataclass import dataclass

FORMAT = 1
MANIFEST = "manifest.json"
KINDS = ("ids", "codes", "vectors", "dead")
_DATA_NAME = re.compile(rf"({'|'.join(KINDS)})-(\d+)\.bin")
_EMPTY = Sealed(0, 0, 0)

Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One commit. `sampled` is how many rows the common direction was taken from."""

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
        return f"{kind}-{self.generation}.bin"

    def common_direction(self) -> Floats:
        found: Floats = np.frombuffer(self.direction, np.float32)
        return found if len(found) else np.zeros(self.dims, np.float32)

    def to_json(self) -> bytes:
        values = asdict(self) | {"format": FORMAT, "direction": base64.b64encode(self.direction).decode("ascii")}
        return json.dumps(values | {"crc32": _crc_of(values)}, indent=1).encode("ascii")

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
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
    """The files of one index and the commit that rules them. Methods that write are for the holder of `writer_lock`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def manifest_stamp(self) -> tuple[int, int, int] | None:
        """Changes with every commit, and costs one `stat` to look at. None: there is no commit."""
        try:
            found = os.stat(f"{self.path}/{MANIFEST}")  # at every search, so no path is made of it
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def manifest(self) -> Manifest | None:
        """The latest commit; None where there never was one."""
        path = self.path / MANIFEST
        with readable(path), suppress(FileNotFoundError):
            return Manifest.from_json(path.read_bytes())
        if any(self._data_files()):
            raise IndexDamaged(f"{self.path / MANIFEST} is missing")
        return None

    def commit(self, manifest: Manifest) -> Manifest:
        write_atomically(self.path / MANIFEST, manifest.to_json())
        return manifest

    def start_over(self, dims: int, fingerprint: str) -> Manifest:
        """Commit an empty index. Other processes see that first, and only then do the old files go."""
        manifest = self.commit(Manifest(self.next_generation(), dims, fingerprint))
        self.remove_others(manifest.generation)
        return manifest

    def next_generation(self) -> int:
        """A generation whose names no process can have open, not even one that knew a deleted folder."""
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

    def prepare(self, manifest: Manifest) -> Manifest:
        """Make the folder ready for an append: nothing in doubt, nothing left over from a writer that was killed.

        A file that was touched is read in full before new bytes are sealed together with what it holds.
        """
        sweep(self.path)
        self.remove_others(manifest.generation)
        doubtful = self.doubtful(manifest)
        if not doubtful:
            return manifest
        seals = {kind: self._cut(manifest, kind) for kind in doubtful}
        return self.commit(replace(manifest, seals={**manifest.seals, **seals}))

    def doubtful(self, manifest: Manifest, vouched: Mapping[str, Stamp] | None = None) -> list[str]:
        """The kinds of file that changed since they were sealed; `IndexDamaged` where one is missing or cut short."""
        found = []
        for kind, sealed in manifest.seals.items():
            if not sealed.size:
                continue
            size, mtime_ns = stamp(self.path / manifest.name(kind))
            if size < sealed.size:
                raise IndexDamaged(f"{manifest.name(kind)} ends {sealed.size - size} bytes early")
            as_sealed = (size, mtime_ns) == sealed[:2]
            if not as_sealed and (vouched or {}).get(manifest.name(kind)) != (size, mtime_ns):
                found.append(kind)
        return found

    def read(self, manifest: Manifest, kind: str, start: int) -> bytes:
        """The committed bytes of a file from `start` on."""
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

    def map_vectors(self, manifest: Manifest) -> Halves:
        if not manifest.rows:
            return np.empty((0, manifest.dims), np.float16)
        size = manifest.rows * manifest.dims * 2
        path = self.path / manifest.name("vectors")
        with readable(path), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < size:
                raise IndexDamaged(f"{manifest.name('vectors')} ends early")
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, np.float16).reshape(manifest.rows, manifest.dims)

    def _cut(self, manifest: Manifest, kind: str) -> Sealed:
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
    """What a process keeps of one generation: ids and codes in memory, grown as commits arrive, vectors mapped."""

    def __init__(self, folder: VectorFolder, manifest: Manifest) -> None:
        self._folder = folder
        self.generation = manifest.generation
        self._rows = 0
        self._ids = np.empty(0, np.int64)
        self._blocks: list[NDArray[np.uint64]] = []
        self._dead = np.empty(0, np.int64)
        self._order = RowOrder()
        self._direction = manifest.common_direction()
        self._vouched: dict[str, Stamp] = {}

    def advance(self, manifest: Manifest, *, writing: bool) -> Rows:
        """The rows as of a commit of this generation. Only bytes that were not read before are read."""
        self._trust(manifest, writing=writing)
        if not self._rows:
            self._direction = manifest.common_direction()
        self._grow(manifest)
        vectors = self._folder.map_vectors(manifest)
        return Rows(self._ids[: self._rows], tuple(self._blocks), vectors, self._live(), self._direction, self._order)

    def _trust(self, manifest: Manifest, *, writing: bool) -> None:
        """Settle files that changed since the commit: a writer may be appending, or something else touched them."""
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

    def _vouch(self, manifest: Manifest, kinds: list[str]) -> None:
        for kind in kinds:
            path = self._folder.path / manifest.name(kind)
            seen = stamp(path)
            check_content(path, manifest.seals[kind])
            self._vouched[path.name] = seen

    def _grow(self, manifest: Manifest) -> None:
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
    """New rows and removals on their way into a commit. Leaving the block without one takes back what was written."""

    def __init__(self, folder: VectorFolder, manifest: Manifest) -> None:
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
        return self._manifest.rows

    def set_direction(self, direction: Floats, sampled: int) -> None:
        """Fix the common direction of a generation, before its first row."""
        stored = direction.tobytes()
        self._direction, self._manifest = direction, replace(self._manifest, direction=stored, sampled=sampled)

    def add(self, ids: Ids, vectors: Halves) -> None:
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

    def commit(self, position: int) -> Manifest:
        """Put everything on the disk, then the manifest that makes it count."""
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
    """Write all of the data: one call to the system may take only a part of it."""
    left = memoryview(data)
    while left:
        written = os.pwrite(file, left, offset)
        left, offset = left[written:], offset + written
