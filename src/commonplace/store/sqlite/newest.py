"""Entries in the order of their times, on SQLite: few rows are tested one by one, and an index is for what is rare."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from commonplace.model import Filter
from commonplace.store.filters import Compiled, fold_tag, micros
from commonplace.store.rows import Moment
from commonplace.store.session import StoreSession
from commonplace.store.sqlite.filters import HELD_BY, compile_filter

WALKED = 1000
"""Newest entries that are looked at one by one before a filter is answered from an index."""


def among(db: StoreSession, filter: Filter, item_ids: Sequence[int]) -> dict[int, int]:
    """Return when each of the items that match was created, by id."""
    test, values = _test(filter)
    rows = db.all(
        f"""select items.id, items.created_at from json_each(:among) as wanted
            cross join items on items.id = wanted.value where {test}""",
        {**values, "among": json.dumps(list(item_ids))},
    )
    return dict(rows)


def newest(
    db: StoreSession,
    filter: Filter,
    compiled: Callable[[Filter], Compiled],
    *,
    limit: int,
    after: Moment | None,
    upto: int | None,
) -> list[Moment]:
    """Return matching items, newest first, then by id, descending; from just after one, up to the id `upto`."""
    bounds, values = _bounds(after, upto)
    if filter.entries is not None:
        # Most filters are satisfied by some of the newest entries; only what is rarer is worth a look at an index.
        walked = WALKED if _is_narrow(filter) else None
        moments, seen = _walk(db, filter, bounds, values, limit, walked)
        if len(moments) >= limit or walked is None or seen < walked:
            return moments
    where, more = compiled(filter)
    source = "items"
    if filter.entries is None:
        where = where.replace("(items.kind in", "(+items.kind in", 1)  # by time, not by kind: nothing to be sorted
        order = "created_at desc, id desc"
    else:
        # What is rare is found in the order of the rows, and then sorted.
        order = "+items.created_at desc, +items.id desc"
        if HELD_BY in where or replace(filter, kinds=(), where=(), entries=None):
            where += " and exists (select 1 from memories where memories.item_id = items.id)"
        else:  # no index knows better than to look at every entry
            source = "memories cross join items on items.id = memories.item_id"
    rows = db.all(
        f"""select items.id, items.created_at from {source} where {where}{bounds.format("items", "id")}
            order by {order} limit :limit""",
        {**values, **more, "limit": limit},
    )
    return [Moment(*row) for row in rows]


def _walk(
    db: StoreSession, filter: Filter, bounds: str, values: dict[str, Any], limit: int, most: int | None
) -> tuple[list[Moment], int]:
    """Return the first matches among the newest entries of a filter's threads and times, and how many were seen."""
    test, more = _test(filter, walked=True)
    range_, ranged = _range(filter)
    bound = {**values, **ranged}
    within = f"from memories where {range_}{bounds.format('memories', 'item_id')}"
    order = "order by created_at desc, item_id desc"
    entries, seen = f"select item_id, created_at {within} {order}", 0
    if most is not None:
        entries = f"{entries} limit {most}"
        row = db.row(f"select count(*) from (select 1 {within} limit {most})", bound)
        seen = int(row[0]) if row else 0
    rows = db.all(
        f"""select item_id, newest.created_at from ({entries}) as newest
            cross join items on items.id = item_id where {test}
            order by newest.created_at desc, item_id desc limit :limit""",
        {**bound, **more, "limit": limit},
    )
    return [Moment(*row) for row in rows], seen


def _test(filter: Filter, *, walked: bool = False) -> Compiled:
    """Return a filter as a test of one row at a time: for few rows, where an index would first list all that match.

    `walked`: the rows are entries within the filter's threads and times already.
    """
    plain = replace(filter, tags=(), entries=None)
    if walked:
        kinds = () if "memory" in filter.kinds else filter.kinds
        plain = replace(plain, kinds=kinds, parents=(), created_from=None, created_to=None)
    where, values = compile_filter(plain)
    tests = [where]
    if filter.tags:
        values |= {"tags": json.dumps([fold_tag(tag) for tag in filter.tags])}
        tests.append(
            """exists (select 1 from tags where folded in (select value from json_each(:tags))
               and tags.item_id = items.id)"""
        )
    entries = filter.entries
    if entries is not None:
        asked = "memories.item_id = items.id"
        if entries.source is not None:
            asked, values = f"{asked} and source = :source", {**values, "source": entries.source}
        if entries.multimodal is not None:
            asked += " and images > 0" if entries.multimodal else " and images = 0"
        if not walked or asked != "memories.item_id = items.id":
            tests.append(f"exists (select 1 from memories where {asked})")
        if not entries.superseded:
            tests.append(
                """not exists (select 1 from memories join supersessions on older = memories.id
                   where memories.item_id = items.id)"""
            )
    return " and ".join(f"({test})" for test in tests), values


def _range(filter: Filter) -> Compiled:
    """Return the part of a filter that is a stretch of an index of entries by time."""
    parts, values = ["1"], dict[str, Any]()
    if filter.parents:
        parts.append("memories.thread in (select value from json_each(:threads))")
        values["threads"] = json.dumps(filter.parents, ensure_ascii=False)
        if len(filter.parents) == 1:
            parts[-1], values = "memories.thread = :thread", {"thread": filter.parents[0]}
    for name, bound, compare in (("since", filter.created_from, ">="), ("until", filter.created_to, "<=")):
        if bound is not None:
            parts.append(f"memories.created_at {compare} :{name}")
            values[name] = micros(bound)
    return " and ".join(parts), values


def _bounds(after: Moment | None, upto: int | None) -> Compiled:
    """Return where a listing goes on and where it ends; the names of a table and its id go into the braces."""
    text, values = "", dict[str, Any]()
    if after is not None:
        text += " and ({0}.created_at, {0}.{1}) < (:time, :item)"
        values |= {"time": after.created_at, "item": after.item_id}
    if upto is not None:
        text += " and +{0}.{1} <= :upto"  # the plus: every entry is a candidate, so its index would read them all
        values["upto"] = upto
    return text, values


def _is_narrow(filter: Filter) -> bool:
    """Return whether a filter may let only few of the entries of a thread and a time through."""
    entries = filter.entries
    asked = entries is not None and (entries.source is not None or entries.multimodal is not None)
    return bool(filter.where or filter.tags or asked or filter.updated_from or filter.updated_to)
