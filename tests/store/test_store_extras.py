"""The store's contract: vectors, attachments, jobs and settings.

1. A vector belongs to what was embedded, not to where it stands: it is shared, moves, and goes with its last passage.
2. What has no vector yet is known, oldest change first.
3. An attachment's bytes are kept once and go with the last item that has them.
4. A job is claimed by one at a time, and by another when its lease has run out.
5. A setting that two settle at once has one value.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import InvalidInput
from commonplace.ingest.prepare import prepare
from commonplace.model import Draft, chunk_id
from commonplace.store.attachments import Attachments
from commonplace.store.base import Store
from commonplace.store.chunks import Chunks
from commonplace.store.dialect import CLOCK, Rendered, Tuned, for_postgres
from commonplace.store.embeddings import Embeddings
from commonplace.store.items import Items
from commonplace.store.job_queue import JobQueue
from commonplace.store.postgres import server_session
from commonplace.store.rows import Attachment, Job, Model
from commonplace.store.sqlite import file_session
from commonplace.store.stored_settings import StoredSettings
from opening import open_store

TEA = Draft("note", "tea", body="Oolong.")
ONE, TWO = np.array([1, 0], np.float16).tobytes(), np.array([0, 1], np.float16).tobytes()


def put(store: Store, *drafts: Draft) -> list[Any]:
    return store.drawer(Items).put([prepare(draft) for draft in drafts])


def key_of(store: Store, item_id: int) -> bytes:
    return store.drawer(Chunks).of(item_id)[0].vector_key


@pytest.fixture
def model(store: Store) -> Model:
    return store.drawer(Embeddings).add_model("fingerprint", "tiny", 2)


# vectors


def test_a_model_is_added_once_and_found_by_its_fingerprint(store: Store, model: Model) -> None:
    assert (
        store.drawer(Embeddings).add_model("fingerprint", "other name", 3)
        == model
        == store.drawer(Embeddings).model("fingerprint")
    )
    assert store.drawer(Embeddings).models() == [model]
    assert store.drawer(Embeddings).model("nothing") is None


def test_a_vector_is_shared_by_all_passages_that_say_the_same(store: Store, model: Model) -> None:
    a, b = put(store, TEA, replace(TEA, key="copy"))
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    ids, vectors = store.drawer(Embeddings).vectors_of(model.id, [b.id, a.id])
    assert ids.tolist() == [chunk_id(b.id, 0), chunk_id(a.id, 0)]
    assert vectors.tolist() == [[1, 0], [1, 0]]
    assert [(c.op, c.item_id) for c in store.changes(2, 9)] == [("embed", a.id), ("embed", b.id)]
    assert store.drawer(Embeddings).unembedded(model, model.position, 9)[0] == []


def test_a_vector_survives_a_move_and_goes_with_the_last_passage(store: Store, model: Model) -> None:
    a = put(store, TEA)[0]
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    put(store, replace(TEA, metadata={"moved": True}))
    b = put(store, replace(TEA, parent="elsewhere"))[0]
    store.drawer(Items).delete([a.id])
    assert store.drawer(Embeddings).total(model.id) == 1
    assert store.drawer(Embeddings).unembedded(model, model.position, 9)[0] == []
    put(store, replace(TEA, parent="elsewhere", body="Green."))
    assert store.drawer(Embeddings).total(model.id) == 0
    assert [chunk.item_id for chunk in store.drawer(Embeddings).unembedded(model, model.position, 9)[0]] == [b.id]
    assert store.check() == []


def test_what_lacks_a_vector_comes_in_the_order_it_was_written(store: Store, model: Model) -> None:
    a, b, c = put(store, TEA, replace(TEA, key="b", body="b"), replace(TEA, key="c", body="c"))
    put(store, replace(TEA, body="rewritten"))
    assert [chunk.item_id for chunk in store.drawer(Embeddings).unembedded(model, model.position, 9)[0]] == [
        a.id,
        b.id,
        c.id,
    ]
    assert [chunk.item_id for chunk in store.drawer(Embeddings).unembedded(model, model.position, 2)[0]] == [a.id, b.id]
    store.drawer(Embeddings).add(model, [(key_of(store, b.id), ONE)])
    assert [chunk.item_id for chunk in store.drawer(Embeddings).unembedded(model, model.position, 9)[0]] == [a.id, c.id]


def test_a_model_s_position_skips_what_is_done_and_never_goes_back(store: Store, model: Model) -> None:
    a = put(store, TEA)[0]
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    store.drawer(Embeddings).set_position(model, store.last_change())
    store.drawer(Embeddings).set_position(model, 1)
    level = store.drawer(Embeddings).model("fingerprint")
    assert level is not None
    assert level.position == 2
    b = put(store, replace(TEA, key="b", body="b"))[0]
    assert [chunk.item_id for chunk in store.drawer(Embeddings).unembedded(level, level.position, 9)[0]] == [b.id]


def test_a_vector_for_a_passage_that_is_gone_is_dropped(store: Store, model: Model) -> None:
    store.drawer(Embeddings).add(model, [(b"unknown", ONE)])
    assert store.last_change() == 0
    assert store.check() == []


def test_a_vector_that_was_there_already_is_no_change(store: Store, model: Model) -> None:
    a = put(store, TEA)[0]
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), TWO)])
    assert store.last_change() == 2
    assert store.drawer(Embeddings).vectors_of(model.id, [a.id])[1].tolist() == [[1, 0]]


def test_vectors_of_a_model_that_was_dropped_are_not_kept(store: Store, model: Model) -> None:
    a = put(store, TEA)[0]
    store.drawer(Embeddings).drop_model(model.id)
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    assert store.last_change() == 1
    assert store.check() == []


def test_two_models_never_mix(store: Store, model: Model) -> None:
    other = store.drawer(Embeddings).add_model("other", "other", 2)
    a = put(store, TEA)[0]
    store.drawer(Embeddings).add(model, [(key_of(store, a.id), ONE)])
    assert store.drawer(Embeddings).total(other.id) == 0
    assert len(store.drawer(Embeddings).unembedded(other, other.position, 9)[0]) == 1
    store.drawer(Embeddings).drop_model(model.id)
    assert store.drawer(Embeddings).models() == [other]
    ids, vectors = store.drawer(Embeddings).vectors_of(model.id, [a.id])
    assert (len(ids), len(vectors)) == (0, 0)
    assert store.check() == []


@given(st.lists(st.tuples(st.sampled_from("pde"), st.integers(0, 3), st.integers(0, 2)), max_size=20))
def test_after_any_writes_every_passage_has_a_vector_or_is_waiting_for_one(
    backend: str, tmp_path_factory: pytest.TempPathFactory, ops: list[tuple[str, int, int]]
) -> None:
    store = open_store(backend, tmp_path_factory.mktemp("vectors"))
    try:
        model = store.drawer(Embeddings).add_model("f", "m", 2)
        for op, key, text in ops:
            found = store.drawer(Items).find("note", "", str(key))
            if op == "p":
                put(store, Draft("note", str(key), body=f"text {text}"))
            elif op == "d" and found:
                store.drawer(Items).delete([found.id])
            elif op == "e":
                store.drawer(Embeddings).add(
                    model,
                    [(c.vector_key, ONE) for c in store.drawer(Embeddings).unembedded(model, model.position, 1)[0]],
                )
        assert (
            store.drawer(Embeddings).total(model.id)
            + len(store.drawer(Embeddings).unembedded(model, model.position, 99)[0])
            == store.drawer(Chunks).total()
        )
        assert store.check() == []
    finally:
        store.close()


# attachments


def picture(data: bytes, media_type: str = "image/png") -> Attachment:
    return Attachment(hashlib.sha256(data).digest(), media_type, data)


def test_attachments_come_back_identical_and_in_order(store: Store) -> None:
    item = put(store, TEA)[0]
    given = [(picture(b"b"), {"n": 1}), (picture(b"a"), {}), (picture(b"b"), {"n": 2})]
    store.drawer(Attachments).attach(item.id, given)
    assert store.drawer(Attachments).of(item.id) == given
    store.drawer(Attachments).attach(item.id, given[1:2])
    assert store.drawer(Attachments).of(item.id) == given[1:2]


def test_bytes_are_kept_once_and_go_with_the_last_item(store: Store) -> None:
    a, b = put(store, TEA, replace(TEA, key="b"))
    for item in (a, b):
        store.drawer(Attachments).attach(item.id, [(picture(b"same"), {})])
    store.drawer(Items).delete([a.id])
    assert store.drawer(Attachments).of(a.id) == []
    assert len(store.drawer(Attachments).of(b.id)) == 1
    store.drawer(Attachments).attach(b.id, [])
    assert store.drawer(Attachments).of(b.id) == []
    assert store.check() == []


def test_an_attachment_of_nothing_or_with_a_wrong_hash_is_refused_whole(store: Store) -> None:
    item = put(store, TEA)[0]
    store.drawer(Attachments).attach(item.id, [(picture(b"kept"), {})])
    with pytest.raises(InvalidInput, match="Store the item first"):
        store.drawer(Attachments).attach(99, [(picture(b"x"), {})])
    with pytest.raises(InvalidInput, match="SHA-256"):
        store.drawer(Attachments).attach(
            item.id, [(picture(b"new"), {}), (Attachment(b"wrong", "image/png", b"x"), {})]
        )
    assert store.drawer(Attachments).of(item.id) == [(picture(b"kept"), {})]
    assert store.check() == []


# jobs


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def __str__(self) -> str:
        """As a part of a statement: PostgreSQL tells the time itself."""
        return str(self.now)

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    def at_the_clock(query: str | Tuned) -> Rendered:
        rendered = for_postgres(query)
        return rendered._replace(text=rendered.text.replace(CLOCK, str(clock)))

    monkeypatch.setattr(file_session, "now_micros", clock)
    monkeypatch.setattr(server_session, "for_postgres", at_the_clock)
    return clock


def test_a_job_is_claimed_once_oldest_first(store: Store, clock: Clock) -> None:
    first = store.drawer(JobQueue).enqueue("embed", {"n": 1})
    store.drawer(JobQueue).enqueue("embed", {"n": 2})
    store.drawer(JobQueue).enqueue("other", {})
    claimed = store.drawer(JobQueue).claim("embed", 10)
    assert claimed == Job(first, "embed", {"n": 1}, 1)
    second = store.drawer(JobQueue).claim("embed", 10)
    assert second is not None
    assert second.payload == {"n": 2}
    assert store.drawer(JobQueue).claim("embed", 10) is None
    store.drawer(JobQueue).finish(claimed)
    clock.advance(11)
    again = store.drawer(JobQueue).claim("embed", 10)
    assert again is not None
    assert (again.id, again.attempts) == (second.id, 2)


def test_who_lost_a_lease_neither_frees_nor_ends_the_work_of_who_has_it_now(store: Store, clock: Clock) -> None:
    store.drawer(JobQueue).enqueue("embed", {})
    late = store.drawer(JobQueue).claim("embed", 10)
    clock.advance(11)
    current = store.drawer(JobQueue).claim("embed", 10)
    assert late is not None
    assert current is not None
    store.drawer(JobQueue).fail(late, "too slow", retry_s=0)
    store.drawer(JobQueue).finish(late)
    assert store.drawer(JobQueue).claim("embed", 10) is None
    store.drawer(JobQueue).finish(current)
    clock.advance(11)
    assert store.drawer(JobQueue).claim("embed", 10) is None


def test_the_same_bytes_may_go_by_two_media_types(store: Store) -> None:
    (item,) = put(store, Draft("note", "a"))
    one, two = picture(b"same"), replace(picture(b"same"), media_type="application/octet-stream")
    store.drawer(Attachments).attach(item.id, [(one, {}), (two, {})])
    assert [file.media_type for file, _ in store.drawer(Attachments).of(item.id)] == [one.media_type, two.media_type]


def test_a_job_waits_for_its_time_and_for_its_retry(store: Store, clock: Clock) -> None:
    store.drawer(JobQueue).enqueue("embed", {}, delay_s=5)
    assert store.drawer(JobQueue).claim("embed", 10) is None
    clock.advance(5)
    job = store.drawer(JobQueue).claim("embed", 60)
    assert job is not None
    store.drawer(JobQueue).fail(job, "no network", retry_s=30)
    clock.advance(29)
    assert store.drawer(JobQueue).claim("embed", 60) is None
    clock.advance(1)
    assert store.drawer(JobQueue).claim("embed", 60) == replace(job, attempts=2)


def test_a_lease_that_ran_out_is_taken_over(store: Store, clock: Clock) -> None:
    store.drawer(JobQueue).enqueue("embed", {})
    dead = store.drawer(JobQueue).claim("embed", 10)
    clock.advance(9.9)
    assert store.drawer(JobQueue).claim("embed", 10) is None
    clock.advance(0.1)
    taken = store.drawer(JobQueue).claim("embed", 10)
    assert dead is not None
    assert taken == replace(dead, attempts=2)


def test_what_a_clock_that_was_ahead_put_off_or_held_is_due_when_it_is_right_again(store: Store, clock: Clock) -> None:
    year = 365 * 86_400
    clock.advance(year)
    held, waiting = store.drawer(JobQueue).enqueue("embed", {}), store.drawer(JobQueue).enqueue("embed", {})
    assert store.drawer(JobQueue).claim("embed", 10)
    clock.advance(-year)
    taken = [store.drawer(JobQueue).claim("embed", 10), store.drawer(JobQueue).claim("embed", 10)]
    assert [(job.id, job.attempts) for job in taken if job] == [(held, 2), (waiting, 1)]
    assert store.drawer(JobQueue).claim("embed", 10) is None


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
@pytest.mark.parametrize("apart_s", [-3600, 3600])
def test_servers_whose_clocks_are_apart_have_one_for_their_work(
    store: Store, apart_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = time.time_ns
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(time, "time_ns", lambda: here() + apart_s * 10**9)
        store.drawer(JobQueue).enqueue("embed", {})
        store.drawer(JobQueue).enqueue("embed", {}, delay_s=1800)
        held = store.drawer(JobQueue).claim("embed", 60)
    assert held is not None
    assert store.drawer(JobQueue).claim("embed", 60) is None, "one is held and the other is not due"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(time, "time_ns", lambda: here() + apart_s * 10**9)
        store.drawer(JobQueue).fail(held, "no network", retry_s=0)
    assert store.drawer(JobQueue).claim("embed", 60) == replace(held, attempts=2)


# settings


@pytest.mark.parametrize("value", [None, True, 3, "é", [1, {"a": None}], {"k": 1.5}])
def test_a_setting_is_what_it_was_set_to(store: Store, value: Any) -> None:
    assert store.drawer(StoredSettings).get("x") is None
    store.drawer(StoredSettings).set("x", "before")
    store.drawer(StoredSettings).set("x", value)
    assert store.drawer(StoredSettings).get("x") == value


def test_a_setting_settles_once(store: Store) -> None:
    assert store.drawer(StoredSettings).settle("x", 1) == 1
    assert store.drawer(StoredSettings).settle("x", 2) == 1
    store.drawer(StoredSettings).set("x", 3)
    assert store.drawer(StoredSettings).settle("x", 4) == 3
