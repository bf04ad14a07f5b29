"""The command that measures search quality."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from commonplace.cli.common import progress_bar
from commonplace.evaluation.judged import find_judged, load_judged
from commonplace.evaluation.judged_run import Through, evaluate
from commonplace.evaluation.report import Run, compare, load_run, render_comparison, render_run, save_run
from commonplace.settings import Settings


@click.command("eval")
@click.argument("collections", nargs=-1, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--sample", type=click.IntRange(min=1), help="At most this many queries of each collection, evenly spaced."
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the run, with every query's values, in a file.",
)
@click.option(
    "--compare",
    "files",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare two saved runs.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the libraries that are measured in this folder, for the next time.",
)
@click.option(
    "--through",
    type=click.Choice(get_args(Through)),
    default="search",
    show_default=True,
    help="Which search is measured: the library's own, or the one of qmd's tools.",
)
def measure(
    collections: tuple[Path, ...],
    sample: int | None,
    save: Path | None,
    files: tuple[Path, Path] | None,
    work: Path | None,
    through: Through,
) -> None:
    """Measure search quality on judged collections.

    A collection is a folder with corpus.jsonl, queries.jsonl and qrels.tsv; a folder of such folders stands for all of
    them. Prints nDCG@10, recall@10 and @100 and MRR@10 with 95 % bootstrap intervals, by words, by meaning and by
    both, and with the options of a search: `expand` searches once more with the words that the best results share,
    `rerank` ranks the best results once more, `full` does both.
    """
    if files:
        click.echo(render_comparison(compare(load_run(files[0]), load_run(files[1]))))
        return
    settings = Settings.load()
    results = []
    if not collections:
        raise click.UsageError("Name a judged collection, or a folder of them.")
    for folder in (inner for given in collections for inner in find_judged(given)):
        with progress_bar(folder.name) as progress:
            judged = load_judged(folder).sample(sample)
            results.append(
                evaluate(
                    judged, settings, work=work, through=through, watch=lambda _, done, total: progress(done, total)
                )
            )
        click.echo(render_run(Run((results[-1],))))
        if save:  # each set takes long, and whoever stops the run keeps those that are done
            save_run(Run(tuple(results)), save)
    if len(results) > 1:
        click.echo(render_run(Run(tuple(results))))


COMMANDS = {"eval": measure}
