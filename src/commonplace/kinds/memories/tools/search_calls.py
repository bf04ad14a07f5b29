"""The tools that find: by filters alone, by words, by meaning, by both, and by id."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError, InvalidInput, Unavailable
from commonplace.index.words.wanted import Wanted, atoms, joined
from commonplace.index.words.wanted import shown as spelled_out
from commonplace.kinds.memories.drawer import EntryRows
from commonplace.kinds.memories.entry import Entry, normal_tags
from commonplace.kinds.memories.memories import Memories
from commonplace.kinds.memories.metadata import Malformed, conditions
from commonplace.kinds.memories.tools.entry_json import answer, images_of, parse_date, shown
from commonplace.kinds.memories.tools.entry_lists import (
    DEEPEST,
    RELAXED,
    ByTheirMeaning,
    ByTheirWords,
    ByTime,
    FusedLists,
    Leg,
)
from commonplace.kinds.memories.tools.entry_reranking import Reranked, look_for
from commonplace.kinds.memories.tools.paging import L, Paging, WalkPage, within
from commonplace.kinds.memories.tools.statistics import backend_of, embedded_entries
from commonplace.kinds.memories.word_query import match_atoms, read
from commonplace.model import JSON, Entries, Filter
from commonplace.store.chunks import Chunks
from commonplace.store.items import Items
from commonplace.store.listing import Listing
from commonplace.text.highlight import Highlighter, Sought, marked
from commonplace.text.languages import code_of
from commonplace.text.token_estimates import safe_cut
from commonplace.tools.tool import Answer, Call

if TYPE_CHECKING:
    from commonplace.space import Space


_LONGEST_MARKED = 20_000
"""Characters of a body that are searched for matches to mark; of a longer body only the best passage is."""

Args = Mapping[str, JSON]


def get_context_by_ids(call: Call, args: Args) -> Answer:
    """Return the reply of the tool of this name: whole entries by id."""
    numbers = list(dict.fromkeys(args["context_ids"]))
    entries = call.space.part(Memories).entries(numbers, history=args["include_history"])
    images = images_of(call, entries) if args["include_images"] else {}
    records = [shown(entry, images=images.get(entry.number), history=args["include_history"]) for entry in entries]
    existing_numbers = {entry.number for entry in entries}
    missing = [number for number in numbers if number not in existing_numbers]
    return answer({"result": records, **({"missing_ids": missing} if missing else {})})


def search_context(call: Call, args: Args) -> Answer:
    """Return the reply of the tool of this name: entries by filters alone, newest first."""
    filter = _filter(call, args)
    if isinstance(filter, Malformed):
        return filter.record()
    search = _Search(call, args, filter)
    paging = Paging(call.space, "search_context", args, ByTime(call.space, filter))
    return search.reply(paging, lambda lister: search.stats(""))


def fts_search_context(call: Call, args: Args) -> Answer:
    """Return the reply of the tool of this name: entries by words."""
    settings = call.space.settings
    about = {
        "query": args["query"],
        "mode": args["mode"],
        "language": settings.memory_language,
        "fts_available": True,
    }
    filter = _filter(call, args)
    if isinstance(filter, Malformed):
        return {**filter.record(), **about}
    search = _Search(call, args, filter)
    reading = read(args["query"], args["mode"])
    code = code_of(settings.memory_language)
    found = ByTheirWords(call.space, filter, reading, code, relaxes=args["mode"] == "match")
    look = look_for(call.space, args["query"], reading.wanted, spoken=args["mode"] != "boolean")
    paging = Paging(call.space, "fts_search_context", args, Reranked(found, look))
    if args["highlight"]:
        search.highlight(reading.wanted, code)
    plan = f"LEXICAL INDEX {spelled_out(reading.wanted)}" if reading.wanted else "NOTHING TO LOOK FOR"

    def rest(lister: Reranked[ByTheirWords]) -> dict[str, JSON]:
        search.warnings += [*reading.warnings, *([RELAXED] if lister.loose else []), *lister.warnings]
        return {**about, **({"relaxed": True} if lister.loose else {}), **search.stats(plan)}

    return search.reply(paging, rest)


def semantic_search_context(call: Call, args: Args) -> Answer:
    """Return the reply of the tool of this name: entries by meaning. Raise Unavailable without vectors."""
    filter = _filter(call, args)
    if isinstance(filter, Malformed):
        return {**filter.record(), "query": args["query"], "model": call.space.embedding.chosen or ""}
    search = _Search(call, args, filter)
    query = args["query"]
    look = look_for(call.space, query, joined("and", match_atoms(query)))
    lister = Reranked(ByTheirMeaning(call.space, filter, query), look)
    paging = Paging(call.space, "semantic_search_context", args, lister)

    def rest(lister: Reranked[ByTheirMeaning]) -> dict[str, JSON]:
        search.warnings += [*_coverage(call.space), *lister.warnings]
        leg = lister.made.leg
        stats = search.stats("VECTOR INDEX", embedding_generation_ms=round(leg.embedding_ms, 3))
        return {"query": query, "model": leg.model, **_depth(cut=lister.made.is_cut), **stats}

    try:
        return search.reply(paging, rest)
    except Unavailable as missing:
        raise Unavailable(
            f"Semantic search is not available: {_reason(missing)}. Use fts_search_context or hybrid_search_context."
        ) from missing


def hybrid_search_context(call: Call, args: Args) -> Answer:
    """Return the reply of the tool of this name: entries by words and meaning, fused by rank."""
    about: dict[str, JSON] = {"query": args["query"], "fusion_method": args["fusion_method"]}
    filter = _filter(call, args)
    if isinstance(filter, Malformed):
        return {**filter.record(), **about, "search_modes_used": [], "fts_count": 0, "semantic_count": 0}
    search = _Search(call, args, filter)
    rrf_k = args.get("rrf_k", call.space.settings.memory_rrf_k)
    look = look_for(call.space, args["query"], joined("and", match_atoms(args["query"])))
    fused = Reranked(FusedLists(call.space, filter, args["query"], rrf_k), look)
    paging = Paging(call.space, "hybrid_search_context", {**args, "rrf_k": rrf_k}, fused)

    def rest(reranked: Reranked[FusedLists]) -> dict[str, JSON]:
        lister = reranked.made
        search.warnings += [*_failures(lister), *reranked.warnings]
        if lister.loose:
            search.warnings.append(RELAXED)
        reply = {
            **about,
            "search_modes_used": [
                name for name, leg in (("fts", lister.words), ("semantic", lister.meaning)) if leg.ran
            ],
            "fts_count": len(lister.words.found),
            "semantic_count": len(lister.meaning.found),
        }
        if lister.loose:
            reply["relaxed"] = True
        return {**reply, **_depth(cut=lister.is_cut), **_fusion_stats(search, reranked)}

    return search.reply(paging, rest)


def _filter(call: Call, args: Args) -> Filter | Malformed:
    """Return the filter of a call, after entries that have expired are removed."""
    call.space.part(Memories).sweep()
    return search_filter(args)


def search_filter(args: Mapping[str, JSON]) -> Filter | Malformed:
    """Return the filter of a search's arguments. Raise InvalidInput for dates and tags that cannot be used."""
    start, end = args.get("start_date"), args.get("end_date")
    created_from = parse_date(start, "start_date") if start is not None else None
    created_to = parse_date(end, "end_date", end=True) if end is not None else None
    if created_from and created_to and created_from > created_to:
        raise InvalidInput(f"Invalid date range: start_date ({start}) is after end_date ({end})")
    tags = normal_tags(args.get("tags", ()))
    if args.get("tags") and not tags:
        raise InvalidInput("tags must contain at least one non-blank tag")
    where = conditions(args.get("metadata", {}), args.get("metadata_filters", ()))
    if isinstance(where, Malformed):
        return where
    content_type = args.get("content_type")
    return Filter(
        kinds=("memory",),
        parents=(args["thread_id"],) if "thread_id" in args else (),
        tags=tags,
        created_from=created_from,
        created_to=created_to,
        where=where,
        entries=Entries(
            source=args.get("source"),
            multimodal=None if content_type is None else content_type == "multimodal",
            superseded=args.get("include_superseded", False),
        ),
    )


