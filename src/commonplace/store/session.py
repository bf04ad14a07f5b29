"""What a drawer speaks to: one space of either database. All that differs between the two is behind it.

A drawer is a class of 4 to 20 methods for one noun's rows, the same for both databases. It is opened by its class
(`store.drawer(SessionMarks)`), when it is first asked for, and there is one of it for each open store:

    class Cups(Drawer):
        @reads
        def cups(self, of: Sequence[int]) -> dict[int, str]:
            return dict(self._db.all("select id, name from cups where id in each(:ids int)", {"ids": of}))

        @writes
        def rename(self, cup: int, name: str) -> bool:
            query = "update cups set name = :name where id = :id returning id"
            return self._db.row(query, {"id": cup, "name": name}) is not None

- A public method has one decorator. `reads`: one statement. `reads_together`: several, all of one state. `writes`: a
  transaction, or a savepoint in the one under way, which is undone alone when it raises. `writes_within`: the same
  without a savepoint, where whoever called undoes the whole. `writes_unordered`: rows that are not of the log, so that
  on a server nobody waits for anybody. A private method has none, and runs in the transaction of whoever calls it.
- Statements are written once, in the dialect of `store/dialect.py`. One that has to stay tuned is a `Tuned(sqlite=…,
  postgres=…)`, which `all`, `row`, `run` and `run_all` take in a statement's place; a part of one is chosen with
  `self._db.tuned(PART)`. Where they are long they stand in `sqlite.py` and `postgres.py` beside the drawer, and the
  drawer says `Tuned(sqlite.PAGE, postgres.PAGE)`. `self._db.dialect` says which it is where the steps differ.
- Round trips: on a server `run` and `run_all` are only sent, and `all` and `row` wait for an answer, with all that was
  sent before. So put what is sent first, ask for many rows in one statement (`in each(…)`, `rows(…) as r`), check with
  `returning` what a statement has changed, and never call `row` in a loop.
- Numbers (`next`) are those that items, changes of the log and memory entries have. On SQLite they are read off what is
  stored: store under a number before asking for the next.
- Rows are tuples. The values of a statement are a mapping; each row of `run_all` is a tuple, in the order in which the
  names first appear in its text (`marks("a, b")` is `:a, :b`).
- Another drawer is `self._db.drawer(Items)`. A method of it that `writes` is a savepoint of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from commonplace.store.dialect import Tuned, Values

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Drawer")
D = TypeVar("D", bound="Drawer")

Numbered: TypeAlias = Literal["item", "change", "entry", "part"]
"""What has numbers that are never given out twice: a `part` is a row of a table's data, work or tools."""
NOTHING: Values = {}


class StoreSession(Protocol):
    """One space of a database, for any number of threads. Each has its own transaction."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]: ...

    def drawer(self, kind: type[D]) -> D:
        """Return the drawer of a class, opened when it is first asked for."""
        ...

    def tuned(self, part: Tuned) -> str:
        """Return the text of a part of a statement for this database."""
        ...

    def read(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` reads in one statement. It is called again where a connection was lost."""
        ...

    def read_together(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` reads, all of it of one state. It is called again where a connection was lost."""
        ...

    def write(self, work: Callable[[], R], *, alone: bool = True, ordered: bool = True) -> R:
        """Return what `work` returns. What it writes is durable then, or undone where it raises.

        In a transaction it is a part of that one. `alone`: it is undone alone; else whoever called has to undo all.
        `ordered`: writers wait for each other, and numbers may be asked for.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Make all that this thread writes inside the block durable together, or undo it where the block raises."""
        ...

    def all(self, query: str | Tuned, values: Values = NOTHING) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        ...

    def row(self, query: str | Tuned, values: Values = NOTHING) -> tuple[Any, ...] | None:
        """Return the first row of a statement, or None where it has none."""
        ...

    def run(self, query: str | Tuned, values: Values = NOTHING) -> None:
        """Carry out a statement whose rows, if any, nobody wants."""
        ...

    def run_all(self, query: str | Tuned, rows: Iterable[tuple[Any, ...]]) -> None:
        """Carry out a statement for each of these rows of values."""
        ...

    def next(self, of: Numbered, count: int = 1) -> int:
        """Return the first of `count` numbers that this transaction is the first to have."""
        ...

    def last(self, of: Numbered) -> int:
        """Return the number that was given out last, 0 where none was."""
        ...

    def skip(self, of: Numbered, upto: int) -> None:
        """Give out no number up to this one any more."""
        ...


class Drawer:
    """The rows of one noun. See the module for how one is written."""

    def __init__(self, session: StoreSession) -> None:
        self._db = session


class Drawers:
    """The drawers of an open store, each opened when it is first asked for."""

    def __init__(self) -> None:
        self._drawers: dict[type[Drawer], Any] = {}
        self._opening = threading.RLock()  # one may ask for another while it is opened

    def drawer_of(self, session: StoreSession, kind: type[D]) -> D:
        drawer: D | None = self._drawers.get(kind)
        if drawer is None:
            with self._opening:
                drawer = self._drawers.get(kind) or kind(session)
                self._drawers[kind] = drawer
        return drawer


def reads(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that reads in one statement."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._db.read(method, self, *args, **kwargs)

    return call


def reads_together(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method whose statements all read one state, whatever others write meanwhile."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._db.read_together(method, self, *args, **kwargs)

    return call


def writes(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that is a transaction, or a part of the one under way that is undone alone when it raises."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._db.write(lambda: method(self, *args, **kwargs))

    return call


def writes_within(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that is a transaction, or a part of the one under way, which has to fail where this raises.

    It spares a savepoint: on SQLite a copy of every page that changes, on a server two statements.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._db.write(lambda: method(self, *args, **kwargs), alone=False)

    return call


def writes_unordered(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Return a method that writes rows which are not of the log: on a server nobody waits for anybody."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._db.write(lambda: method(self, *args, **kwargs), ordered=False)

    return call
