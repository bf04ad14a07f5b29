"""Where the page shows an item: `/i/` and the item's address, each component percent-encoded as there."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlencode

from commonplace.model import parse_uri, uri_of

ITEMS = "/i/"
BY_ADDRESS = "/item"


def item_path(uri: str, /, **query: str | int | None) -> str:
    """Return the path of an item's page. One whose key a browser would rewrite is reached by its address instead."""
    scheme, _, rest = uri.partition("://")
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    if any(part in ("", ".", "..") for part in unquote(rest).split("/")):
        return f"{BY_ADDRESS}?{urlencode({'uri': uri, **asked})}"
    return f"{ITEMS}{scheme}/{rest}{f'?{urlencode(asked)}' if asked else ''}"


def address_at(rest: str) -> str | None:
    """Return the address that the undecoded end of such a path means, as a library writes it; None for none."""
    scheme, _, place = rest.partition("/")
    parts = parse_uri(f"{scheme}://{place}")
    return uri_of(parts[0], parts[1] or "", parts[2]) if parts else None


def with_query(path: str, /, **query: object) -> str:
    """Return a path with the query parameters that have a value; a list gives one parameter for each."""
    pairs = [
        (name, str(value))
        for name, values in query.items()
        for value in (values if isinstance(values, list | tuple) else [values])
        if value not in (None, "", False)
    ]
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path
