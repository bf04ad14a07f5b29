"""How documents are named.

1. A document's own file, address and docid find it, and nothing else; so do shorter forms that name it alone.
2. Several documents at the step that matched are an error, never a pick.
3. A miss suggests what is near, and says when a rule hides the name.
4. No input raises anything but our errors.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError
from commonplace.kinds.documents.document_names import DocumentNames
from commonplace.library import Library
from commonplace.model import Draft
from commonplace.qmd.tools.file_names import address, locate, suggest
from opening import open_library
from qmd_library import SPECIAL, failure


def file_of(library: Library, given: str) -> str:
    return locate(library, given).name.file


TAKEN = sorted(name for name in SPECIAL if name.endswith(".md"))


@pytest.mark.parametrize("file", TAKEN)
def test_a_document_is_found_by_its_own_file_address_and_docid(words: Library, file: str) -> None:
    docid = hashlib.sha256(file.encode()).hexdigest()[:6]
    for name in (file, address(file), f"#{docid}", docid):
        assert file_of(words, name) == file


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ("2025/plan.md", "notes/2025/plan.md"),
        ("plan.md", "notes/2025/plan.md"),
        ("deep.md", "notes/x/a/b/deep.md"),
        ("b/deep.md", "notes/x/a/b/deep.md"),
        ("a/b/deep.md", "notes/x/a/b/deep.md"),
        ("qmd://notes/2025/plan.md", "notes/2025/plan.md"),
        ("QMD:////notes/2025/plan.md", "notes/2025/plan.md"),
        ("docs://notes/2025/old%20plan.md", "notes/2025/old plan.md"),
        ("DOCS:///notes/2025/plan.md", "notes/2025/plan.md"),
        ("//notes/2025/plan.md", "notes/2025/plan.md"),
        ("qmd://plan.md", "notes/2025/plan.md"),
        ("qmd://notes/2025/plan.md?index=work", "notes/2025/plan.md"),
        ("qmd://notes%2F2025%2Fplan.md", "notes/2025/plan.md"),
        ("notes%2F2025%2Fold%20plan.md", "notes/2025/old plan.md"),
        ("notes/2025/old%2520plan.md", "notes/2025/old plan.md"),
        ("notes/a%20b.md", "notes/a%20b.md"),
        ("qmd://notes/a%2520b.md", "notes/a%20b.md"),
        ("qmd://notes/a%20b.md", "notes/a b.md"),
        ("100% sure.md", "notes/100% sure.md"),
        ("under_score.md", "notes/under_score.md"),
        ("docs/deutsch/Stra\u00dfe.md", "docs/deutsch/Straße.md"),
        ("re\u0301sume\u0301.md", "docs/français/résumé.md"),
        ("東京.md", "docs/日本/東京.md"),
        ("abcdef.md", "notes/abcdef.md"),
    ],
)
def test_shorter_and_encoded_forms_are_accepted(words: Library, given: str, file: str) -> None:
    assert file_of(words, given) == file


def test_a_path_on_disk_under_a_root_is_a_name(words: Library, files: Path) -> None:
    assert file_of(words, str(files / "notes" / "2025" / "plan.md")) == "notes/2025/plan.md"
    code, _ = failure(lambda: locate(words, str(files / "notes" / ".." / "docs" / "emoji 🍵.md")))
    assert code == "not_found"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_around_a_docid_are_dropped(words: Library, quote: str) -> None:
    docid = hashlib.sha256(b"notes/2025/plan.md").hexdigest()[:6]
    assert file_of(words, f"{quote}#{docid}{quote}") == "notes/2025/plan.md"
    assert file_of(words, docid.upper()) == "notes/2025/plan.md"


def test_ids_minted_from_contents_keep_working_and_twins_are_ambiguous(words: Library) -> None:
    plan = hashlib.sha256(SPECIAL["notes/2025/plan.md"].encode()).hexdigest()
    assert file_of(words, f"#{plan[:6]}") == file_of(words, plan) == "notes/2025/plan.md"
    twin = hashlib.sha256(SPECIAL["notes/twin-1.md"].encode()).hexdigest()[:8]
    code, said = failure(lambda: locate(words, f"#{twin}"))
    assert code == "ambiguous"
    assert said == f"Ambiguous docid #{twin}: notes/twin-1.md, notes/twin-2.md. Use one of these paths."


def test_several_documents_are_an_error_that_names_them(words: Library) -> None:
    code, said = failure(lambda: locate(words, "c.md"))
    assert (code, said) == ("ambiguous", "Ambiguous path c.md: notes/a/c.md, notes/b/c.md. Use one of these paths.")


def test_what_is_in_a_package_goes_by_no_name_and_is_in_nobodys_way(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        library.put(Draft("collection", "pkg-1", title="Guide", fields={"package": {}}))
        for number in range(20):
            library.put(Draft("document", f"{number}/readme.md", parent="pkg-1", body="# Theirs"))
        library.put(Draft("document", "readme.md", parent="notes", body="# Ours"))
        assert file_of(library, "readme.md") == "notes/readme.md"
        theirs = hashlib.sha256(b"pkg-1/0/readme.md").hexdigest()[:6]
        for name in ("pkg-1/0/readme.md", "0/readme.md", f"#{theirs}", "qmd://pkg-1/0/readme.md"):
            assert failure(lambda name=name: locate(library, name))[0] == "not_found"  # type: ignore[misc]


def test_at_most_ten_are_named_and_the_rest_counted(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        for number in range(13):
            library.put(Draft("document", f"{number:02}/same.md", parent="notes", body="x"))
        _, said = failure(lambda: locate(library, "same.md"))
    assert said.startswith("Ambiguous path same.md: notes/00/same.md, notes/01/same.md")
    assert said.endswith("notes/09/same.md and 3 more. Use one of these paths.")


def test_a_docid_grows_where_two_documents_share_its_digits(backend: str, tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    for number in range(100_000):
        path = f"{number}.md"
        digits = hashlib.sha256(f"n/{path}".encode()).hexdigest()[:6]
        if digits in seen:
            break
        seen[digits] = path
    with open_library(backend, tmp_path) as library:
        pair = [library.put(Draft("document", key, parent="n", body=key)) for key in (seen[digits], path)]
        docids = library.store.drawer(DocumentNames).docids([item.id for item in pair])
        assert len(set(docids.values())) == 2
        assert all(len(docid) > 6 and docid.startswith(digits) for docid in docids.values())
        for item in pair:
            assert locate(library, f"#{docids[item.id]}").name.item_id == item.id
        assert failure(lambda: locate(library, f"#{digits}"))[0] == "ambiguous"
        library.delete(pair[0].uri)
        assert library.store.drawer(DocumentNames).docids([pair[1].id]) == {pair[1].id: digits}


@pytest.mark.parametrize(
    ("given", "first", "count"),
    [
        ("numbers.md:120", 120, None),
        ("numbers.md:120:40", 120, 40),
        ("numbers.md:0", 1, None),
        ("qmd://notes/numbers.md:7:2", 7, 2),
        (f"#{hashlib.sha256(b'notes/numbers.md').hexdigest()[:6]}:5", 5, None),
        ("numbers.md", None, None),
    ],
)
def test_a_line_suffix_is_told_from_the_name(words: Library, given: str, first: int | None, count: int | None) -> None:
    located = locate(words, given)
    assert (located.name.file, located.first, located.lines) == ("notes/numbers.md", first, count)


def test_a_document_really_called_so_wins_over_the_suffix(backend: str, tmp_path: Path) -> None:
    with open_library(backend, tmp_path) as library:
        for key in ("a", "a:12", "a:12:3"):
            library.put(Draft("document", key, parent="n", body=key))
        assert [locate(library, name)[0].path for name in ("a:12", "a:12:3", "a:13", "a:12:4")] == [
            "a:12", "a:12:3", "a", "a:12",
        ]  # fmt: skip
        assert locate(library, "a:12:4")[1:] == (4, None)


@pytest.mark.parametrize(
    "given", ["C.md", "notes/abc", "bc.md", "..", "notes/../notes/abc.md", "%", "_", "", "#", "//"]
)
def test_what_names_nothing_is_a_miss(words: Library, given: str) -> None:
    assert failure(lambda: locate(words, given))[0] == "not_found"


def test_a_miss_says_so_and_suggests_what_is_near(words: Library) -> None:
    code, said = failure(lambda: locate(words, "notes/2025/paln.md"))
    assert code == "not_found"
    assert said.split("\n")[:4] == [
        "Document not found: notes/2025/paln.md", "", "Did you mean one of these?", "  - notes/2025/plan.md",
    ]  # fmt: skip
    assert failure(lambda: locate(words, "nothing/is/called/remotely/like-this-at-all.xyz"))[1] == (
        "Document not found: nothing/is/called/remotely/like-this-at-all.xyz"
    )


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("PLAN.MD", "notes/2025/plan.md"),
        ("docs/plan.md:10", "notes/2025/plan.md"),
        ("qmd://notes/2025/old%20pln.md", "notes/2025/old plan.md"),
        ("strasse.md", "docs/deutsch/Straße.md"),
        ("numbres.md", "notes/numbers.md"),
    ],
)
def test_suggestions_ignore_case_and_go_by_the_last_component_too(words: Library, given: str, nearest: str) -> None:
    said = failure(lambda: locate(words, given))[1]
    assert said.split("\n")[3] == f"  - {nearest}"
    assert len(said.split("\n")) <= 8


def test_a_name_that_an_ignore_rule_hides_says_which(words: Library, files: Path) -> None:
    said = (
        "Document excluded by ignore rule: notes/drafts/hidden.md\nCollection: notes\n"
        "Matched path: drafts/hidden.md\nIgnore rule: drafts/**"
    )
    on_disk = str(files / "notes/drafts/hidden.md")
    for name in ("notes/drafts/hidden.md", "drafts/hidden.md", "qmd://notes/drafts/hidden.md", on_disk):
        for suffix in ("", ":5", ":5:2"):
            asked = f"{name}{suffix}"
            assert failure(lambda asked=asked: locate(words, asked)) == ("excluded_by_ignore", said)  # type: ignore[misc]


def test_the_rule_that_is_named_is_of_the_collection_that_was_named(backend: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "drafts").mkdir(parents=True)
        (tmp_path / name / "drafts" / "x.md").write_text("# Half", "utf-8")
    with open_library(backend, tmp_path / "home") as library:
        library.folders.add(tmp_path / "a", ignore=["**/x.md"])
        library.folders.add(tmp_path / "b", ignore=["drafts"])
        for name in ("b/drafts/x.md", "qmd://b/drafts/x.md", str(tmp_path / "b/drafts/x.md")):
            code, said = failure(lambda name=name: locate(library, name))  # type: ignore[misc]
            assert (code, said.split("\n")[0]) == (
                "excluded_by_ignore", "Document excluded by ignore rule: b/drafts/x.md",
            )  # fmt: skip


@given(
    st.text(max_size=40) | st.from_regex(r"(qmd://|//|#|/|~/)?[\w%:/.\"'?=#-]{0,30}(:\d{1,20}){0,3}", fullmatch=True)
)
def test_any_text_is_a_name_or_a_miss(words: Library, given: str) -> None:
    with contextlib.suppress(CommonplaceError):
        assert locate(words, given).name.file


components = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)


@given(st.sets(st.lists(components, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8))
def test_whatever_a_document_is_called_its_own_names_find_it(
    backend: str, tmp_path_factory: pytest.TempPathFactory, keys: set[str]
) -> None:
    home = tmp_path_factory.mktemp("named")
    with open_library(backend, home) as library:
        items = [library.put(Draft("document", key, parent="c", title="t", body=f"body {key}")) for key in keys]
        docids = library.store.drawer(DocumentNames).docids([item.id for item in items])
        for item in items:
            file = f"c/{item.key}"
            for name in (file, address(file), f"#{docids[item.id]}"):
                assert locate(library, name).name.item_id == item.id
            assert suggest(library, file)[0] == file or file in suggest(library, file, most=20)
