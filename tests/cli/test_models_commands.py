"""Models on the command line: what there is, what it costs and gains, and going over to another."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from commonplace.library import Library
from commonplace.models import DEFAULT, find
from commonplace.settings import Settings
from commonplace.store.stored_settings import StoredSettings
from kit.forked import forked
from needs import missing
from opening import library_settings, pretend_pulled
from second_model import second_model

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TOPICS = ("kettle", "harbour", "violin", "lichen", "comet", "bread", "engine", "glacier", "falcon", "loom")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    own = {"COMMONPLACE_HOME": str(tmp_path / "home"), "COMMONPLACE_MODELS": str(tmp_path / "models")}
    nowhere = {"COMMONPLACE_REGISTRY": "http://127.0.0.1:9/simple"}  # the discard port: nobody listens
    environment = {**os.environ, **own, **nowhere, "COMMONPLACE_MODEL": "static", "OPENBLAS_NUM_THREADS": "1"}

    def call(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        command = forked(*arguments)
        done = subprocess.run(
            command,
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(30):
        topic = TOPICS[number % 10]
        text = f"# {topic} {number}\n\nA word on the {topic}. Whoever has seen the {topic} at dawn knows it well.\n"
        (folder / f"{number}.md").write_text(text, "utf-8")
    return folder


@pytest.fixture
def other(tmp_path: Path) -> str:
    return second_model(tmp_path)


def test_the_list_says_what_is_here_what_is_used_and_how_to_get_the_rest(run: Run, notes: Path, other: str) -> None:
    listed = run("models", "list").stdout
    assert "static  English; comes with Commonplace, quickest, finds least; 256 dimensions, MIT, 8 MB  (here)" in listed
    assert "(commonplace models pull use-multilingual-v3)" in listed
    assert "in use" not in listed
    run("add", str(notes))
    assert "finds least; 256 dimensions, MIT, 8 MB  (in use)" in run("models", "list").stdout
    run("models", "use", other, "--yes")
    assert f"{other}  named by this library  (in use)" in run("models", "list").stdout
    assert (
        "ollama:bge-m3  named in the settings  (here)"
        in run("models", "list", COMMONPLACE_MODEL="ollama:bge-m3").stdout
    )


@pytest.mark.parametrize("command", [("models", "use"), ("embed", "--model")])
def test_going_over_says_what_it_takes_and_begins_only_when_told(
    run: Run, notes: Path, other: str, command: tuple[str, str]
) -> None:
    run("add", str(notes))
    refused = run(*command, other, code=2).stderr
    assert f"From static to {other}: 30 passages to embed." in refused
    assert "1 MB on disk beside the 1 MB of the old vectors" in refused
    assert "Repeat it with --yes." in refused
    assert "30 of 30 passages embedded with static" in run("status").stdout
    assert f"Embedded: 30 passages with {other}, which answers now" in run(*command, other, "--yes").stdout
    assert f"30 of 30 passages embedded with {other}" in run("status").stdout
    assert "violin" in run("query", "violin").stdout
    assert f"Embedded: 0 passages with {other}" in run(*command, other).stdout


def test_the_first_vectors_are_made_by_the_model_named_without_a_question(run: Run, notes: Path, other: str) -> None:
    run("add", str(notes), "--no-embed")
    assert f"Embedded: 30 passages with {other}" in run("embed", "--model", other).stdout


def test_a_model_is_for_all_of_a_library(run: Run, other: str) -> None:
    assert "not both" in run("embed", "--kind", "note", "--model", other, code=2).stderr


@pytest.mark.parametrize("command", [("models", "use", ""), ("models", "use", " "), ("embed", "--model", "")])
def test_a_model_without_a_name_is_none(run: Run, command: tuple[str, ...]) -> None:
    refused = run(*command, "--yes", code=2)
    assert refused.stderr == "The model has no name. `commonplace models list` says which there are.\n"
    assert refused.stdout == ""


def test_what_a_model_costs_and_gains_is_measured_on_the_library_s_own_texts(run: Run, notes: Path, other: str) -> None:
    run("add", str(notes))
    done = run("models", "test", "static", other, "nonsense", code=1)
    first, second = done.stdout.split(f"{other}\n")
    for told in (first, second):
        assert "CPU), passage " in told
        assert "by words " in told
        assert "30 questions" in told
    assert "There is no model called 'nonsense'" in done.stderr
    assert "30 of 30 passages embedded with static" in run("status").stdout


def test_a_library_with_too_little_in_it_is_told_the_costs_alone(run: Run) -> None:
    done = run("models", "test")
    assert "static\n  query " in done.stdout
    assert "a comparison needs 20" in done.stderr
    assert "by words" not in done.stdout


def test_a_library_in_another_language_is_offered_the_model_that_speaks_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "de"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(
            f"Das Wasser für den Tee soll nicht zu heiß sein, Nummer {number}.", "utf-8"
        )
    added = run("add", str(folder), COMMONPLACE_MODEL="")
    assert "The built-in static model is used until then." in added.stderr
    assert "Pulling use-multilingual-v3" in added.stderr or "127.0.0.1" in added.stderr
    assert (
        "use-multilingual-v3 would find more: `commonplace models pull use-multilingual-v3`, "
        "then `commonplace models use use-multilingual-v3`"
    ) in run("status").stdout


@pytest.mark.model
def test_adding_pulls_the_librarys_model_again_where_it_is_gone(run: Run, notes: Path, tmp_path: Path) -> None:
    pulled = find(DEFAULT, Settings.load().models)
    if pulled is None:
        missing(f"{DEFAULT} is not here. Run `commonplace models pull`.")
    here = tmp_path / "models" / pulled.name
    shutil.copytree(pulled, here)
    run("add", str(notes), COMMONPLACE_MODEL="")
    assert f"embedded with {DEFAULT}" in run("status").stdout
    shutil.rmtree(here)
    (notes / "new.md").write_text("# Zebra\n\nA zebra crosses the river.\n", "utf-8")
    refused = run("add", str(notes), COMMONPLACE_MODEL="", code=69)
    assert "1 new" in refused.stdout
    assert "127.0.0.1:9" in refused.stderr  # the registry of this test, where nobody listens
    assert "zebra" in run("search", "zebra").stdout.lower()


def test_a_model_that_is_gone_or_damaged_is_told(run: Run, notes: Path, other: str, tmp_path: Path) -> None:
    run("add", str(notes))
    run("models", "use", other, "--yes")
    assert "Everything is in order." in run("doctor").stdout
    (Path(other) / "tokenizer.json").write_text("{", "utf-8")
    assert "tokenizer.json cannot be read" in run("doctor", code=1).stdout
    shutil.rmtree(other)
    assert f"There is no model folder {other}." in run("doctor", code=1).stdout


def test_a_pulled_model_that_is_gone_or_damaged_is_told(run: Run, notes: Path, tmp_path: Path) -> None:
    run("add", str(notes))
    home = tmp_path / "home"
    with Library.open(home, settings=library_settings(home)) as library:
        library.store.drawer(StoredSettings).set("model", "arctic-embed-s")
    assert "(in use, but not here: commonplace models pull arctic-embed-s)" in run("models", "list").stdout
    told = "arctic-embed-s is not here any more, so searches go by words only: `commonplace models pull arctic-embed-s`"
    assert told in run("status").stdout
    assert f"The model arctic-embed-s is not in {tmp_path / 'models'}." in run("doctor", code=1).stdout
    pretend_pulled(tmp_path / "models", "arctic-embed-s")
    assert told not in run("status").stdout
    assert "model.onnx is not what was pulled. Delete its folder and pull" in run("doctor", code=1).stdout


def test_what_each_model_is_for_and_what_the_one_in_use_reads_is_said(run: Run) -> None:
    listed = run("models", "list").stdout
    assert "static  English; comes with Commonplace" in listed
    assert "arctic-embed-s  English; the default" in listed
    assert "for a library that is not in English" in listed
    run("call", "remember", '{"text": "Oolong wants water just off the boil."}')
    assert "embedded with static, which reads English" in run("status").stdout
