"""Options that the tools of this profile share: their schemas, and every knob as it applies to one call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from commonplace.errors import InvalidInput
from commonplace.kinds.knowledge.kinds import read_moment
from commonplace.kinds.knowledge.retrieval import Budget, Mode, Wish
from commonplace.model import JSON
from commonplace.settings import Settings
from commonplace.tools import arguments
from commonplace.tools.arguments import Signature, is_date
from commonplace.tools.schema import Schema, flag, integer, obj, text
from commonplace.tools.sessions import Session
from commonplace.tools.soft_config import Chosen, Number, SoftConfig, choose, parse_config
from commonplace.tools.tool import Call

LONGEST_QUERY = 1000
CHUNK_TOKENS = Number(500, 10, 8000)
PAGE_SIZE = Number(50, 1, 200)

QUERY = text(
    'Any of these words. "Quotes" require a phrase, -word excludes one, word* matches a prefix.',
    minLength=1,
    maxLength=LONGEST_QUERY,
)
SESSION = text("Session id: any name, or `new`.", minLength=1)
ID = {"type": ["integer", "string"]}


def soft(description: str, kind: str = "integer") -> Schema:
    """Return the schema of a number that is moved into its range, which its description states."""
    return {"type": kind, "description": description}


SNIPPET_LENGTH = soft("Characters per snippet, 20 to 1000 (default 300).")
ORDER_BY = {"type": "string", "enum": ["relevance", "recent"], "description": "Sort order."}
PAGE = {"type": "integer", "minimum": 1, "description": "Page of messages, from 1."}
PAGE_SIZE_SCHEMA = soft("Messages per page, 1 to 200 (default 50).")


def limit(default: int) -> Schema:
    """Return the schema of `limit`."""
    return integer("Most results to return.", default=default, least=1, most=100)


OFFSET = integer("Results to skip (next_offset).", default=0, least=0, most=10_000)

_NULLABLE = {"type": ["integer", "null"]}
LOC = obj(
    media_id={"type": ["integer", "string", "null"]},
    chunk_index={**_NULLABLE, "minimum": 0},
    chunk_uuid={"type": ["string", "null"]},
    approx_offset={**_NULLABLE, "minimum": 0},
    start_ms={**_NULLABLE, "minimum": 0},
    end_ms=_NULLABLE,
    page=_NULLABLE,
    conversation_id={"type": ["string", "null"]},
    message_id={"type": ["string", "null"]},
    message_index={**_NULLABLE, "minimum": 0},
    field={"type": ["string", "null"]},
)

RETRIEVAL = {
    **obj(
        mode={
            "type": "string",
            "enum": ["snippet", "chunk", "chunk_with_siblings", "full", "auto"],
            "description": "auto: chunk_with_siblings if max_tokens is set, else snippet.",
        },
        snippet_length=SNIPPET_LENGTH,
        max_tokens=soft("Token budget, 1 to 200000."),
        chars_per_token=soft("Characters per token, 1 to 20 (default 4).", "number"),
        chunk_size_tokens=soft("Re-chunk at this many tokens, 10 to 8000."),
        chunk_overlap_tokens=soft("Their overlap, 0 to half that."),
        sibling_window=soft("Chunks on either side, 0 to 10 (default 2)."),
        prefer_prechunked=flag("Use the stored chunks.", default=True),
        loc={**LOC, "description": "A result's loc: start there."},
        query=text("Start where this matches best.", minLength=1, maxLength=LONGEST_QUERY),
        offset={"type": "integer", "minimum": 0, "description": "Where mode full continues: next_offset."},
    ),
}


def check(tool: str, signature: Signature, args: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the arguments as every tool checks them. Raise InvalidInput, also for a query of blanks."""
    checked = arguments.check(tool, signature, {**args, "query": "."} if _is_blank(args.get("query")) else args)
    retrieval = checked.get("retrieval")
    places = {"query": args.get("query"), "retrieval.query": retrieval.get("query") if retrieval else None}
    for place, query in places.items():
        if _is_blank(query):
            raise InvalidInput(f"{place} is blank: give at least one word.", argument=place)
    return checked


def _is_blank(query: JSON) -> bool:
    if isinstance(query, list):
        return bool(query) and all(isinstance(part, str) and not part.strip() for part in query)
    return isinstance(query, str) and not query.strip()


