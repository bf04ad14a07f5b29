"""Pulling: (1) only the files wanted travel; (2) what is there is whole and right; (3) a failure says what to do."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from filelock import FileLock
from wheel_registry import JSON_INDEX, MODEL, TOKENIZER, WHEEL, Site, entry, publish, serving, wheel

from commonplace.errors import DownloadFailed, InvalidInput, NotFound
from commonplace.models import CatalogEntry, cache, catalog, find, installed, web
from commonplace.models.pull import pull


def no_leftovers(folder: Path) -> bool:
    return not [path for path in folder.iterdir() if not path.name.endswith(".lock")]


@pytest.mark.parametrize("index", ["json", "html"])
@pytest.mark.parametrize("ranges", [True, False])
def test_the_files_arrive_whatever_the_registry_can_do(index: str, ranges: bool, tmp_path: Path) -> None:
    with serving(Site(ranges=ranges)) as site:
        publish(site, wheel(), index=index)
        folder = pull(entry(), tmp_path, f"{site.url}/simple/")
    assert folder == tmp_path / "acme-1.2"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "model.onnx": MODEL,
        "tokenizer.json": TOKENIZER,
    }


def test_the_rest_of_the_wheel_does_not_travel(site: Site, registry: str, tmp_path: Path) -> None:
    pull(entry(), tmp_path, registry)
    assert site.sent < len(wheel()) / 2


def test_a_model_that_is_there_is_not_asked_for_again(site: Site, registry: str, tmp_path: Path) -> None:
    pull(entry(), tmp_path, registry)
    asked = len(site.requests)
    assert pull(entry(), tmp_path, registry) == tmp_path / "acme-1.2"
    assert len(site.requests) == asked


def test_a_damaged_model_is_fetched_again(registry: str, tmp_path: Path) -> None:
    folder = pull(entry(), tmp_path, registry)
    (folder / "model.onnx").write_bytes(b"short")
    pull(entry(), tmp_path, registry)
    assert (folder / "model.onnx").read_bytes() == MODEL


@pytest.mark.parametrize("ranges", [True, False])
def test_progress_rises_to_all_of_it(ranges: bool, site: Site, registry: str, tmp_path: Path) -> None:
    site.ranges = ranges
    calls: list[tuple[int, int]] = []
    pull(entry(), tmp_path, registry, lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1] > 0


def test_a_wheel_for_any_platform_is_preferred(site: Site, registry: str, tmp_path: Path) -> None:
    anywhere = "/files/acme_models-1.2-py3-none-any.whl"
    page = (
        site.files["/simple/acme-models/"][1]
        .decode()
        .replace('"files": [', f'"files": [{{"filename": "{anywhere[7:]}", "url": "{anywhere}"}}, ')
    )
    site.files["/simple/acme-models/"] = (JSON_INDEX, page.encode())
    site.files[anywhere] = site.files.pop(WHEEL)
    pull(entry(), tmp_path, registry)
    assert site.asked(anywhere)


def break_hash(site: Site) -> None:
    publish(site, wheel(model=MODEL[:-1] + b"!"))


def break_length(site: Site) -> None:
    publish(site, wheel(model=MODEL + b"more"))


def break_zip(site: Site) -> None:
    publish(site, b"<html>please log in</html>" * 100)


def break_member(site: Site) -> None:
    publish(site, wheel().replace(b"acme/model/model.onnx", b"acme/other/model.onnx"))


def break_version(site: Site) -> None:
    publish(site, wheel(), path="/files/acme_models-9.9-py3-none-any.whl")


def break_index(site: Site) -> None:
    site.files["/simple/acme-models/"] = (JSON_INDEX, b"{not json")


def break_body(site: Site) -> None:
    site.cut_to = 1000


def break_whole_body(site: Site) -> None:
    site.ranges, site.cut_to = False, 5000


def remove_project(site: Site) -> None:
    del site.files["/simple/acme-models/"]


def remove_wheel(site: Site) -> None:
    del site.files[WHEEL]


def fail_index(site: Site) -> None:
    site.statuses["/simple/acme-models/"] = 500


def refuse_wheel(site: Site) -> None:
    site.statuses[WHEEL] = 403


def redirect_to_a_file(site: Site) -> None:
    site.redirects[WHEEL] = "file:///etc/passwd"


def redirect_to_ftp(site: Site) -> None:
    site.redirects[WHEEL] = "ftp://127.0.0.1/w.whl"


def redirect_for_ever(site: Site) -> None:
    site.redirects[WHEEL] = WHEEL


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (break_hash, "is not the file that was expected"),
        (break_length, "is not the file that was expected"),
        (break_zip, "is not a readable wheel"),
        (break_member, r"holds no acme/model/model\.onnx"),
        (break_version, r"has no wheel of acme-models 1\.2"),
        (break_index, "is not a package index"),
        (break_body, r"ended after 1000 of \d+ bytes"),
        (break_whole_body, r"ended after 5000 of \d+ bytes"),
        (remove_project, "HTTP status 404"),
        (remove_wheel, "HTTP status 404"),
        (fail_index, "HTTP status 500"),
        (refuse_wheel, "HTTP status 403"),
        (redirect_to_a_file, "leads nowhere"),
        (redirect_to_ftp, "not an http or https address"),
        (redirect_for_ever, "leads nowhere"),
    ],
)
def test_a_failure_says_so_and_leaves_nothing(
    harm: Callable[[Site], None], sentence: str, site: Site, registry: str, tmp_path: Path
) -> None:
    harm(site)
    with pytest.raises(DownloadFailed, match=sentence) as failure:
        pull(entry(), tmp_path, registry)
    assert str(failure.value).endswith(".")
    assert no_leftovers(tmp_path)


def test_a_registry_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"127\.0\.0\.1:9/simple.*Check the network"):
        pull(entry(), tmp_path, "http://127.0.0.1:9/simple")


@pytest.mark.parametrize("address", ["file:///opt/pypi/simple", "/opt/pypi", "http://[broken"])
def test_an_address_that_is_none_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match=r"not an http|cannot be read"):
        pull(entry(), tmp_path, address)


def test_a_connection_that_breaks_once_is_forgiven(site: Site, registry: str, tmp_path: Path) -> None:
    site.cut_to, site.cut_times = 1000, 1
    assert (pull(entry(), tmp_path, registry) / "model.onnx").read_bytes() == MODEL


def test_redirects_are_followed_without_the_password(site: Site, tmp_path: Path) -> None:
    with serving(Site()) as elsewhere:
        elsewhere.files["/w.whl"] = site.files[WHEEL]
        site.redirects[WHEEL] = f"{elsewhere.url}/w.whl"
        pull(entry(), tmp_path, site.url.replace("//", "//me:s%2Fecret@") + "/simple")
    assert site.asked("/simple/acme-models/")[0]["authorization"] == "Basic bWU6cy9lY3JldA=="
    assert site.asked(WHEEL)[0]["authorization"] == "Basic bWU6cy9lY3JldA=="
    assert all("authorization" not in headers for headers in elsewhere.asked("/w.whl"))


def test_an_error_does_not_show_the_password(site: Site, tmp_path: Path) -> None:
    remove_wheel(site)
    with pytest.raises(DownloadFailed) as failure:
        pull(entry(), tmp_path, site.url.replace("//", "//me:secret@") + "/simple")
    assert "secret" not in str(failure.value)


def test_a_certificate_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(DownloadFailed, match=r"none\.pem"):
        pull(entry(), tmp_path, "https://127.0.0.1:9/simple")


def test_a_pull_that_was_killed_counts_for_nothing(registry: str, tmp_path: Path) -> None:
    partial = tmp_path / ".partial-acme-1.2-killed"
    partial.mkdir()
    (partial / "model.onnx").write_bytes(MODEL)
    pull(entry(), tmp_path, registry)
    assert not partial.exists()
    assert (tmp_path / "acme-1.2" / "tokenizer.json").read_bytes() == TOKENIZER


def test_a_pull_that_is_interrupted_leaves_nothing(registry: str, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(entry(), tmp_path, registry, interrupt)
    assert no_leftovers(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(registry: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DownloadFailed, match="could not be written"):
        pull(entry(), tmp_path / "file" / "models", registry)


def test_two_processes_fetch_it_once(site: Site, registry: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(2)
    processes = [context.Process(target=_pull_at, args=(gate, tmp_path, registry)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(site.asked("/simple/acme-models/")) == 1
    assert (tmp_path / "acme-1.2" / "model.onnx").read_bytes() == MODEL


def _pull_at(gate: Barrier, cache_folder: Path, registry: str) -> None:
    gate.wait(timeout=60)
    pull(entry(), cache_folder, registry)


def test_waiting_for_another_process_ends(registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LOCK_TIMEOUT_S", 0.0)
    with FileLock(tmp_path / ".acme-1.2.lock"), pytest.raises(DownloadFailed, match="Another process"):
        pull(entry(), tmp_path, registry)


def test_a_catalogue_name_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Known models: arctic-embed-s"):
        pull("gpt-9", tmp_path)


def test_no_name_is_not_the_folder_one_is_in(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no model called ''"):
        pull("", tmp_path)


def test_what_is_here_without_a_pull_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    assert (pull("static", tmp_path / "cache") / "codes.npy").is_file()
    with pytest.raises(InvalidInput, match="ollama:x is served by its provider, and there is nothing to pull"):
        pull("ollama:x", tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_installed_lists_what_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: str) -> None:
    assert installed(tmp_path / "none") == []
    monkeypatch.setattr(cache, "catalog", lambda: {"acme": entry()})
    assert find("acme", tmp_path) is None
    folder = pull(entry(), tmp_path, registry)
    assert find("acme", tmp_path) == folder
    assert installed(tmp_path) == [cache.Installed("acme", "1.2", folder, len(MODEL) + len(TOKENIZER))]
    (folder / "tokenizer.json").unlink()
    assert installed(tmp_path) == []


def test_the_catalogue_is_complete() -> None:
    assert next(iter(catalog())) == "arctic-embed-s"
    for known in catalog().values():
        assert isinstance(known, CatalogEntry)
        assert {"model", "tokenizer"} == set(known.files)
        assert all(len(file.sha256) == 64 and file.bytes > 0 for file in known.files.values())
        assert known.card.unrelated < known.card.related < 1
        assert known.size < 40e6


def test_a_range_file_reads_like_the_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "BLOCK", 1000)
    monkeypatch.setattr(web, "PIECE", 300)
    body = os.urandom(5000)
    site.files["/data"] = ("application/octet-stream", body)
    remote = web.RangeFile(f"{site.url}/data", len(body))
    for start, size in [(0, 10), (4990, 50), (995, 10), (4000, 900), (10, 1), (5000, 1)]:
        remote.seek(start)
        found = b""
        while len(found) < size and (part := remote.read(size - len(found))):
            found += part
        assert found == body[start : start + size]
