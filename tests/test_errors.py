"""Errors: what a caller sees of them is the same in whichever process it is seen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from commonplace.errors import (
    Command,
    CommonplaceError,
    NotFound,
    RateLimited,
    Sentence,
    VersionConflict,
    WritesDisabled,
)
from commonplace.kinds.memories.entry import EntryChanged, NoEntry
from commonplace.kinds.tables.edits import PathMissing


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        NotFound("There is no tea.", code="no_tea", argument="uri"),
        VersionConflict("notes://tea", 1, 2),
        NotFound("There are none; `", Command("embed"), "` makes them.", code="no_tea"),
        RateLimited("search", 3.5),
        WritesDisabled("remember"),
        EntryChanged(7, 1, 2),
        NoEntry(7),
        PathMissing(("a", "b"), 1),
    ],
)
def test_an_error_of_another_process_says_the_same_here(
    error: CommonplaceError, again: Callable[[CommonplaceError], CommonplaceError]
) -> None:
    """A pool of processes hands errors on like this, and waits for ever for one that cannot be."""
    here = again(error)
    assert type(here) is type(error)
    assert str(here) == str(error)
    assert vars(here) == vars(error)
    assert here.sentence.parts == error.sentence.parts


def test_a_sentence_can_be_read_as_it_is_and_typed_by_a_door_also_as_part_of_another() -> None:
    error = NotFound("there are none; `", Command("embed"), "` makes them.")
    note = Sentence("Words only. ", error.reason.capitalized(), "!")
    assert (note, str(error)) == (
        "Words only. There are none; `commonplace embed` makes them!",
        "there are none; `commonplace embed` makes them.",
    )
    assert (
        note.typed(lambda command: f"qmd {command.arguments}") == "Words only. There are none; `qmd embed` makes them!"
    )
    assert NotFound("Nothing `qmd embed` says.").sentence.typed(lambda command: "other") == "Nothing `qmd embed` says."
    assert str(Command("embed", "qmd")) == "qmd embed"