@dataclass(frozen=True, slots=True)
class Turn:
    """One call: its session, its knobs, and the warnings about both."""

    call: Call
    session: Session | None
    config: SoftConfig
    chosen: Chosen

    @property
    def settings(self) -> Settings:
        return self.call.space.settings

    def warnings(self) -> list[Mapping[str, JSON]]:
        return list(self.config.warnings)

    def clamped(self, *names: str) -> list[str]:
        """Return which of these knobs were moved into their range, and the session's that were set just now."""
        now = self.session.clamped if self.session else frozenset()
        return [name for name in self.chosen.clamped if name in names or name in now]


def turn(call: Call, args: Mapping[str, JSON], knobs: Mapping[str, JSON]) -> Turn:
    """Return the turn of a call. `args` are its arguments, `knobs` those of them that are knobs."""
    session = call.open_session(args.get("session"))
    defaults = args.get("session_defaults")
    if defaults:
        if session is None:
            raise InvalidInput(
                "session_defaults needs a session: give session a name, or new.", argument="session_defaults"
            )
        session = session.set_defaults(defaults)
    config = parse_config(call.config)
    settings = call.space.settings
    ours = {
        "snippet_length": settings.knowledge_snippet_length,
        "max_tokens": settings.knowledge_max_tokens,
        "sibling_window": settings.knowledge_sibling_window,
        "chars_per_token": settings.knowledge_chars_per_token,
        "order_by": settings.knowledge_order_by,
        "max_session_uris": settings.session_max_uris,
    }
    return Turn(call, session, config, choose(knobs, session, config, ours))


@dataclass(frozen=True, slots=True)
class Wished:
    """A wish, and the names of the knobs that were moved into their range."""

    wish: Wish
    clamped: list[str]


KNOBS = ("snippet_length", "max_tokens", "chars_per_token", "sibling_window")


def wished(turn: Turn, retrieval: Mapping[str, JSON] | None, otherwise: Mode) -> Wished:
    """Return how an item is to be read. `otherwise` is the mode of a call without a retrieval object."""
    asked, chosen = retrieval or {}, turn.chosen
    clamped = turn.clamped(*KNOBS)
    budget = Budget(chosen.max_tokens, chosen.chars_per_token)
    wish = Wish(
        mode=otherwise if retrieval is None else _mode(asked, chosen),
        snippet_length=chosen.snippet_length,
        budget=budget,
        sibling_window=chosen.sibling_window,
        loc=asked.get("loc"),
        query=asked.get("query"),
        recent=turn.session.recent_queries if turn.session else (),
        offset=asked.get("offset", 0),
        full_chars=turn.settings.full_max_chars,
    )
    if "max_tokens" in asked:
        wish = replace(wish, full_chars=max(1, min(wish.full_chars, budget.chars)))
    return _cut_anew(wish, asked, clamped)


def _cut_anew(wish: Wish, asked: Mapping[str, JSON], clamped: list[str]) -> Wished:
    """Return the wish with the size of chunks that are cut on the fly, where they are."""
    size, moved = CHUNK_TOKENS.read(asked.get("chunk_size_tokens", CHUNK_TOKENS.default))
    overlap, shifted = Number(0, 0, size // 2).read(asked.get("chunk_overlap_tokens", 0))
    clamped = [*clamped, *(["chunk_size_tokens"] if moved else []), *(["chunk_overlap_tokens"] if shifted else [])]
    if "chunk_size_tokens" not in asked and asked.get("prefer_prechunked", True):
        return Wished(wish, clamped)
    per_token = wish.budget.chars_per_token
    chars, shared = math.floor(size * per_token), math.floor(overlap * per_token)
    return Wished(replace(wish, chunk_chars=chars, overlap_chars=shared), clamped)


def _mode(asked: Mapping[str, JSON], chosen: Chosen) -> Mode:
    mode = asked.get("mode") or ("auto" if "max_tokens" in asked else "snippet")
    if mode == "auto":
        return "snippet" if chosen.origin["max_tokens"] == "settings" else "chunk_with_siblings"
    return cast(Mode, mode)


def dates(args: Mapping[str, JSON], place: str = "") -> tuple[datetime | None, datetime | None]:
    """Return `date_from` and `date_to`; a bare date that ends a range includes its day. Raise InvalidInput."""
    moments = [read_moment(args[name], f"{place}{name}") if name in args else None for name in ("date_from", "date_to")]
    low, high = moments
    if high is not None and is_date(args["date_to"]):
        high += timedelta(days=1) - timedelta(microseconds=1)
    if low is not None and high is not None and low > high:
        raise InvalidInput(
            f"{place}date_from {args['date_from']} is after {place}date_to {args['date_to']}. Swap them.",
            argument=f"{place}date_from",
        )
    return low, high
