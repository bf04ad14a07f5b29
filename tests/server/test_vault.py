"""A folder of notes and code as people have them, over HTTP: read, filtered, walked, and no secret told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.library import Library
from commonplace.settings import Settings
from serving import environment_of, process

Call = Callable[..., dict[str, Any]]
LOCKS = "---\ntags: [ops]\ncreated: 2024-03-05\nrating: 7\n---\n# Locks\n\nLeases last thirty seconds. #urgent\n"
FILES = {
    "ops/Locks.md": LOCKS.encode(),
    "ops/archive/Paging.md": b"# Paging\n\nWho is woken at night.\n",
    "alt/Brücke.txt": "Die Brücke führt über die Straße zum großen Café.\n".encode("cp1252"),
    "compose.yaml": b"broker:\n  image: rabbit\n",
    "keys.md": b"# Keys\n\nhunter2\n",
    ".gitignore": b"keys.md\n",
}


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    root, home = tmp_path_factory.mktemp("notes") / "vault", tmp_path_factory.mktemp("home")
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
        library.add_folder(Path(root))
    with process(environment_of(home)) as server:

        def post(tool: str, **given: Any) -> dict[str, Any]:
            answer = httpx.post(server.address.removesuffix("/mcp") + f"/api/v1/tools/{tool}", json=given, timeout=30)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        yield post


def test_folders_and_tags_are_walked(call: Call) -> None:
    def places(at: str) -> list[str]:
        return [entry["at"] for entry in call("browse", at=at)["entries"]]

    assert places("document/vault") == ["document/vault/alt", "document/vault/ops", "docs://vault/compose.yaml"]
    assert places("document/vault/ops") == ["document/vault/ops/archive", "docs://vault/ops/Locks.md"]
    assert places("tags") == ["tags/ops", "tags/urgent"]
    assert places("tags/urgent") == ["docs://vault/ops/Locks.md"]


def test_a_search_is_held_to_tags_properties_times_and_paths_and_says_what_is_not_there(call: Call) -> None:
    rated = {"key": "rating", "operator": "gte", "value": 7}
    for filters in ({"tags": ["ops"]}, {"where": [rated]}, {"path": "vault/ops"}, {"created_to": "2024-03-06"}):
        found = call("search", query="leases", mode="lexical", **filters)
        assert [result["uri"] for result in found["results"]] == ["docs://vault/ops/Locks.md"]
    assert call("search", query="leases", tags=["opss"])["notes"][-1] == 'Nothing has the tag "opss". Did you mean ops?'


def test_an_old_encoding_and_settings_are_read_and_what_git_ignores_is_not(call: Call) -> None:
    for query, uri in (("Straße Café", "docs://vault/alt/Br%C3%BCcke.txt"), ("rabbit", "docs://vault/compose.yaml")):
        assert call("search", query=query, mode="lexical")["results"][0]["uri"] == uri
    assert call("search", query="hunter2", mode="lexical")["results"] == []
