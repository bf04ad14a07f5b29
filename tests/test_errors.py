"""Errors: what a caller sees of them is the same in whichever process it is seen."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from commonplace.errors import CommonplaceError, NotFound, RateLimited, VersionConflict, WritesDisabled
from commonplace.kinds.memories.entry import EntryChanged, NoEntry
from commonplace.kinds.tables.edits import PathMissing


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        NotFound("There is no tea.", code="no_tea", argument="uri"),
        VersionConflict("notes://tea", 1, 2),
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
