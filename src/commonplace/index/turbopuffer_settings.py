"""Where turbopuffer is reached, and what its namespaces and documents are called."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import field
from urllib.parse import quote, urlsplit

from commonplace.lazy_dataclass import dataclass
from commonplace.settings import BadSetting

KEY, REGION, BASE_URL = "TURBOPUFFER_API_KEY", "TURBOPUFFER_REGION", "TURBOPUFFER_BASE_URL"
_PREFIX = re.compile(r"[A-Za-z0-9-]{0,20}")
_LONGEST_NAMESPACE = 128
ITEMS = "items"
_ID = "[a-z0-9]{1,26}"


@dataclass(frozen=True, slots=True)
class Service:
    """A turbopuffer service. Neither the key nor a password in its address is in any text that this makes."""

    base_url: str = field(repr=False)
    key: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc.rpartition("@")[2]


def service(environment: Mapping[str, str] | None = None) -> Service:
    """The one that the environment names, in the variables that turbopuffer's own tools use."""
    values = os.environ if environment is None else environment
    key, region, base_url = (values.get(name, "") for name in (KEY, REGION, BASE_URL))
    if not key:
        raise BadSetting(f"The index is turbopuffer, and {KEY} is not set. Set it to a key of your organisation.")
    if bool(region) == bool(base_url):
        state = "both are" if region else "neither is"
        raise BadSetting(f"One of {REGION} and {BASE_URL} says where turbopuffer is, and {state} set. Set just one.")
    url = base_url or f"https://{region}.turbopuffer.com"
    if not _names_a_host(url):
        shown = url.rpartition("@")[2]  # what is before it may be a password
        raise BadSetting(f"{BASE_URL if base_url else REGION} must name a host, as in https://HOST, not {shown!r}.")
    return Service(url.rstrip("/"), key)


def _names_a_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


@dataclass(frozen=True, slots=True)
class Naming:
    """The namespaces of one space."""

    prefix: str
    space: str
    suffix: str = ""
    """Tells the namespaces of one index from those of another of the same space."""

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise BadSetting(
                f"COMMONPLACE_TURBOPUFFER_PREFIX must be at most 20 letters, digits and dashes, not {self.prefix!r}."
            )

    @property
    def items(self) -> str:
        """Of everything that is not in a table."""
        return self._full(ITEMS)

    def table(self, project_id: str, table_id: str) -> str:
        return self._full(f"project_{project_id}_table_{table_id}")

    @property
    def tables(self) -> str:
        """What the names of all tables' namespaces begin with."""
        return self._before + "project_"

    def is_table(self, namespace: str) -> bool:
        """Whether it is one of a table of this space and this index."""
        own = f"{re.escape(self.tables)}{_ID}_table_{_ID}{re.escape(self.suffix)}"
        return re.fullmatch(own, namespace) is not None

    @property
    def _before(self) -> str:
        space = "" if self.space == "default" else f"s.{self._space}."
        return f"{self.prefix}.{space}" if self.prefix else space

    @property
    def _space(self) -> str:
        """A space with a long name goes by its hash: with a project and a table it would not fit."""
        return self.space if len(self.space) <= 32 else hashlib.sha256(self.space.encode()).hexdigest()[:24]

    def _full(self, name: str) -> str:
        full = f"{self._before}{name}{self.suffix}"
        if len(full) > _LONGEST_NAMESPACE:
            raise BadSetting(f"The namespace {full} is longer than turbopuffer's {_LONGEST_NAMESPACE} characters.")
        return full


def is_table(namespace: str) -> bool:
    """Whether a namespace is that of a table, of whatever space. No name of a table or a project has a dot."""
    return namespace.rpartition(".")[2].startswith("project_")


def document_id(parent: str, key: str, content_hash: str, ordinal: int, kind: str, generation: int) -> str:
    """The id of a chunk's row: a UUID of its readable parts, the same wherever and whenever it is made."""
    parts = f"{parent}:{quote(key, safe='')}:{content_hash[:12]}:chunk_{ordinal}:{kind}:{generation}"
    digest = bytearray(hashlib.sha256(parts.encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
