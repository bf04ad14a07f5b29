"""The address and key of turbopuffer, and the names of its namespaces and rows."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlsplit

from commonplace.settings import BadSetting

KEY, REGION, BASE_URL = "TURBOPUFFER_API_KEY", "TURBOPUFFER_REGION", "TURBOPUFFER_BASE_URL"
PLACE = "{region}"
"""The place of the region in an address."""
_ADDRESS = f"https://{PLACE}.turbopuffer.com"
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}")
_PREFIX = re.compile(r"[A-Za-z0-9-]{0,20}")
_LONGEST_NAMESPACE = 128
_LONGEST_SPACE = 13
ITEMS = "items"
_ID = "[a-z0-9]{1,26}"
_MODEL_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TurbopufferService:
    """The address and key of a service. Neither the key nor a password in the address is in its `repr`."""

    address: str = field(repr=False)
    """The address for the SDK: with a place for the region where there is one."""
    key: str = field(repr=False)
    region: str | None = None

    @property
    def base_url(self) -> str:
        """Return the address with its region filled in."""
        return self.address.replace(PLACE, self.region or "")

    @property
    def host(self) -> str:
        """Return the host and port of the address, without a login."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]


def service(environment: Mapping[str, str] | None = None) -> TurbopufferService:
    """Return the service that the environment names, in the variables that turbopuffer's own tools use.

    Raise BadSetting if they name none, or contradict each other.
    """
    values = os.environ if environment is None else environment
    key, region, base_url = (values.get(name, "") for name in (KEY, REGION, BASE_URL))
    if not key:
        raise BadSetting(f"The index is turbopuffer, and {KEY} is not set. Set it to a key of your organisation.")
    address = (base_url or _ADDRESS).rstrip("/")
    if PLACE in base_url and not region:
        raise BadSetting(f"{BASE_URL} has a place for a region, and {REGION} is not set. Set it too.")
    if bool(region) != (PLACE in address):
        state = "both are" if base_url else "neither is"
        raise BadSetting(f"One of {REGION} and {BASE_URL} says where turbopuffer is, and {state} set. Set just one.")
    if region and not _REGION.fullmatch(region):
        raise BadSetting(f"{REGION} must be letters, digits and dashes, as in gcp-us-central1, not {region!r}.")
    named = TurbopufferService(address, key, region or None)
    if not _names_a_host(named.base_url):
        shown = address.rpartition("@")[2]  # what is before it may be a password
        raise BadSetting(f"{BASE_URL} must name a host, as in https://HOST, not {shown!r}.")
    return named


def _names_a_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of the namespaces of one space's log: `PREFIX.SPACE.LOG-MODEL.` and what they hold.

    Only this log has the log's id: other names are somebody else's, or of a log that a restored backup has replaced. A
    namespace keeps the vectors it was made for, so those of another model have other namespaces.
    """

    prefix: str
    space: str
    log: str
    suffix: str = ""
    """The mark of one index among several of the same space."""
    model: str = ""
    """The fingerprint of the model whose vectors the rows hold; empty where they hold none."""

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise BadSetting(
                f"COMMONPLACE_TURBOPUFFER_PREFIX must be at most 20 letters, digits and dashes, not {self.prefix!r}."
            )

    def with_model(self, fingerprint: str) -> Naming:
        """Return the names for the vectors of another model."""
        return replace(self, model=fingerprint)

    @property
    def items(self) -> str:
        """Return the namespace of everything that is not in a table."""
        return self._full(ITEMS)

    def table(self, project_id: str, table_id: str) -> str:
        """Return the namespace of a table."""
        return self._full(f"project_{project_id}_table_{table_id}")

    @property
    def mark(self) -> str:
        """Return the beginning of the names of all namespaces of this log, whatever model they are for."""
        return ".".join(filter(None, (self.prefix, self._space, self.log)))

    def is_table(self, namespace: str) -> bool:
        """Return True if a namespace is that of a table of this log, index and model."""
        return re.fullmatch(f"{re.escape(self._before)}{self._tables}", namespace) is not None

    def model_of(self, namespace: str) -> str | None:
        """Return the tag of the model in the name of a namespace of this log and index; None for any other name."""
        names = f"{ITEMS}{re.escape(self.suffix)}|{self._tables}"
        own = rf"{re.escape(self.mark)}(-[0-9a-f]{{{_MODEL_DIGITS}}}|)\.({names})"
        match = re.fullmatch(own, namespace)
        return match and match[1]

    @property
    def _tables(self) -> str:
        return f"project_{_ID}_table_{_ID}{re.escape(self.suffix)}"

    @property
    def _before(self) -> str:
        return f"{self.mark}{model_tag(self.model)}."

    @property
    def _space(self) -> str:
        """Return the space's name, or its hash if it is long: with a project and a table it would not fit."""
        if len(self.space) <= _LONGEST_SPACE:
            return self.space
        return hashlib.sha256(self.space.encode()).hexdigest()[:_LONGEST_SPACE]

    def _full(self, name: str) -> str:
        full = f"{self._before}{name}{self.suffix}"
        if len(full) > _LONGEST_NAMESPACE:
            raise BadSetting(f"The namespace {full} is longer than turbopuffer's {_LONGEST_NAMESPACE} characters.")
        return full


def model_tag(fingerprint: str) -> str:
    """Return the tag of a model in the name of a namespace; empty for no model."""
    return f"-{hashlib.sha256(fingerprint.encode()).hexdigest()[:_MODEL_DIGITS]}" if fingerprint else ""


def is_table(namespace: str) -> bool:
    """Return True if a namespace is that of a table, of any space. No name of a table or a project has a dot."""
    return namespace.rpartition(".")[2].startswith("project_")


def document_id(parent: str, key: str, content_hash: str, ordinal: int, kind: str, generation: int) -> str:
    """Return the id of a chunk's row: a UUID of its readable parts, the same wherever and whenever it is made."""
    parts = f"{parent}:{quote(key, safe='')}:{content_hash[:12]}:chunk_{ordinal}:{kind}:{generation}"
    digest = bytearray(hashlib.sha256(parts.encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
