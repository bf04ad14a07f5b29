"""An evaluation end to end, on a dozen documents and the shipped static model.

1. Every mode is measured per query, and the right documents are found.
2. A query with a group is asked among its group only.
3. What was embedded is kept; another collection or another model has a library of its own.
4. A run comes back from its file as it was, and two runs are compared over the queries they share.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.errors import InvalidInput
from commonplace.evaluation.judged import JudgedCollection, JudgedDocument, JudgedQuestion
from commonplace.evaluation.judged_run import MODES, evaluate, library_home, suited_to
from commonplace.evaluation.report import CPU, METRICS, NDCG, ModeResult, Run, SetResult, compare, load_run, save_run
from commonplace.library import Library
from commonplace.models import DEFAULT, MULTILINGUAL, open_embedder
from commonplace.settings import Settings
from opening import pretend_pulled

TEXTS = {
    "tea": "Oolong tea wants water just off the boil and three minutes in the pot.",
    "coffee": "Grind coffee beans finely for espresso and coarsely for a press.",
    "bread": "A sourdough loaf rises overnight and bakes under a lid.",
    "cheese": "Cheddar ripens in a cool cellar for a year or more.",
    "rope": "A bowline is a knot that makes a loop which does not slip.",
    "sail": "Reef the mainsail before the wind gets too strong.",
    "anchor": "Let out chain five times as long as the water is deep.",
    "tide": "The tide turns about every six hours with the moon.",
    "roses": "Prune roses in late winter above an outward bud.",
    "compost": "Kitchen scraps and dry leaves turn into compost in a heap.",
    "bees": "Honey bees dance to tell where the flowers are.",
    "mulch": "Mulch keeps the soil moist and the weeds down.",
}
ASKED = {"how long to brew oolong tea": "tea", "which knot makes a loop": "rope", "when to prune roses": "roses"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", models=tmp_path / "models", model="static")


@pytest.fixture
def collection() -> JudgedCollection:
    documents = tuple(JudgedDocument(key, "", text) for key, text in TEXTS.items())
    questions = tuple(JudgedQuestion(f"q {answer}", text, "", {answer: 1}) for text, answer in ASKED.items())
    return JudgedCollection("dozen", documents, questions)


@pytest.fixture
def stated() -> SetResult:
    """A result made by hand, where two modes differ on one query of three."""
    legs = {"lexical": (1.0, 0.5, 0.0), "hybrid": (1.0, 1.0, 0.0)}
    modes = {mode: ModeResult(dict.fromkeys((*METRICS, CPU), values)) for mode, values in legs.items()}
    return SetResult("stated", "static", 3, ("a", "b", "c"), modes)


def test_every_mode_finds_and_is_measured_per_query(collection: JudgedCollection, settings: Settings) -> None:
    result = evaluate(collection, settings)
    assert (result.name, result.model, result.documents) == ("dozen", "static", 12)
    assert result.queries == tuple(question.id for question in collection.questions)
    assert tuple(result.modes) == MODES["search"]
    for measured in result.modes.values():
        assert {len(column) for column in measured.columns.values()} == {3}
        assert set(measured.columns) == {*METRICS, CPU}
        assert measured.mean(NDCG) > 0.8
        assert min(measured.columns[CPU]) > 0


def test_the_searches_of_qmd_are_measured_the_same_way(
    collection: JudgedCollection, settings: Settings, tmp_path: Path
) -> None:
    result = evaluate(collection, settings, work=tmp_path, through="qmd")
    assert tuple(result.modes) == MODES["qmd"]
    assert all(measured.mean(NDCG) > 0.8 for measured in result.modes.values())
    grouped = replace(collection, documents=tuple(replace(one, group="one") for one in collection.documents))
    asked = tuple(replace(question, group="one") for question in collection.questions)
    found = evaluate(replace(grouped, questions=asked), settings, work=tmp_path, through="qmd", modes=["rerank"])
    assert found.modes["rerank"].mean(NDCG) > 0.8


def test_without_a_model_set_a_collection_gets_the_one_its_library_would_choose(
    collection: JudgedCollection, settings: Settings, tmp_path: Path
) -> None:
    unset = replace(settings, model="")
    assert evaluate(collection, unset, work=tmp_path, modes=["semantic"]).model == "static"
    german = JudgedCollection(
        "german", (JudgedDocument("tee", "", "Das Wasser für den Tee soll nicht zu heiß sein."),), ()
    )
    pretend_pulled(settings.models, DEFAULT, MULTILINGUAL)
    assert suited_to(german, unset) == MULTILINGUAL
    assert suited_to(collection, unset) == DEFAULT


def test_a_question_is_asked_among_its_group(collection: JudgedCollection, settings: Settings) -> None:
    twice = [replace(document, id=f"{group}/{document.id}", group=group) for group in ("one", "two")
             for document in collection.documents]  # fmt: skip
    question = JudgedQuestion("q", "which knot makes a loop", "two", {"two/rope": 1})
    result = evaluate(JudgedCollection("twice", tuple(twice), (question,)), settings)
    assert {measured.mean(NDCG) for measured in result.modes.values()} == {1.0}


def test_ids_are_not_searched(settings: Settings) -> None:
    documents = (JudgedDocument("oolong", "", "about something else"), JudgedDocument("d2", "", "oolong tea"))
    asked = JudgedCollection("ids", documents, (JudgedQuestion("q", "oolong", "", {"d2": 1}),))
    assert evaluate(asked, settings, modes=["lexical"]).modes["lexical"].mean("mrr@10") == 1.0


def test_what_was_embedded_is_kept(collection: JudgedCollection, settings: Settings, tmp_path: Path) -> None:
    stages: list[list[str]] = []
    results = []
    for _ in range(2):
        seen: list[str] = []
        results.append(evaluate(collection, settings, work=tmp_path, watch=lambda what, *_: seen.append(what)))  # noqa: B023
        stages.append(list(dict.fromkeys(seen)))
    assert stages == [["store", "embed", *MODES["search"]], [*MODES["search"]]]
    first, second = ({mode: replace_cpu(found) for mode, found in result.modes.items()} for result in results)
    assert first == second


def replace_cpu(measured: ModeResult) -> dict[str, tuple[float, ...]]:
    return {name: values for name, values in measured.columns.items() if name != CPU}


def test_a_run_that_was_killed_is_gone_on_with(
    collection: JudgedCollection, settings: Settings, tmp_path: Path
) -> None:
    def die(what: str, done: int, total: int) -> None:
        if what == "embed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(collection, settings, work=tmp_path, watch=die)
    assert evaluate(collection, settings, work=tmp_path).modes["hybrid"].mean(NDCG) > 0.8


def test_words_alone_need_no_vectors(collection: JudgedCollection, settings: Settings, tmp_path: Path) -> None:
    evaluate(collection, settings, work=tmp_path, modes=["lexical"])
    model = open_embedder("static", settings.models)
    with Library.open(library_home(collection, model, tmp_path), settings=settings) as library:
        assert library.status().coverage.embedded == 0


def test_another_collection_has_another_library_and_another_sample_the_same(
    collection: JudgedCollection, settings: Settings, tmp_path: Path
) -> None:
    model = open_embedder("static", settings.models)
    home = library_home(collection, model, tmp_path)
    more = replace(collection, documents=(*collection.documents, JudgedDocument("new", "", "more")))
    assert library_home(more, model, tmp_path) != home
    assert library_home(collection.sample(1), model, tmp_path) == home


def test_a_run_comes_back_from_its_file_as_it_was(stated: SetResult, tmp_path: Path) -> None:
    run = Run((stated,))
    save_run(run, tmp_path / "new folder" / "run.json")
    assert load_run(tmp_path / "new folder" / "run.json") == run


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "sets": [{"name": "x"}]}', '{"format": 9}']
)
def test_a_file_that_is_no_run_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"run\.json is no stored evaluation"):
        load_run(tmp_path / "run.json")
    with pytest.raises(InvalidInput, match=r"absent\.json is no stored evaluation"):
        load_run(tmp_path / "absent.json")


def test_the_gain_of_fusion_is_measured_against_the_better_leg(stated: SetResult) -> None:
    gain = stated.gain()
    assert stated.better_leg() == "lexical"
    assert gain is not None
    assert gain.difference == pytest.approx(0.5 / 3)
    assert SetResult("x", "static", 0, (), {}).gain() is None


def test_runs_are_compared_over_the_queries_they_share_whatever_their_order(stated: SetResult) -> None:
    later = SetResult("stated", "static", 3, ("c", "d", "a"), {"lexical": stated.modes["hybrid"]})
    found = compare(Run((stated,)), Run((later, replace(later, name="only here"))))
    assert [(row.name, row.mode, row.metric) for row in found] == [("stated", "lexical", name) for name in METRICS]
    assert {(row.queries, row.before, row.after) for row in found} == {(2, 0.5, 0.5)}
    assert found[0].change.difference == 0.0
    assert compare(Run((stated,)), Run((replace(stated, queries=("x", "y", "z")),))) == []


def test_a_stored_run_is_plain_json(stated: SetResult) -> None:
    stored = json.loads(json.dumps(Run((stated,)).to_json()))
    assert stored["sets"][0]["modes"]["lexical"][NDCG] == [1.0, 0.5, 0.0]
