"""The addresses of PostgreSQL servers: which can be read, and what of them may be shown."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from commonplace.settings import BadSetting

_SCHEMES = ("postgresql://", "postgres://")
_UNNAMED = "the PostgreSQL store"
_SECRETS = ("password", "sslpassword")


def checked(url: str, setting: str) -> str:
    """Return an address. Raise BadSetting, without a word of it, where libpq would not read it as it was meant."""
    if not url.startswith(_SCHEMES):
        raise BadSetting(f"{setting} must be an address that begins with postgresql://.")
    if not _is_clear(url):
        raise BadSetting(
            f"{setting} is no address that can be read. Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
            "@ / % and the like in a name or a password as %40 %2F %25, and after a ? only options that libpq knows."
        )
    return url


def shown(url: str) -> str:
    """Return an address as it may be shown: without its password."""
    if not _is_clear(url):
        return _UNNAMED
    known = _parts(url)
    hosts, ports = str(known.get("host") or "localhost").split(","), str(known.get("port") or "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    hosts = [f"[{host}]" if ":" in host else host for host in hosts]
    place = ",".join(f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False))
    user = f"{known['user']}@" if known.get("user") else ""
    return f"postgresql://{user}{place}" + (f"/{known['dbname']}" if known.get("dbname") else "")


def without_secrets(said: str, url: str) -> str:
    """Return a text about an address as it may be shown: without the address's passwords."""
    for secret in (str(_parts(url).get(name) or "") for name in _SECRETS):
        said = said.replace(secret, "…") if secret else said
    return said


def _is_clear(url: str) -> bool:
    """Return whether each part is what was meant: a bare @ or / in a password makes the rest another part."""
    authority, _, rest = url.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in rest.partition("?")[0]:
        return False
    ports = str(_parts(url).get("port") or "").split(",")
    return bool(_parts(url)) and all(
        not port or (port.isascii() and port.isdigit() and 0 < int(port) < 65536) for port in ports
    )


def _parts(url: str) -> dict[str, object]:
    """Return the parts as libpq reads them; none where it cannot."""
    try:
        return {"host": None, **conninfo_to_dict(url)}
    except (psycopg.Error, UnicodeError, ValueError):
        return {}
