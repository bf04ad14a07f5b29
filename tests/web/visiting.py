"""Visits to screens without a server: who asks for which address, with which form."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.datastructures import QueryParams

from commonplace.library import Library
from commonplace.server.principal import OWNER, Principal
from commonplace.web.frame import Sheet, rendered
from commonplace.web.page_jobs import PageJobs
from commonplace.web.screens import SCREENS
from commonplace.web.visits import Visit

READER = Principal("reader", "default", frozenset({"read"}))


def visit(
    library: Library,
    address: str,
    *,
    is_owner: bool = True,
    who: Principal = OWNER,
    jobs: PageJobs | None = None,
    **form: Any,
) -> Visit:
    """Return the visit of an address; the rest are the fields of a form, each a text or a list of texts."""
    path, _, query = address.partition("?")
    fields = {name: value if isinstance(value, list) else [value] for name, value in form.items()}
    begin = (lambda name, title, work: jobs.start(who.space, name, title, work)) if jobs else None
    return Visit(
        path=unquote(path),
        raw_path=path,
        query=QueryParams(query),
        base="http://127.0.0.1:8377",
        principal=who,
        session="s" * 43,
        settings=library.settings,
        is_owner=is_owner,
        form=fields,
        jobs=jobs.of(who.space) if jobs else (),
        start_job=begin,
    )


def get(library: Library, address: str, **more: Any) -> Sheet:
    """Return what a screen shows at an address."""
    return _answer("GET", library, address, **more)


def post(library: Library, address: str, **more: Any) -> Any:
    """Return what a form at an address answers."""
    return _answer("POST", library, address, **more)


def html(library: Library, address: str, **more: Any) -> str:
    """Return a screen as a browser gets it."""
    return rendered(get(library, address, **more), visit(library, address, **more))


def _answer(method: str, library: Library, address: str, **more: Any) -> Any:
    asked = visit(library, address, **more)
    screen = SCREENS.find(method, asked.path)
    assert screen is not None, f"{method} {asked.path}"
    return screen.run(library, asked)
