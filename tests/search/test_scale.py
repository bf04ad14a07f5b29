"""What a score says, in every mode: all words of a query, few of them, none; near, and no nearer than strangers.

1. The item that alone has all words of a query is the first, and scores 0.75 at least, by words and with meaning alike.
2. A query of words that no text has, or that many have, scores less than 0.4, and what was guessed is said.
3. Where nothing is close, the answer says so.
4. What is right scores enough on short texts, too; what is unrelated does not.
5. What is like a passage is told from what is not, on a scale of its own.
"""

from __future__ import annotations

import pytest

from commonplace.library import Library
from commonplace.model import Draft, Filter, Mode
from commonplace.search.question import Question, Search
from commonplace.search.scale import CLOSE, NOT_CLOSE
from commonplace.store.items import Items
from opening import ON_FILES
from paraphrases import SETS

WORDY: tuple[Mode, ...] = ("auto", "lexical", "hybrid")
NOTES = {
    "locks": "Leases last thirty seconds.\nLeader election needs fencing tokens, or a paused process writes too late.",
    "sign-in": "A token is refreshed hourly. Tokens expire after a day. Token, token, token.",
    "bread": "Knead the dough and bake it. Nothing is needed but time.",
    "retries": "Each request carries a key, which gives idempotency when a client retries.",
    "requests": "Requests are retried by clients three times, and the same request does no harm.",
    "garden": "Tomatoes need sun and a stake. Water them in the morning.",
    "vienna": "The night train leaves at nine. Book a couchette early.",
}
DOCUMENTS = Filter(kinds=("document",))


@pytest.fixture
def noted(library: Library) -> Library:
    library.put_many(
        Draft("document", key, parent="notes", title=key.title(), body=body) for key, body in NOTES.items()
    )
    library.embed()
    return library


def asked(library: Library, *searches: Search, limit: int = 10) -> list[tuple[str, float]]:
    """The hits of qmd's tools: their keys and scores."""
    plain = len({search.text for search in searches}) == 1
    hits = library.hybrid.find(Question(searches, DOCUMENTS, plain=plain, limit=limit, rerank=len(searches) == 2)).hits
    keys = {item.id: item.key for item in library.store.drawer(Items).get([hit.item_id for hit in hits])}
    return [(keys[hit.item_id], hit.score) for hit in hits]


@pytest.mark.parametrize(
    ("query", "key"), [("fencing tokens", "locks"), ("idempotency", "retries"), ("couchette early", "vienna")]
)
def test_the_item_that_alone_has_all_words_is_the_first_and_surely_about_them(
    noted: Library, query: str, key: str
) -> None:
    for mode in WORDY:
        for more in ({}, {"rerank": True}):
            best = noted.search(query, mode=mode, **more).hits[0]  # type: ignore[arg-type]
            assert (best.item.key, best.score >= 0.75) == (key, True), mode
    for searches in ((Search("lex", query),), (Search("lex", query), Search("vec", query))):
        (first, score), *others = asked(noted, *searches)
        assert (first, score >= 0.75) == (key, True)
        assert all(score > other for _, other in others)


def test_by_words_and_with_meaning_the_same_hit_scores_much_the_same(noted: Library) -> None:
    for query in ("fencing tokens", "idempotency", "couchette early"):
        scores = [noted.search(query, mode=mode).hits[0].score for mode in WORDY]
        assert max(scores) - min(scores) <= 0.1


@pytest.mark.parametrize("query", ["qzxv nothing", "the of and", "qzxv wrtlgh", "is a"])
def test_words_that_say_nothing_score_little(noted: Library, query: str) -> None:
    for mode in (*WORDY, "semantic"):
        assert all(hit.score < 0.4 for hit in noted.search(query, mode=mode).hits)
    searches = Search("lex", query), Search("vec", query)
    for some in ((searches[0],), (searches[1],), searches):
        assert all(score < 0.4 for _, score in asked(noted, *some))


