"""What fetch, browse, related and search take for the name of an item, called as a door calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.documents.locating import Ambiguous
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.commonplace import PROFILE
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call as Visit

Call = Callable[..., dict[str, Any]]
VIM = "# Vim\n\nAn editor.\n\n## Motions\n\nWords and lines.\n\n### Marks\n\nBy letters.\n"


@pytest.fixture
def call(library: Library) -> Call:
    for key, body in (
        ("Areas/Vim.md", VIM),
        ("Areas/C# 101:2.md", "# C#\n\nSharp.\n"),
        ("ops/README.md", "# Ops\n\nRun it.\n"),
        ("web/readme.txt", "Serve it.\n"),
    ):
        library.put(Draft("document", key, parent="Vault", title=key, body=body, format="markdown"))
    library.put(Draft("note", "kettle", title="Boiling", body="Fill it."))
    registry = Registry(PROFILE, writable=True)

    def run(name: str, **arguments: Any) -> dict[str, Any]:
        tool = registry.find(name)
        assert tool is not None
        answer: dict[str, Any] = json.loads(json.dumps(tool.call(Visit(library), arguments)))
        return answer

    return run


@pytest.mark.parametrize(
    "name",
    [
        "vim",
        "Vim.md",
        "VIM.MD",
        "areas/vim",
        "Vault/Areas/Vim.md",
        "vault/areas/vim",
        "docs://Vault/Areas/Vim.md",
        "docs://vault/areas/VIM.md",
        "DOCS://Vault/Areas/Vim.md",
        "qmd://Vault/Areas/Vim.md",
        "QMD://vault/areas/VIM.md",
        "qmd://vim",
        "docs://vim",
        "/Vault/Areas/Vim.md",
    ],
)
def test_a_document_is_fetched_by_as_much_of_its_path_as_tells_it(call: Call, name: str) -> None:
    assert [item["uri"] for item in call("fetch", uri=name)["items"]] == ["docs://Vault/Areas/Vim.md"]
    assert call("related", uri=name)["results"] is not None
    assert [entry["name"] for entry in call("browse", at=name)["entries"]] == ["Vim", "Motions", "Marks"]


def test_a_part_of_a_document_is_named_behind_any_of_its_names(call: Call) -> None:
    def text(name: str) -> str:
        return str(call("fetch", uri=name)["items"][0]["text"])

    assert text("vim#motions") == text("docs://Vault/Areas/Vim.md#motions")
    assert text("vim#Marks").startswith("### Marks")
    assert text("VIM:5:3") == "## Motions\n\nWords and lines."
    assert text("vim.md:9").startswith("### Marks")
    assert text("vim#chunk-0").startswith("# Vim")
    assert [entry["name"] for entry in call("browse", at="vim#motions")["entries"]] == ["Marks"]
    assert [entry["name"] for entry in call("browse", at="vim:5:5")["entries"]] == ["Marks"]
    assert text("c# 101:2") == "# C#\n\nSharp.\n", "a name counts before a part"
    assert text("c# 101:2.md:3") == "Sharp.\n"
    assert text("c# 101:2.md#c") == "# C#\n\nSharp."


def test_an_end_that_several_paths_have_is_not_guessed_at(call: Call) -> None:
    with pytest.raises(Ambiguous) as said:
        call("browse", at="readme")
    assert str(said.value) == '"readme" may be any of Vault/ops/README.md, Vault/web/readme.txt. Name one of them.'
    assert call("fetch", uri="readme.md")["items"][0]["uri"] == "docs://Vault/ops/README.md"
    both = call("fetch", uri=["readme", "web/readme"])
    assert "Vault/web/readme.txt" in both["missing"][0]["message"]
    assert [item["uri"] for item in both["items"]] == ["docs://Vault/web/readme.txt"]


def test_a_whole_path_is_what_it_says_though_others_end_so(call: Call, library: Library) -> None:
    library.put(Draft("document", "Vault/ops/README.md", parent="old", body="Another."))
    assert call("fetch", uri="vault/ops/readme.md")["items"][0]["uri"] == "docs://Vault/ops/README.md"
    library.put(Draft("document", "ops/readme.md", parent="Vault", body="In small letters."))
    assert call("fetch", uri="Vault/ops/readme.md")["items"][0]["text"] == "In small letters."
    with pytest.raises(Ambiguous, match=r"Vault/ops/README\.md, Vault/ops/readme\.md"):
        call("related", uri="vault/OPS/readme.md")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("vmi", "Did you mean Vault/Areas/Vim.md?"),
        ("docs://Vault/Area/Vim.md#motions", "Did you mean Vault/Areas/Vim.md?"),
        ("readmee.md", "Did you mean Vault/ops/README.md or Vault/web/readme.txt?"),
        ("kettle", "Did you mean notes://kettle?"),
        ("boiling", "Did you mean notes://kettle?"),
        ("nothing of the kind", "Find it with a search."),
        ("notes://ketle", "Find it with a search."),
        (":5", "Find it with a search."),
    ],
)
def test_a_miss_names_the_nearest(call: Call, name: str, near: str) -> None:
    for tool in ("fetch", "related"):
        with pytest.raises(NotFound) as said:
            call(tool, uri=name)
        assert str(said.value) == f"There is no {name.partition('#')[0]}. {near}"


def test_three_at_most_are_suggested(call: Call, library: Library) -> None:
    for number in range(6):
        library.put(Draft("document", f"plan{number}.md", parent="Vault", body="x"))
    with pytest.raises(NotFound, match=r"Did you mean Vault/plan0\.md, Vault/plan1\.md or Vault/plan2\.md\?$"):
        call("fetch", uri="plan.md")


def test_a_collection_is_browsed_and_searched_whatever_its_case(call: Call, library: Library) -> None:
    inside = call("browse", at="document/Vault")
    for place in ("document/vault", "vault", "VAULT", "document/VAULT"):
        assert call("browse", at=place) == inside, place
    found = call("search", query="editor", collections=["vault"])
    assert [hit["uri"] for hit in found["results"]] == ["docs://Vault/Areas/Vim.md"]
    library.put(Draft("memory", "1", parent="vault", body="Of a thread: editor."))
    only = call("search", query="editor", collections=["vault"])
    assert [hit["uri"] for hit in only["results"]] == ["memory://1"], "what is called so to the letter comes first"


def test_what_is_neither_a_kind_nor_a_name_is_said(call: Call) -> None:
    with pytest.raises(InvalidInput, match=r'There is no kind "nothing"\. Browse "" to see what is here\.'):
        call("browse", at="nothing")
    with pytest.raises(InvalidInput, match=r'There is no kind "vmi"\. Did you mean Vault/Areas/Vim\.md\?'):
        call("browse", at="vmi")
    with pytest.raises(InvalidInput, match="at most 10000 characters"):
        call("related", uri="x" * 10_001)
