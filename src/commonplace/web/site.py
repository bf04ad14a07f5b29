"""The page as a part of the server: its addresses, who may see them, and the form of every answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlencode
from uuid import uuid4

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.errors import CommonplaceError, Denied, NotFound, TooLarge
from commonplace.library import Library
from commonplace.server.auth import Gate, OpenGate, base_address, token_of
from commonplace.server.limits import come_back_in
from commonplace.server.principal import Principal
from commonplace.server.service import Service
from commonplace.server.transport import read_body
from commonplace.store.accounts import new_login
from commonplace.web.frame import (
    HEADERS,
    PICTURES,
    SANDBOX,
    STATIC,
    Answer,
    Download,
    Redirect,
    Sheet,
    StoredFile,
    as_json,
    rendered,
    static_file,
)
from commonplace.web.logins import Failures, logins_of
from commonplace.web.page_jobs import PageJobs
from commonplace.web.paths import with_query
from commonplace.web.screens import SCREENS, Run, Screen
from commonplace.web.visits import STRANGER, Visit, check_sender, check_token, form_token, read_form

log = logging.getLogger(__name__)

ALIVE = "/health"
"""The path of a screen at which programs are answered as ever."""
_MCP = "/mcp"
_COOKIE = "commonplace"
_SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
_JSON, _HTML, _MARKDOWN = "application/json", "text/html", "text/markdown"
_IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
_NO_COLLECTIONS = (
    "This key is limited to collections of documents. The page shows whole libraries: use a client instead."
)
_NO_WRITING = "This key may only read, so nothing was changed. Sign in with a key that has the write scope."


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A request before it is known who asks."""

    scope: Scope
    path: str
    wanted: str
    """The media type to answer in."""
    cookie: str
    """The session that the browser sent, or a new one."""
    is_new: bool

    @property
    def is_browser(self) -> bool:
        return self.wanted == _HTML