def _depth(*, cut: bool) -> dict[str, JSON]:
    return {"rank_depth_limit": DEEPEST} if cut else {}


class _Search:
    """One call of a search: a page of a list, loaded, shown, and cut to its token budget."""

    def __init__(self, call: Call, args: Args, filter: Filter) -> None:
        self._call, self._args, self._filter = call, args, filter
        self._start = time.perf_counter()
        self._highlighter: Highlighter | None = None
        self._marks = False
        self._returned = 0
        self.warnings: list[str] = []

    def highlight(self, wanted: Wanted | None, language: str) -> None:
        """Mark in each result where it matches."""
        self._marks = True
        if wanted is not None and (terms := list(atoms(wanted, sought=True))):
            by_kind = {
                kind: [atom.text for atom in terms if atom.kind == kind] for kind in ("word", "prefix", "phrase")
            }
            languages = tuple(dict.fromkeys((language, *self._call.space.lexical.languages())))
            self._highlighter = Highlighter(Sought(by_kind["word"], by_kind["prefix"], by_kind["phrase"]), languages)

    def reply(self, paging: Paging[L], rest: Callable[[L], dict[str, JSON]]) -> Answer:
        """Return the reply with one page of the list. `rest` adds the members that only this search has."""
        page, entries = paging.take(self._load)
        records = self._records(page, entries)
        fitting, tokens = within(records, self._args.get("max_tokens"))
        records = records[:fitting]
        self._returned = len(records)
        more = rest(paging.lister)
        reply: dict[str, JSON] = {"results": records, "count": len(records), **more, **paging.clamped()}
        next_cursor = paging.cursor_after(page, fitting)
        if next_cursor is not None:
            reply["next_cursor"] = next_cursor
        reply |= tokens
        if self.warnings:
            reply["warnings"] = list(dict.fromkeys(self.warnings))
        return answer(reply)

    def _load(self, items: Sequence[int]) -> dict[int, Entry]:
        """Return the entries of items by item id, with all that a page shows but their whole text."""
        store = self._call.space.store
        length = _LONGEST_MARKED + 1 if self._marks else self._call.space.settings.memory_truncation + 64
        items_by_id = {item.id: item for item in store.drawer(Items).heads(items, length)}
        rows = store.drawer(EntryRows).of(items)
        return {row.item_id: Entry(row, items_by_id[row.item_id]) for row in rows if row.item_id in items_by_id}

    def _records(self, walk_page: WalkPage, entries: Mapping[int, Entry]) -> list[dict[str, JSON]]:
        rows = walk_page.rows
        page = [(place, entries[int(rows.items[place])]) for place in walk_page.places]
        images = images_of(self._call, [entry for _, entry in page]) if self._args["include_images"] else {}
        truncation = self._call.space.settings.memory_truncation
        marks = self._highlights(walk_page, page) if self._marks else {}
        records = []
        for place, entry in page:
            extra: dict[str, JSON] = {"scores": rows.record(place)} if rows.scores else {}
            if self._marks:
                extra["highlighted"] = marks.get(entry.row.item_id)
            records.append(shown(entry, truncation=truncation, images=images.get(entry.number), **extra))
        return records

    def _highlights(self, walk_page: WalkPage, page: Sequence[tuple[int, Entry]]) -> dict[int, str]:
        if self._highlighter is None:
            return {}
        chunks, marked_texts = walk_page.rows.chunks, {}
        longer = [place for place, entry in page if len(entry.item.body or "") > _LONGEST_MARKED]
        long = [] if chunks is None else chunks[longer].tolist()
        passages = (
            {chunk.item_id: chunk.text for chunk in self._call.space.store.drawer(Chunks).get(long)} if long else {}
        )
        for _, entry in page:
            text = passages.get(entry.row.item_id, entry.item.body or "")
            marked_texts[entry.row.item_id] = marked(text, self._highlighter.find(text))
        return marked_texts

    def stats(self, plan: str, **more: JSON) -> dict[str, JSON]:
        """Return `stats` of the call, where the caller asked for them."""
        return {"stats": self.leg_stats(plan, **more)} if self._args["explain_query"] else {}

    def leg_stats(self, plan: str, ms: float | None = None, rows: int | None = None, **more: JSON) -> dict[str, JSON]:
        """Return statistics of one list. `plan` says what made it; the store's plan for the filter is added to that."""
        stored = self._call.space.store.drawer(Listing).plan(self._filter)
        return {
            "execution_time_ms": self.elapsed() if ms is None else round(ms, 3),
            "filters_applied": len(self._filter.where),
            "rows_returned": self._returned if rows is None else rows,
            "backend": backend_of(self._call.space),
            "query_plan": f"{plan[: safe_cut(plan, 2000)]}\n{stored}" if plan else stored,
            **more,
        }

    def elapsed(self) -> float:
        """Return how long the call has taken so far, in milliseconds."""
        return round((time.perf_counter() - self._start) * 1000, 3)

    @property
    def explains(self) -> bool:
        return bool(self._args["explain_query"])


