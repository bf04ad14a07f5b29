"""One request to the page: who asks, for what, and whether a form is ours."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, QueryParams
from starlette.types import Scope

from commonplace.errors import Denied, InvalidInput
from commonplace.server.principal import Principal
from commonplace.settings import Settings
from commonplace.web.page_jobs import PageJob, Work

TOKEN = "token"  # noqa: S105 - the name of a field
MOST_FIELDS = 5000
_FOREIGN = (
    "This form did not come from this page, so nothing was changed. Open the page again and repeat it there. "
    "Programs write through /api/v1 or MCP."
)
_STALE = "This form is out of date, so nothing was changed. Go back, reload the page, and send it again."
STRANGER = Principal("", "", frozenset())
"""Somebody who is not signed in."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request as the screens see it."""

    path: str
    """The path that was asked for, without the ending that asks for JSON."""
    raw_path: str
    """The path as it was sent, percent-encoded."""
    query: QueryParams
    base: str
    """The address of this server for the visitor, without a slash at its end."""
    principal: Principal
    session: str
    """The visitor's cookie: of a login, or of a browser that needs none."""
    settings: Settings
    is_owner: bool
    """Whether this is the person at this machine, on a server without users."""
    form: Mapping[str, list[str]] = field(default_factory=dict)

    jobs: Sequence[PageJob] = ()
    """The jobs of the visitor's library, the latest first."""
    start_job: Callable[[str, str, Work], PageJob] | None = None
    seen: Mapping[str, float] = field(default_factory=dict)
    """When each client last called, by name, in seconds since 1970, as far as this server knows."""

    @property
    def is_known(self) -> bool:
        """Return whether the visitor may see a library: strangers are shown what tells nothing about any."""
        return self.principal != STRANGER

    @property
    def may_write(self) -> bool:
        return self.principal.may("write")

    @property
    def token(self) -> str:
        """Return the token that the forms of this session carry."""
        return form_token(self.session)

    def find_job(self, name: str) -> PageJob | None:
        """Return the latest job of a name, or None."""
        return next((job for job in self.jobs if job.name == name), None)

    def start(self, name: str, title: str, work: Work) -> None:
        """Begin a job, unless one of this name runs already."""
        if self.start_job:
            self.start_job(name, title, work)

    def field(self, name: str) -> str:
        """Return the value of a form's field, "" where it has none."""
        return self.form.get(name, [""])[0]


def form_token(session: str) -> str:
    """Return the token of a session's forms, which tells nothing about its cookie."""
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


def read_form(body: bytes) -> dict[str, list[str]]:
    """Return the fields of a form as a browser sends it, lines ending in \\n. Raise InvalidInput for too many."""
    fields: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise InvalidInput("This form cannot be read. Send it from the page, with fewer items at once.") from None
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return fields


def check_sender(scope: Scope, settings: Settings) -> None:
    """Raise Denied unless a browser says that one of our own pages sent this request."""
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    ours = {f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"}
    if settings.public_url:
        public = urlsplit(settings.public_url)
        ours.add(f"{public.scheme}://{public.netloc}")
    same = origin in ours if origin is not None else headers.get("sec-fetch-site") == "same-origin"
    if not same:
        raise Denied(_FOREIGN)


def check_token(session: str, form: Mapping[str, list[str]]) -> None:
    """Raise Denied unless a form carries the token of its session."""
    sent = form.get(TOKEN, [""])[0]
    if not session or not hmac.compare_digest(sent.encode(), form_token(session).encode()):
        raise Denied(_STALE)
