"""Memories on the page: seen, filtered, written, corrected, replaced, deleted, brought back, exported."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from visiting import READER, get, html, post, visit

from commonplace.errors import InvalidInput, NotFound
from commonplace.kinds.memories.entry import Image, New, Revision
from commonplace.library import Library
from commonplace.settings import Settings
from commonplace.store.attachments import Attachments
from commonplace.store.listing import Listing
from commonplace.web.deletions import MOST, Deletions
from commonplace.web.frame import Download, Redirect, Sheet, StoredFile, rendered


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(
        tmp_path, settings=Settings(home=tmp_path, models=tmp_path / "models", model="static")
    ) as library:
        yield library


def remember(library: Library, *texts: str, thread: str = "main", source: str = "agent", **more: object) -> list[int]:
    stored = library.memories.store([New(thread, source, text, **more) for text in texts])  # type: ignore[arg-type]
    return [one.number for one in stored]  # type: ignore[union-attr]


def texts(library: Library, address: str) -> list[str]:
    return [one["text"] for one in get(library, address).record["memories"]]


def test_an_empty_list_says_so_and_opens_the_form(library: Library) -> None:
    page = html(library, "/memories")
    assert "Nothing does yet." in page
    assert '<details class="write" open>' in page


def test_a_list_has_fifty_a_page_by_number_and_repeats_nothing(library: Library) -> None:
    remember(library, *(f"Memory {number}." for number in range(120)))
    seen, address = list[str](), "/memories"
    while address:
        record = get(library, address).record
        seen += [one["text"] for one in record["memories"]]
        address = record["next"]
        if len(seen) == 50:
            remember(library, "One that came meanwhile.")
    assert seen == [f"Memory {number}." for number in reversed(range(120))]
    assert get(library, "/memories").record["total"] == 121


def test_filters_narrow_by_thread_source_tag_date_and_state(library: Library) -> None:
    old, _ = remember(library, "Old fact.", "Another.", thread="orders", tags=("ops",))
    remember(library, "Said by a person.", source="user")
    remember(library, "Soon gone.", expires_at=datetime.now(UTC) + timedelta(days=3))
    remember(library, "Later gone.", expires_at=datetime.now(UTC) + timedelta(days=90))
    remember(library, "New fact.", thread="orders", supersedes=(old,))
    assert texts(library, "/memories?thread=orders") == ["New fact.", "Another."]
    assert texts(library, "/memories?source=user") == ["Said by a person."]
    assert texts(library, "/memories?tag=OPS") == ["Another."]
    assert texts(library, "/memories?state=expiring") == ["Soon gone."]
    assert texts(library, "/memories?state=replaced") == ["Old fact."]
    assert len(texts(library, "/memories?state=all")) == 6
    assert texts(library, "/memories?to=2001-01-01") == []
    assert len(texts(library, f"/memories?from={datetime.now(UTC).date()}")) == 5
    record = get(library, "/memories?thread=orders&state=all").record
    assert [(one["label"], one["without"]) for one in record["filters"]] == [
        ("orders", "/memories?state=all"),
        ("All", "/memories?thread=orders"),
    ]


@pytest.mark.parametrize("query", ["state=x", "source=x", "from=x", "before=x", "before=99999999999999999999"])
def test_an_address_that_cannot_be_read_is_told_in_a_sentence(query: str, library: Library) -> None:
    with pytest.raises(InvalidInput, match=r"\.$"):
        get(library, f"/memories?{query}")


def test_what_is_written_is_stored_as_said_by_a_person(library: Library) -> None:
    end = (datetime.now(UTC) + timedelta(days=9)).date()
    done = post(
        library, "/memories", text=" The key is with Marta.\n", thread="home", tags="Keys, , Home", expires=str(end)
    )
    assert done == Redirect("/memories?done=stored")
    (row,) = get(library, "/memories?done=stored").record["memories"]
    assert (row["text"], row["thread"], row["source"], row["tags"]) == (
        "The key is with Marta.", "home", "user", ["home", "keys"],
    )  # fmt: skip
    assert row["expires_at"].startswith(str(end))
    assert "Stored." in html(library, "/memories?done=stored")


@pytest.mark.parametrize(
    "form",
    [
        {"text": "  "},
        {"text": "x", "expires": "2001-01-01"},
        {"text": "x", "expires": "soon"},
        {"text": "x", "tags": "t" * 201},
        {"text": "x", "thread": "t" * 201},
    ],
)
def test_a_form_with_a_mistake_comes_back_as_typed_with_what_is_wrong(form: dict[str, str], library: Library) -> None:
    shown = post(library, "/memories", **form)
    assert isinstance(shown, Sheet)
    assert shown.status == 400
    page = rendered(shown, visit(library, "/memories"))
    assert 'aria-describedby="new-problem"' in page
    assert 'id="new-problem" role="alert"' in page
    assert shown.beside["typed"]["text"] == form["text"]
    assert library.store.drawer(Listing).counts().get("memory", 0) == 0


def test_a_correction_keeps_what_was_before_and_shows_the_difference(library: Library) -> None:
    (number,) = remember(library, "The staging database is wiped every Sunday night.", tags=("ops",))
    done = post(
        library,
        f"/memories/{number}/correct",
        text="The staging database is wiped every Saturday night.",
        tags="ops, db",
        version="1",
    )
    assert done == Redirect(f"/memories/{number}?done=corrected")
    record = get(library, f"/memories/{number}").record
    assert record["text"] == "The staging database is wiped every Saturday night."
    (past,) = record["past"]
    assert [piece for piece in past["changes"] if piece[0] != "same"] == [["gone", "Sunday"], ["new", "Saturday"]]
    assert past["other"] == "The tags changed."
    assert "<del>" in html(library, f"/memories/{number}")


def test_texts_with_little_in_common_are_shown_whole(library: Library) -> None:
    (number,) = remember(library, "Releases are cut on Thursdays.")
    library.memories.revise([Revision(number, text="Nadia is allergic to shellfish.")])
    (past,) = get(library, f"/memories/{number}").record["past"]
    assert [what for what, _ in past["changes"]] == ["gone", "same", "new"]


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(library: Library) -> None:
    (number,) = remember(library, "First.")
    library.memories.revise([Revision(number, text="Theirs.")])
    shown = post(library, f"/memories/{number}/correct", text="Mine.", version="1")
    assert (shown.status, shown.record["text"], shown.beside["typed"]["text"]) == (409, "Theirs.", "Mine.")
    again = post(library, f"/memories/{number}/correct", text="Mine.", version=str(shown.beside["typed"]["version"]))
    assert isinstance(again, Redirect)
    assert get(library, f"/memories/{number}").record["text"] == "Mine."


def test_a_replacement_leaves_the_one_before_to_be_seen(library: Library) -> None:
    (number,) = remember(library, "Three retries.", thread="payments")
    done = post(library, f"/memories/{number}/replace", text="Four retries.")
    newer = int(urlsplit(done.location).path.split("/")[-1])
    assert texts(library, "/memories") == ["Four retries."]
    assert get(library, f"/memories/{newer}").record["supersedes"] == [number]
    assert f'<a href="/memories/{newer}">memory {newer}</a>' in html(library, f"/memories/{number}")


def test_a_deletion_is_undone_as_if_it_had_not_been(library: Library) -> None:
    old, number = remember(library, "Old.", "A fact.", tags=("ops",), metadata={"by": "ann"})
    library.memories.revise([Revision(number, text="A better fact.", images=(Image(b"\x89PNG", "image/png"),))])
    remember(library, "Newer.", supersedes=(old,))
    before = [get(library, f"/memories/{one}").record for one in (old, number)]
    done = post(library, "/memories/delete", only=str(number))
    query = parse_qs(urlsplit(done.location).query)
    assert (query["done"], query["n"]) == (["deleted"], ["1"])
    page = html(library, done.location)
    assert "Deleted 1 memory." in page
    assert "A better fact." not in page
    assert f"memory://{number}" not in [hit.uri for hit in library.search("better fact").hits]
    with pytest.raises(NotFound, match="no memory"):
        get(library, f"/memories/{number}")
    assert post(library, "/memories/undo", undo=query["undo"][0]) == Redirect("/memories?done=restored")
    assert [get(library, f"/memories/{one}").record for one in (old, number)] == before
    assert [hit.uri for hit in library.search("better fact").hits][:1] == [f"memory://{number}"]
    assert len(library.store.drawer(Attachments).of(library.get(f"memory://{number}").id)) == 1
    with pytest.raises(InvalidInput, match="no longer be undone"):
        post(library, "/memories/undo", undo=query["undo"][0])
    assert "can no longer be undone" in html(library, done.location)


def test_many_are_deleted_only_after_their_number_was_confirmed(library: Library) -> None:
    numbers = remember(library, *(f"Memory {number}." for number in range(7)), thread="orders")
    remember(library, "Stays.")
    chosen = [str(number) for number in numbers[:3]]
    asked = post(library, "/memories/delete", number=chosen)
    assert (asked.record["count"], asked.title) == (3, "Delete 3 memories?")
    page = rendered(asked, visit(library, "/memories"))
    assert '<button class="main" name="confirmed" value="3">Delete 3 memories</button>' in page
    assert library.store.drawer(Listing).counts()["memory"] == 8
    done = post(library, "/memories/delete", number=chosen, confirmed="3")
    assert "n=3" in done.location
    assert library.store.drawer(Listing).counts()["memory"] == 5


def test_all_that_match_are_counted_again_before_they_go(library: Library) -> None:
    remember(library, *(f"Memory {number}." for number in range(7)), thread="orders")
    remember(library, "Stays.")
    asked = post(library, "/memories/delete", every="1", thread="orders")
    assert asked.record["count"] == 7
    remember(library, "Came meanwhile.", thread="orders")
    again = post(library, "/memories/delete", every="1", thread="orders", confirmed="7")
    assert again.record["count"] == 8  # it is asked again
    done = post(library, "/memories/delete", every="1", thread="orders", confirmed="8")
    assert parse_qs(urlsplit(done.location).query)["thread"] == ["orders"]
    assert texts(library, "/memories") == ["Stays."]
    undo = parse_qs(urlsplit(done.location).query)["undo"][0]
    post(library, "/memories/undo", undo=undo)
    assert len(texts(library, "/memories")) == 9


def test_nothing_selected_and_numbers_that_are_none_are_refused(library: Library) -> None:
    (number,) = remember(library, "One.")
    for form in ({}, {"number": "99"}, {"only": "x"}, {"only": "99"}, {"number": ["1", "x"]}):
        with pytest.raises(InvalidInput, match=r"\.$"):
            post(library, "/memories/delete", **form)
    assert texts(library, "/memories") == ["One."]
    assert number


def test_the_latest_deletions_can_be_undone(library: Library) -> None:
    numbers = remember(library, *(f"Memory {number}." for number in range(MOST + 1)))
    deletions = library.part(Deletions)
    names = [deletions.delete(library.memories, [number])[0] for number in numbers]
    assert names[0] not in deletions
    assert not deletions.undo(names[0])
    assert all(deletions.undo(name) for name in names[1:])
    assert library.store.drawer(Listing).counts()["memory"] == MOST


def test_an_export_has_what_the_filter_shows_and_can_be_imported(library: Library, tmp_path: Path) -> None:
    remember(library, "Ordered.", thread="orders", tags=("ops",))
    remember(library, "Other.")
    download = get(library, "/memories/export?thread=orders")
    assert isinstance(download, Download)
    (line,) = download.text.splitlines()
    assert json.loads(line)["body"] == "Ordered."
    with Library.open(tmp_path / "other", settings=library.settings) as other:
        assert other.import_([line]) == 1
        assert texts(other, "/memories") == ["Ordered."]


def test_a_reader_sees_no_form(library: Library) -> None:
    (number,) = remember(library, "One.")
    for address in ("/memories", f"/memories/{number}", "/sources", "/health"):
        page = html(library, address, who=READER, is_owner=False)
        assert 'method="post"' not in page.replace('action="/logout" method="post"', "")
        assert "Delete" not in page


def test_what_has_expired_is_not_shown(library: Library) -> None:
    (number,) = remember(library, "Short.", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
    deadline = time.monotonic() + 20
    while texts(library, "/memories"):
        assert time.monotonic() < deadline
    with pytest.raises(NotFound):
        get(library, f"/memories/{number}")


def test_pictures_of_a_memory_are_shown_and_other_files_are_saved(library: Library) -> None:
    images = (Image(b"\x89PNG", "image/png"), Image(b"<svg onload=alert(1)>", "image/svg+xml"))
    (number,) = remember(library, "With pictures.", images=images)
    page = html(library, f"/memories/{number}")
    assert f'<img class="picture" src="/memories/{number}/images/0" alt="Picture 1 of memory {number}">' in page
    assert f'<a href="/memories/{number}/images/1">Save the file</a> (image/svg+xml, 21 B)' in page
    assert get(library, f"/memories/{number}/images/0") == StoredFile(b"\x89PNG", "image/png")
    for address in (f"/memories/{number}/images/2", "/memories/99/images/0", f"/memories/{number}/images/99999999"):
        with pytest.raises(NotFound):
            get(library, address)