def test_a_word_that_nearly_every_text_has_scores_little(library: Library) -> None:
    library.put_many(Draft("note", str(n), body=f"The system handles report {n}.") for n in range(60))
    library.embed()
    for mode in WORDY:
        assert all(hit.score < 0.4 for hit in library.search("system", mode=mode).hits)


def test_what_was_guessed_is_said(noted: Library) -> None:
    begun, misspelled = noted.search("couch knaed", mode="lexical").notes[:2]
    assert begun == 'No text has "couch", so words that begin so were looked for.'
    assert misspelled == 'No text has "knaed", so words spelled much like that were looked for.'
    assert noted.search("idempotency", mode="lexical").notes == ()


def test_an_answer_without_hits_says_which_words_are_unknown(noted: Library) -> None:
    page = noted.search("qzxv vwxq", mode="lexical")
    assert (page.hits, [note.split(",")[0] for note in page.notes]) == ((), ['No text has "qzxv" or "vwxq"'])


@pytest.mark.parametrize("mode", WORDY)
def test_where_nothing_is_close_the_answer_says_so(noted: Library, mode: Mode) -> None:
    for query in ("who won the chess tournament in 1972", "fan noise of a laptop", "quarterly revenue forecast"):
        page = noted.search(query, mode=mode)
        assert not page.hits or page.hits[0].score < CLOSE
        assert not page.hits or NOT_CLOSE in page.notes
    assert NOT_CLOSE not in noted.search("fencing tokens", mode=mode).notes


@ON_FILES
@pytest.mark.parametrize("pairs", SETS.values(), ids=SETS)
def test_right_answers_on_short_texts_are_above_the_least_score_of_vsearch(
    library: Library, pairs: tuple[tuple[str, str], ...]
) -> None:
    library.put_many(Draft("document", str(n), parent="notes", body=text) for n, (text, _) in enumerate(pairs))
    library.embed()
    kept = [dict(asked(library, Search("vec", query))).get(str(n), 0.0) >= 0.3 for n, (_, query) in enumerate(pairs)]
    assert sum(kept) >= 10


ALIKE = {
    "tea": (
        "Oolong tea wants water just off the boil and three minutes in the pot. Rinse the leaves once before brewing.",
        "Brew green tea with water well below the boil, two minutes in the pot, or the leaves turn bitter.",
    ),
    "backup": (
        "The database is copied to a second disk every night, and the last seven backups are kept.",
        "A nightly job backs the database up to another disk; once a month a backup is restored to be sure.",
    ),
    "garden": (
        "Tomatoes need a sunny bed and a stake. Water the plants in the morning and pinch out the side shoots.",
        "Plant tomatoes in full sun, tie them to a stake and water at the roots, never on the leaves.",
    ),
    "train": (
        "The night train to Vienna leaves at nine. A couchette has to be booked early, the dining car is closed.",
        "For the sleeper train to Vienna book a couchette weeks ahead; the train departs in the evening.",
    ),
}
"""Pairs of notes that say much the same. Those of two names have nothing to do with each other."""


@pytest.fixture
def paired(library: Library) -> Library:
    for name, (one, other) in ALIKE.items():
        library.put(Draft("document", name, parent="notes", body=one))
        library.put(Draft("document", f"{name}-too", parent="notes", body=other))
    library.put(Draft("document", "locks", parent="notes", body=NOTES["locks"]))
    return library


@pytest.mark.parametrize("embedded", [True, False])
def test_what_is_like_a_note_is_told_from_what_is_not(paired: Library, embedded: bool) -> None:
    if embedded:
        paired.embed()
    for name in ALIKE:
        scores = {hit.item.key: hit.score for hit in paired.related(f"docs://notes/{name}").hits}
        assert scores.pop(f"{name}-too") > 0.6
        assert all(score < 0.35 for score in scores.values())


def test_an_imagined_answer_is_compared_as_a_passage(paired: Library) -> None:
    paired.embed()
    for name, (_, other) in ALIKE.items():
        scores = dict(asked(paired, Search("hyde", other)))
        assert min(scores.pop(name), scores.pop(f"{name}-too")) > 0.6
        assert all(score < 0.35 for score in scores.values())
