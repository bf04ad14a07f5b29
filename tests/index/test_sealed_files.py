"""Index files: one writer at a time, replacement that is whole or absent, and seals that notice every change.

1. The lock keeps out other threads and other processes, and a killed holder gives it back.
2. A write that fails leaves the old content and nothing beside it.
3. A seal is kept by an untouched file, broken by one that is missing, cut, longer or altered.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from commonplace.errors import Busy, StorageBroken, StorageFull
from commonplace.index.followers import IndexDamaged
from commonplace.index.sealed_files import (
    PART_SUFFIX,
    check_seal,
    readable,
    room_on_disk,
    seal,
    sweep,
    writable,
    write_atomically,
    writer_lock,
)

HOLD = """
import sys, time
from pathlib import Path
from commonplace.index.sealed_files import writer_lock
with writer_lock(Path(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(60)
"""


def sealed_pair(folder: Path) -> dict[str, list[int]]:
    (folder / "a").write_bytes(b"tea" * 1000)
    (folder / "b").write_bytes(b"")
    return {name: list(entry) for name, entry in seal(folder, ["a", "b"]).items()}


def touch_later(path: Path) -> None:
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**9))


def test_the_lock_keeps_out_another_thread(tmp_path: Path) -> None:
    refused = []

    def knock() -> None:
        try:
            with writer_lock(tmp_path, 0.05):
                pass
        except Busy as busy:
            refused.append(str(busy))

    with writer_lock(tmp_path, 1):
        thread = threading.Thread(target=knock)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert str(tmp_path) in refused[0]
    with writer_lock(tmp_path, 0):
        pass


def test_a_killed_process_gives_the_lock_back(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Busy), writer_lock(tmp_path, 0.05):
            pass
        holder.send_signal(signal.SIGKILL)
    with writer_lock(tmp_path, 5):
        pass


def test_an_error_inside_gives_the_lock_back(tmp_path: Path) -> None:
    with pytest.raises(KeyError), writer_lock(tmp_path, 1):
        raise KeyError
    with writer_lock(tmp_path, 0):
        pass


def test_a_write_replaces_the_whole_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "m", b"a long first version")
    write_atomically(tmp_path / "m", b"second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"m": b"second"}


def test_a_write_that_fails_leaves_the_old_content_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "m", b"first")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match="Free some"), room_on_disk(tmp_path):
        write_atomically(tmp_path / "m", b"second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"m": b"first"}


def test_other_errors_of_the_system_are_not_called_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), room_on_disk(tmp_path):
        raise PermissionError(errno.EACCES, "denied")


def test_a_sweep_takes_what_killed_writers_left(tmp_path: Path) -> None:
    (tmp_path / f"m.1-2{PART_SUFFIX}").write_bytes(b"half")
    (tmp_path / "m").write_bytes(b"whole")
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_seal_survives_json_and_a_copy_of_the_file(tmp_path: Path) -> None:
    made = json.loads(json.dumps(sealed_pair(tmp_path)))
    check_seal(tmp_path, made)
    touch_later(tmp_path / "a")
    check_seal(tmp_path, made)
    check_seal(tmp_path, made, thorough=True)


@pytest.mark.parametrize("content", [None, b"", b"tea" * 999, b"tea" * 1001, b"tee" + b"tea" * 999])
def test_a_seal_is_broken_by(content: bytes | None, tmp_path: Path) -> None:
    made = sealed_pair(tmp_path)
    if content is None:
        (tmp_path / "a").unlink()
    else:
        (tmp_path / "a").write_bytes(content)
        touch_later(tmp_path / "a")
    with pytest.raises(IndexDamaged, match="a"):
        check_seal(tmp_path, made)


def test_only_a_thorough_check_reads_a_file_that_looks_untouched(tmp_path: Path) -> None:
    made = sealed_pair(tmp_path)
    before = (tmp_path / "a").stat()
    (tmp_path / "a").write_bytes(b"tee" + b"tea" * 999)
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    check_seal(tmp_path, made)
    with pytest.raises(IndexDamaged, match="checksum"):
        check_seal(tmp_path, made, thorough=True)


def test_a_file_that_is_known_is_not_read_to_seal_it_again(tmp_path: Path) -> None:
    made = sealed_pair(tmp_path)
    known = {"a": [*made["a"][:2], 12345]}
    assert seal(tmp_path, ["a"], known)["a"].crc32 == 12345
    touch_later(tmp_path / "a")
    assert seal(tmp_path, ["a"], known)["a"].crc32 == made["a"][2]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_may_not_be_written_to_is_said_to_be_so(tmp_path: Path, number: int) -> None:
    with pytest.raises(StorageBroken, match=f"{tmp_path} cannot be written to.*permissions"), writable(tmp_path):
        raise OSError(number, os.strerror(number))
    with pytest.raises(StorageFull), writable(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])
def test_what_a_process_has_run_out_of_is_said_and_is_no_damage(tmp_path: Path, number: int) -> None:
    error = OSError(number, os.strerror(number))
    with pytest.raises(Busy, match=os.strerror(number)), writable(tmp_path), readable(tmp_path):
        raise error


def test_a_disk_that_fails_is_damage_to_who_reads_and_told_to_who_writes(tmp_path: Path) -> None:
    error = OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(IndexDamaged, match="cannot be read"), readable(tmp_path):
        raise error
    with pytest.raises(StorageBroken, match=f"{tmp_path} cannot be written to.*Check that disk"), writable(tmp_path):
        raise error