def _fusion_stats(search: _Search, reranked: Reranked[FusedLists]) -> dict[str, JSON]:
    if not search.explains:
        return {}
    lister = reranked.made

    def of(leg: Leg, name: str, **more: JSON) -> JSON:
        return search.leg_stats(name, leg.ms, len(leg.found), **more) if leg.ran else None

    words, meaning = len(lister.words.found), len(lister.meaning.found)
    return {
        "stats": {
            "execution_time_ms": search.elapsed(),
            "fts_stats": of(lister.words, "LEXICAL INDEX"),
            "semantic_stats": of(
                lister.meaning, "VECTOR INDEX", embedding_generation_ms=round(lister.meaning.embedding_ms, 3)
            ),
            "fusion_stats": {
                "rrf_k": lister.rrf_k,
                "total_unique_documents": words + meaning - lister.both,
                "documents_in_both": lister.both,
                "documents_fts_only": words - lister.both,
                "documents_semantic_only": meaning - lister.both,
            },
            "adaptive_fts_mode": lister.mode,
            **reranked.stats(),
        }
    }


def _failures(lister: FusedLists) -> list[str]:
    """Return a warning for each list that could not be made."""
    warnings = []
    if lister.words.reason:
        warnings.append("FTS sub-search failed; results may be based on semantic search only")
    if lister.meaning.reason:
        warnings.append(
            "Semantic sub-search failed; results may be based on FTS only: " + lister.meaning.reason.rstrip(".")
        )
    return warnings


def _coverage(space: Space) -> list[str]:
    """Return a warning with the share of entries that have vectors, where it is not all of them."""
    try:
        if not space.embedding.lacks_some():
            return []
    except CommonplaceError:
        pass
    covered, _, lacking = embedded_entries(space)
    total = space.store.drawer(EntryRows).tally().entries
    if not total or (covered >= total and not lacking):
        return []
    return [f"Only {covered / total * 100:.1f}% of the entries have vectors yet; the others were not searched"]


def _reason(missing: Unavailable) -> str:
    return str(missing).rstrip(".")
