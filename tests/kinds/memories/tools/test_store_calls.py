"""`store_context` and `store_context_batch`, sentence by sentence of contracts/memory.md, sections 3, 4 and 8."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from memory_calls import Tools, entry, refused, stored, there

from commonplace.errors import Unavailable
from commonplace.ingest.embedding import Embedding
from commonplace.store.attachments import Attachments
from commonplace.store.items import Items
from commonplace.store.listing import Listing

PNG = base64.b64encode(b"\x89PNG not really").decode()
IMAGE = {"data": PNG, "mime_type": "image/png"}


def test_a_store_says_what_it_stored(tools: Tools) -> None:
    answer = tools("store_context", thread_id="  plans ", source="agent", text="  keep  blanks\n")
    assert answer == {
        "success": True,
        "context_id": 1,
        "thread_id": "plans",
        "message": "Context stored (embedding generated)",
        "uri": "memory://1",
        "version": 1,
        "deduplicated": False,
    }
    kept = entry(tools, 1)
    assert (kept.item.body, kept.row.thread, kept.row.source) == ("  keep  blanks\n", "plans", "agent")


def test_without_vectors_nothing_is_said_of_them(open_tools: Callable[..., Tools]) -> None:
    tools = open_tools(memory_embedding=False)
    assert tools("store_context", thread_id="t", source="user", text="a")["message"] == "Context stored"
    assert tools.library.embedding.chosen is None


def test_images_are_counted_in_the_message(tools: Tools) -> None:
    answer = tools("store_context", thread_id="t", source="user", text="a", images=[IMAGE, IMAGE])
    assert answer["message"] == "Context stored with 2 images (embedding generated)"
    assert entry(tools, 1).row.images == 2


def test_ids_rise_and_are_never_reused(tools: Tools) -> None:
    first, second = stored(tools, text="a"), stored(tools, text="b")
    tools("delete_context", context_ids=[second])
    assert stored(tools, text="c") == second + 1 > first


def test_tags_are_normalised(tools: Tools) -> None:
    number = stored(tools, tags=["  Zeta  Tau ", "alpha", "ALPHA", " ", "E\u0301te\u0301"])
    assert sorted(entry(tools, number).item.tags) == ["alpha", "zeta tau", "été"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"thread_id": " \n"}, "thread_id cannot be empty or whitespace"),
        ({"text": " \t\n"}, "text cannot be empty or whitespace"),
        ({"text": ""}, "text cannot be empty or whitespace"),
        ({"source": "bot"}, 'Invalid arguments for store_context: source must be "user" or "agent"'),
        (
            {"source": "bot", "colour": 1},
            'Invalid arguments for store_context: source must be "user" or "agent"; '
            "colour is not a parameter of this tool",
        ),
        ({"text": "a\0b"}, "text contains U+0000, which cannot be stored"),
        ({"text": "a\ud800"}, "text contains a lone surrogate, which cannot be stored"),
        ({"thread_id": "a\0"}, "thread_id contains U+0000, which cannot be stored"),
        ({"tags": ["\0"]}, "tags contains U+0000, which cannot be stored"),
        ({"metadata": {"a": ["\0"]}}, "metadata contains U+0000, which cannot be stored"),
        ({"metadata": {"\udfff": 1}}, "metadata contains a lone surrogate, which cannot be stored"),
        ({"expires_at": "2020-01-01"}, "expires_at must be in the future"),
        ({"expires_at": "2999-01-01", "ttl_seconds": 5}, "Use expires_at or ttl_seconds, not both"),
        ({"ttl_seconds": 0}, "Invalid arguments for store_context: ttl_seconds must be at least 1"),
        ({"supersedes": 99}, "Context entry with ID 99 not found"),
        ({"supersedes": "x"}, "supersedes must be a positive integer"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is(tools: Tools, wrong: dict[str, Any], sentence: str) -> None:
    given = {"thread_id": "t", "source": "user", "text": "text", **wrong}
    assert refused(tools("store_context", **given)) == sentence
    assert there(tools) == []


# deduplication


def test_the_same_text_again_updates_the_entry(tools: Tools) -> None:
    number = stored(tools, text="same", metadata={"a": 1}, tags=["x"], images=[IMAGE])
    before = entry(tools, number).item
    answer = tools("store_context", thread_id="t", source="user", text="  same\n")
    assert answer | {"context_id": number, "version": 2, "deduplicated": True, "message": "Context updated"} == answer
    after = entry(tools, number)
    assert (after.item.body, after.item.metadata, after.item.tags, after.row.images) == ("same", {"a": 1}, ("x",), 1)
    assert after.item.created_at == before.created_at
    assert after.item.updated_at > before.updated_at


def test_what_is_given_again_replaces_also_when_it_is_empty(tools: Tools) -> None:
    number = stored(tools, text="same", metadata={"a": 1}, tags=["x"], images=[IMAGE])
    stored(tools, text="same", metadata={}, tags=[], images=[])
    after = entry(tools, number)
    assert (after.item.metadata, after.item.tags, after.row.images) == ({}, (), 0)
    assert tools.library.store.check() == []


def test_an_answer_in_between_makes_it_a_new_entry(tools: Tools) -> None:
    first = stored(tools, text="same")
    stored(tools, text="an answer", source="agent")
    assert stored(tools, text="same") != first


def test_only_the_newest_of_a_thread_and_source_is_a_twin(tools: Tools) -> None:
    first = stored(tools, text="same")
    assert stored(tools, text="same", thread_id="other") != first
    assert stored(tools, text="same", source="agent") != first
    stored(tools, text="later")
    assert stored(tools, text="same") != first


def test_expired_and_superseded_entries_are_no_twins(tools: Tools) -> None:
    older = stored(tools, text="same")
    newer = stored(tools, text="better", supersedes=older)
    tools("delete_context", context_ids=[newer])
    assert stored(tools, text="same") == older  # it came back with its successor's deletion
    stored(tools, text="best", thread_id="elsewhere", supersedes=[older])
    again = stored(tools, text="same")
    assert again != older
    assert stored(tools, text="same") == again


def test_a_summary_is_kept_and_said_to_be(tools: Tools) -> None:
    number = stored(tools, text="same")
    item = entry(tools, number).item
    _summarise(tools, number, "short")
    assert item.fields.get("summary") is None
    answer = tools("store_context", thread_id="t", source="user", text="same")
    assert answer["message"] == "Context updated (summary preserved)"
    assert entry(tools, number).summary == "short"


def _summarise(tools: Tools, number: int, summary: str) -> None:
    from commonplace.ingest.prepare import prepare
    from commonplace.model import Draft

    item = entry(tools, number).item
    fields = {**item.fields, "summary": summary}
    tools.library.store.drawer(Items).put(
        [prepare(Draft("memory", item.key, item.parent, body=item.body or "", fields=fields))]
    )


# images


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        ([{}], 'Image 0 is missing required "data" field'),
        ([IMAGE, {"data": " "}], 'Image 1 has empty "data" field'),
        ([{"data": "a"}], "Image 0 has invalid base64 encoding"),
        ([{"data": "YQ"}], "Image 0 has invalid base64 encoding"),
        ([{"data": "YQ==é"}], "Image 0 has invalid base64 encoding"),
        ([{"data": "YWJj="}], "Image 0 has invalid base64 encoding"),
        ([{"data": "YWJj===="}], "Image 0 has invalid base64 encoding"),
        ([{"data": "Y-_="}], "Image 0 has invalid base64 encoding"),
        ([{"data": PNG, "mime_type": "text/html"}], 'Image 0 has unsupported mime_type "text/html"'),
        ([{"data": "data:text/html;base64,YQ=="}], 'Image 0 has unsupported mime_type "text/html"'),
        ([{"data": "data:image/png,YQ=="}], "Image 0 has invalid base64 encoding"),
        ([{"data": PNG, "colour": 1}], 'Image 0 has unknown field "colour"'),
        ([IMAGE] * 101, "At most 100 images per entry"),
        ([{"data": base64.b64encode(bytes((10 << 20) + 1)).decode()}], "Image 0 exceeds 10MB limit"),
    ],
)
def test_an_invalid_image_stores_nothing(tools: Tools, images: list[Any], sentence: str) -> None:
    assert refused(tools("store_context", thread_id="t", source="user", text="a", images=images)) == sentence
    assert there(tools) == []


def test_image_sizes_are_inclusive_and_added_up(open_tools: Callable[..., Tools]) -> None:
    tools = open_tools(memory_max_image_mb=1, memory_max_images_mb=2)
    whole = {"data": base64.b64encode(bytes(1 << 20)).decode()}
    assert stored(tools, images=[whole, whole]) == 1
    answer = tools("store_context", thread_id="t", source="user", text="b", images=[whole, whole, IMAGE])
    assert refused(answer) == "Total image size exceeds 2MB limit"


def test_images_come_back_as_they_were_and_are_kept_once(tools: Tools) -> None:
    broken = "\r\n".join((PNG[:7], PNG[7:]))
    images = [
        {"data": broken, "mime_type": "application/octet-stream", "metadata": {"taken": "here"}},
        {"data": f"data:image/webp;base64,{PNG}", "metadata": "a note"},
        {"data": PNG},
    ]
    number = stored(tools, images=images)
    kept = tools.library.store.drawer(Attachments).of(entry(tools, number).row.item_id)
    assert [(file.media_type, fields) for file, fields in kept] == [
        ("application/octet-stream", {"metadata": {"taken": "here"}}),
        ("image/webp", {"metadata": "a note"}),
        ("image/png", {}),
    ]
    assert {file.data for file, _ in kept} == {base64.b64decode(PNG)}
    assert tools.library.store.check() == []


# expiry and supersession


def test_an_expired_entry_is_gone_from_everything(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    number = stored(tools, ttl_seconds=60)
    lasting = stored(tools, text="lasting", expires_at="2999-12-31")
    assert there(tools) == [number, lasting]
    import time

    later = time.time_ns() + 61 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert tools.library.memories.entries([number]) == []
    assert there(tools) == [lasting]
    assert tools.library.store.drawer(Listing).counts()["memory"] == 1


def test_a_date_alone_expires_at_its_end(tools: Tools) -> None:
    number = stored(tools, expires_at="2999-12-31")
    last = datetime(2999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    expected = (last - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert entry(tools, number).row.expires_at == expected


def test_supersession_is_known_from_both_sides_and_ends_with_the_successor(tools: Tools) -> None:
    first, second = stored(tools, text="a"), stored(tools, text="b")
    third = stored(tools, text="c", supersedes=[first, f"memory://{second}"])
    assert entry(tools, third).row.supersedes == (first, second)
    assert entry(tools, first).row.superseded_by == third
    tools("delete_context", context_ids=[third])
    assert entry(tools, first).row.superseded_by is None


# batches


def test_a_batch_stores_in_order_and_says_so(tools: Tools) -> None:
    entries = [{"thread_id": "t", "source": "user", "text": text} for text in ("a", "b", "b ")]
    answer = tools("store_context_batch", entries=entries)
    assert [result["context_id"] for result in answer.pop("results")] == [1, 2, 2]
    assert answer == {
        "success": True, "total": 3, "succeeded": 3, "failed": 0, "message": "Stored 3/3 entries successfully",
    }  # fmt: skip


BAD = [
    ({"source": "user", "text": "a"}, "Missing required field: thread_id"),
    ({"thread_id": None, "source": "user", "text": "a"}, "Missing required field: thread_id"),
    ({"thread_id": "t", "text": "a"}, 'Missing or invalid source (must be "user" or "agent")'),
    ({"thread_id": "t", "source": "bot", "text": "a"}, 'Missing or invalid source (must be "user" or "agent")'),
    ({"thread_id": "t", "source": "user"}, "Missing required field: text"),
    ({"thread_id": "t", "source": "user", "text": "a", "colour": 1}, "Unknown field: colour"),
    ({"thread_id": "t", "source": "user", "text": " "}, "text cannot be empty or whitespace"),
    ({"thread_id": "t", "source": "user", "text": "a", "images": [{}]}, 'Image 0 is missing required "data" field'),
    ({"thread_id": "t", "source": "user", "text": "a", "supersedes": 7}, "Context entry with ID 7 not found"),
    ("nothing", "Entry must be an object"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD)
def test_one_bad_entry_fails_an_atomic_batch_and_only_itself_in_another(tools: Tools, bad: Any, sentence: str) -> None:
    good = {"thread_id": "t", "source": "user", "text": "good"}
    failed = tools("store_context_batch", entries=[good, bad])
    assert refused(failed) == f"Validation failed for 1 entries. First error at index 1: {sentence}"
    assert there(tools) == []
    answer = tools("store_context_batch", entries=[bad, good], atomic=False)
    assert (answer["success"], answer["message"]) == (False, "Stored 1/2 entries successfully")
    assert answer["results"] == [
        {"index": 0, "success": False, "context_id": None, "error": sentence},
        {"index": 1, "success": True, "context_id": 1, "error": None},
    ]


def test_all_problems_of_an_atomic_batch_are_in_the_details(tools: Tools) -> None:
    entries = [{"thread_id": "t", "source": "user", "text": "a"}, *(bad for bad, _ in BAD[:3])]
    error = tools("store_context_batch", entries=entries)["error"]
    assert error["code"] == "invalid_argument"
    assert error["message"].startswith("Validation failed for 3 entries. First error at index 1: Missing required")
    assert error["details"]["errors"] == [{"index": n + 1, "error": said} for n, (_, said) in enumerate(BAD[:3])]


@pytest.mark.parametrize(
    ("entries", "sentence"), [([], "entries must contain at least one item"), ([{}] * 101, "at most 100 items")]
)
def test_a_batch_has_between_one_and_a_hundred_entries(tools: Tools, entries: list[Any], sentence: str) -> None:
    assert sentence in refused(tools("store_context_batch", entries=entries))


def test_a_batch_of_one_leaves_what_a_single_call_leaves(tools: Tools) -> None:
    given = {"source": "user", "text": "a", "tags": ["x"], "metadata": {"k": 1}, "images": [IMAGE], "ttl_seconds": 99}
    tools("store_context", thread_id="one", **given)
    tools("store_context_batch", entries=[{"thread_id": "two", **given}])
    one, two = (entry(tools, number) for number in (1, 2))
    assert (one.item.metadata, one.item.tags, one.row.images) == (two.item.metadata, two.item.tags, two.row.images)
    assert one.item.fields.keys() == two.item.fields.keys()


# generation


def test_a_provider_that_fails_never_fails_a_store_and_is_left_alone(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def embedder(self: Embedding) -> Any:
        nonlocal asked
        asked += 1
        raise Unavailable("nobody answers")

    monkeypatch.setattr(Embedding, "embedder", embedder)
    for text in ("a", "b"):
        answer = tools("store_context", thread_id="t", source="user", text=text)
        assert answer["message"] == "Context stored (embedding pending)"
    assert asked == 1


def test_in_strict_mode_nothing_is_stored_without_its_vectors(
    open_tools: Callable[..., Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = open_tools(memory_generation="strict")
    number = stored(tools, text="a")
    assert tools.library.embedding.coverage().pending == 0
    with monkeypatch.context() as patch:
        patch.setattr(Embedding, "embedder", lambda self: (_ for _ in ()).throw(Unavailable("nobody answers")))
        error = tools("store_context", thread_id="t", source="user", text="b")["error"]
        assert error["code"] == "generation_failed"
        failed = "Generation failed after exhausting configured retries: embedding: nobody answers"
        assert error["message"] == failed
        batch = tools("store_context_batch", entries=[{"thread_id": "t", "source": "user", "text": "b"}])
        assert refused(batch) == f"{failed}. No data was saved."
        assert tools("update_context", context_id=number, tags=["x"])["success"]
    assert there(tools) == [number]


def test_a_large_batch_embeds_what_it_may_and_leaves_the_rest_pending(tools: Tools) -> None:
    entries = [{"thread_id": "t", "source": "user", "text": f"number {n}"} for n in range(100)]
    tools("store_context_batch", entries=entries)
    assert tools.library.embedding.coverage().embedded == 64
    tools.library.embed()
    assert tools.library.embedding.coverage().pending == 0