class Site:
    """ASGI middleware that serves the page; what is not of the page goes on to the app.

    It comes before the authentication of the other doors, because people sign in with a form and a cookie.
    """

    def __init__(self, app: ASGIApp, service: Service, gate: Gate) -> None:
        self._app, self._service, self._gate = app, service, gate
        self._settings = service.settings
        self._logins, self._failures = logins_of(gate), Failures()
        self._jobs = PageJobs(service.libraries, service.embed_soon)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = self._work_for(scope) if scope["type"] == "http" else None
        if work is None:
            await self._app(scope, receive, send)
            return
        response = await work(Request(scope, receive))
        await response(scope, receive, send)

    def _work_for(self, scope: Scope) -> Callable[[Request], Awaitable[Response]] | None:
        """Return what answers a request, or None for what is no part of the page."""
        method, path = scope["method"], scope["path"]
        reads = method in ("GET", "HEAD")
        if reads and path.startswith(STATIC):
            return _static
        asked = self._asked(scope)
        if asked.path in ("/login", "/logout") and (reads or method == "POST"):
            return lambda request: self._guarded(asked, self._sign(asked, request))
        if path == ALIVE and not (reads and asked.is_browser):
            return None  # programs ask there whether the server is alive
        screen = SCREENS.find("GET" if reads else method, asked.path)
        if screen is not None:
            return lambda request: self._guarded(asked, self._show(asked, screen, request))
        return self._other(asked) if reads and asked.is_browser else None

    def _other(self, asked: _Arrival) -> Callable[[Request], Awaitable[Response]] | None:
        """Return what answers a browser at an address of MCP, or at one that there is not; None for other doors."""
        path = asked.scope["path"]
        if path == _MCP or path.startswith(f"{_MCP}/"):
            profile = path.removeprefix(_MCP).strip("/")
            target = with_query("/connect", profile=profile)
            return lambda request: _now(RedirectResponse(target, 303, HEADERS))
        if any(route.matches(asked.scope)[0] is not Match.NONE for route in asked.scope["app"].router.routes):
            return None
        missing = NotFound(f"There is nothing at {path}. Search for it, or begin at the first page.")
        return lambda request: self._guarded(asked, self._fail(asked, missing))

    def _asked(self, scope: Scope) -> _Arrival:
        headers, path = Headers(scope=scope), scope["path"]
        accepted = headers.get("accept", "").lower()
        wanted = _HTML if _HTML in accepted else _MARKDOWN if _MARKDOWN in accepted else _JSON
        if path.endswith(".json") and not path.startswith("/i/"):
            path, wanted = path.removesuffix(".json") or "/", _JSON
        if path.endswith(".md") and not path.startswith("/i/"):
            path, wanted = path.removesuffix(".md"), _MARKDOWN
        cookies = Request(scope).cookies
        cookie = cookies.get(self._cookie_name(scope), "")
        is_known = _SESSION.fullmatch(cookie) is not None
        return _Arrival(scope, path, wanted, cookie if is_known else new_login(), not is_known)

    async def _guarded(self, asked: _Arrival, answering: Awaitable[Response]) -> Response:
        """Return the answer, or the screen of the error that came up."""
        try:
            return await answering
        except CommonplaceError as error:
            return await self._fail(asked, error)
        except Exception:
            reference = uuid4().hex[:8]
            log.exception("%s failed (%s)", asked.path, reference)
            sentence = f"This page failed unexpectedly. The server's log has the details under {reference}."
            return await self._fail(asked, CommonplaceError(sentence, code="internal"))

    async def _show(self, asked: _Arrival, screen: Screen, request: Request) -> Response:
        writes = asked.scope["method"] == "POST"
        form = await self._form(asked, request) if writes else {}
        principal = await self._principal(asked, bearer=not writes)
        if principal is None:
            if not screen.is_open:
                return self._to_login(asked)
            visit = self._visit(asked, STRANGER)
            return self._response(asked, screen.run(None, visit), visit)
        if principal.collections:
            raise Denied(_NO_COLLECTIONS)
        visit = replace(self._visit(asked, principal), form=form)
        if writes and not visit.may_write:
            raise Denied(_NO_WRITING)
        if screen.meter:
            self._service.meter(principal, screen.meter)
        return await self._shown(asked, screen.run, visit)

    async def _shown(self, asked: _Arrival, run: Run, visit: Visit) -> Response:
        """Return a screen's answer, made and rendered in a thread."""

        def work(library: Library) -> tuple[Answer, Response]:
            library.upkeep.tended = self._settings.background
            answer = run(library, visit)
            return answer, self._response(asked, answer, visit)

        answer, response = await self._service.work(visit.principal.space, work)
        if isinstance(answer, Redirect):
            self._service.changes.nudge(visit.principal.space)
            self._service.embed_soon(visit.principal.space)
        return response

    def _response(self, asked: _Arrival, answer: Answer, visit: Visit) -> Response:
        if isinstance(answer, Redirect):
            response: Response = RedirectResponse(answer.location, answer.status, HEADERS)
        elif isinstance(answer, Download):
            name = {"Content-Disposition": f'attachment; filename="{answer.name}"'}
            response = Response(answer.text, headers={**HEADERS, **name}, media_type=answer.media_type)
        elif isinstance(answer, StoredFile):
            shown = answer.media_type if answer.media_type in PICTURES else ""
            saved = {} if shown else {"Content-Disposition": "attachment"}
            response = Response(
                answer.data, headers={**HEADERS, **SANDBOX, **saved}, media_type=shown or "application/octet-stream"
            )
        elif (wanted := answer.wanted or asked.wanted) == _MARKDOWN and answer.markdown is not None:
            response = Response(answer.markdown, answer.status, HEADERS, _MARKDOWN)
        elif wanted != _HTML:
            response = Response(as_json(answer.record), answer.status, HEADERS, _JSON)
        else:
            response = Response(rendered(answer, visit), answer.status, HEADERS, _HTML)
            if asked.is_new:
                self._set_cookie(response, asked, asked.cookie)
        return response

    async def _fail(self, asked: _Arrival, error: CommonplaceError) -> Response:
        """Return the screen of an error."""
        visit = self._visit(asked, STRANGER)
        if asked.is_browser:
            with suppress(CommonplaceError):  # who asks cannot be told either
                principal = await self._principal(asked, bearer=True)
                visit = self._visit(asked, principal) if principal and not principal.collections else visit
        record = {"error": {"code": error.code, "message": str(error), **error.details}}
        response = self._response(asked, Sheet("error.html", "Sorry", record, status=error.status), visit)
        retry = error.details.get("retry_after")
        response.headers.update({} if retry is None else come_back_in(float(retry)))
        return response

    # who asks

    async def _principal(self, asked: _Arrival, *, bearer: bool) -> Principal | None:
        """Return who asks, by cookie; where programs may, also by the key they send."""
        if self._logins is None:
            return await self._gate.admit(None)
        principal = None if asked.is_new else await self._logins.principal(asked.cookie)
        if principal is None and bearer and (token := token_of(asked.scope)):
            return await self._gate.admit(token)
        return principal

    def _visit(self, asked: _Arrival, principal: Principal) -> Visit:
        return Visit(
            path=asked.path,
            raw_path=asked.scope.get("raw_path", asked.path.encode()).decode("latin-1").partition("?")[0],
            query=QueryParams(asked.scope["query_string"]),
            base=base_address(self._settings, asked.scope),
            principal=principal,
            session=asked.cookie,
            settings=self._settings,
            is_owner=isinstance(self._gate, OpenGate),
            jobs=self._jobs.of(principal.space),
            start_job=partial(self._jobs.start, principal.space),
            seen=self._service.clients_of(principal.space),
        )

    async def _form(self, asked: _Arrival, request: Request) -> dict[str, list[str]]:
        check_sender(asked.scope, self._settings)
        body = await read_body(request, self._settings.body_bytes)
        if body is None:
            raise TooLarge(f"A form has at most {self._settings.body_bytes} bytes. Send less at once.")
        form = read_form(body)
        check_token("" if asked.is_new else asked.cookie, form)
        return form

    # signing in and out

    async def _sign(self, asked: _Arrival, request: Request) -> Response:
        if self._logins is None:
            return RedirectResponse("/", 303, HEADERS)
        if asked.path == "/logout":
            if asked.scope["method"] != "POST":
                return RedirectResponse("/", 303, HEADERS)
            await self._form(asked, request)
            await self._logins.log_out(asked.cookie)
            response = RedirectResponse("/login", 303, HEADERS)
            self._set_cookie(response, asked, "")
            return response
        if asked.scope["method"] != "POST":
            return self._login_screen(asked, QueryParams(asked.scope["query_string"]).get("next", ""))
        return await self._log_in(asked, await self._form(asked, request))

    async def _log_in(self, asked: _Arrival, form: dict[str, list[str]]) -> Response:
        assert self._logins is not None  # noqa: S101 - `_sign` has looked
        target = form.get("next", [""])[0]
        caller = str((asked.scope.get("client") or ("",))[0])
        if (seconds := self._failures.wait(caller)) > 0:
            problem = f"Too many keys were wrong. Try again in {round(seconds) + 1} seconds."
            response = self._login_screen(asked, target, problem, 429)
            response.headers.update(come_back_in(seconds))
            return response
        cookie = await self._logins.log_in(form.get("key", [""])[0].strip())
        if cookie is None:
            self._failures.note(caller)
            problem = "This key is not valid here: it is unknown, expired or revoked. Ask whoever runs this server."
            return self._login_screen(asked, target, problem, 401)
        response = RedirectResponse(target if _is_ours(target) else "/", 303, HEADERS)
        self._set_cookie(response, asked, cookie)
        return response

    def _login_screen(self, asked: _Arrival, target: str, problem: str = "", status: int = 200) -> Response:
        record = {"problem": problem}
        beside = {"next": target if _is_ours(target) else "", "token": form_token(asked.cookie)}
        return self._response(
            asked, Sheet("login.html", "Sign in", record, status=status, beside=beside), self._visit(asked, STRANGER)
        )

    def _to_login(self, asked: _Arrival) -> Response:
        if not asked.is_browser or asked.scope["method"] == "POST":
            sentence = "Who asks is not known. Sign in at /login, or send a key as `Authorization: Bearer …`."
            error = {"error": {"code": "unauthorized", "message": sentence}}
            return self._response(asked, Sheet("error.html", "Sorry", error, status=401), self._visit(asked, STRANGER))
        query = asked.scope["query_string"].decode("latin-1")
        here = asked.scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(f"/login?{urlencode({'next': here})}" if here != "/" else "/login", 303, HEADERS)

    def _cookie_name(self, scope: Scope) -> str:
        return f"__Host-{_COOKIE}" if self._is_secure(scope) else _COOKIE

    def _is_secure(self, scope: Scope) -> bool:
        return base_address(self._settings, scope).startswith("https:")

    def _set_cookie(self, response: Response, asked: _Arrival, value: str) -> None:
        response.set_cookie(
            self._cookie_name(asked.scope),
            value,
            max_age=None if value else 0,
            httponly=True,
            samesite="lax",
            secure=self._is_secure(asked.scope),
        )


def _is_ours(target: str) -> bool:
    """Return whether a target is a path here, and not another host's in disguise."""
    return re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", target) is not None and "\\" not in target


async def _static(request: Request) -> Response:
    file = static_file(request.scope["path"])
    if file is None:
        return Response("There is no such file.", 404, HEADERS, "text/plain")
    headers = {**_IMMUTABLE, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", "").lower():
        return Response(file.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)


async def _now(response: Response) -> Response:
    return response
